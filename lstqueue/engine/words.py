"""Amounts and durations as people read them, for the messages of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.engine import model
from lstqueue.topology.model import PODS

MOST = 5
"""Names in one sentence; a list that nobody reads to its end explains nothing."""

_UNITS = (("d", 24 * model.HOUR), ("h", model.HOUR), ("m", model.MINUTE), ("s", 1000))
_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def duration(ms: int) -> str:
    """A duration with at most two units: `1d12h`, `45m`, `30s`; below a second `0s`."""
    if ms < 0:
        return "-" + duration(-ms)
    for index, (unit, size) in enumerate(_UNITS):
        if ms < size:
            continue
        text = f"{ms // size}{unit}"
        if index + 1 < len(_UNITS):
            smaller, smaller_size = _UNITS[index + 1]
            rest = ms % size // smaller_size
            text += f"{rest}{smaller}" if rest else ""
        return text
    return "0s"


def at_least(ms: int) -> str:
    """A duration as `duration` writes it, rounded up, so that who waits or adds that much has enough."""
    shown = next((index for index, (_, size) in enumerate(_UNITS) if ms >= size), len(_UNITS))
    step = _UNITS[min(shown + 1, len(_UNITS) - 1)][1]
    return duration(-(-ms // step) * step)


def amount(resource: str, value: int) -> str:
    """An amount with its resource: `8 nvidia.com/gpu`, `1.5 cpu`, `64Gi memory`."""
    return f"{quantity(resource, value)} {resource}"


def quantity(resource: str, value: int) -> str:
    """An amount without its resource, in the unit people use for it."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, size in _BINARY:
            if abs(value) >= size:
                return f"{value / size:.4g}{suffix}"
    return str(value)


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 pod`, `3 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def pods(group: model.Group) -> str:
    """A group's size: `4 pods of 8 nvidia.com/gpu` (its extended resources, else cpu and memory)."""
    asked = [(name, value) for name, value in group.shape.requests if value > 0 and name != PODS]
    extended = [pair for pair in asked if "/" in pair[0]]
    size = " and ".join(amount(name, value) for name, value in extended or asked)
    number = count(group.count, "pod")
    return f"{number} of {size}" if size else f"{number} without requests, so that pod slots bind"


def names(several: Sequence[str], most: int = MOST) -> str:
    """A list as people write it, so many names of it at most: `n1, n2 and n3`, `a, b, c, d, e and 3 more`."""
    shown = list(several[:most])
    if len(several) > most:
        shown.append(f"{len(several) - most} more")
    return " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else "".join(shown)


def sentence(text: str) -> str:
    """What others say of a job as a sentence like ours: `It is paused.` where they say `is paused`.

    A first word that is a name, or a field, stays as it is.
    """
    first, _, _ = text.partition(" ")
    if first in _OF_IT:
        text = f"It {text}"
    elif first.isalpha() and first not in _NAMES:
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


_OF_IT = ("is", "names", "runs", "waits")
_NAMES = ("lstqueue",)


def field(name: str, *, labelled: bool) -> str:
    """A field of a spec by the name under which its user has it: of a labelled Job a label or annotation."""
    return _OF_LABELLED.get(name, name) if labelled else name


_OF_LABELLED = {
    "spec.queue": "label lstqueue.dev/queue of the Job",
    "spec.estimatedDuration": "annotation lstqueue.dev/estimated-duration of the Job",
    "spec.value": "annotation lstqueue.dev/value of the Job",
    "spec.onMissed": "annotation lstqueue.dev/on-missed of the Job",
    "spec.topology.required": "annotation lstqueue.dev/topology-required of the Job",
    "spec.topology.sliceSize": "annotation lstqueue.dev/topology-slice of the Job",
    "spec.topology.sliceLevel": "annotation lstqueue.dev/topology-slice of the Job",
    "spec.topology.minBandwidth": "annotation lstqueue.dev/topology-min-bandwidth of the Job",
    "spec.maxRunTime": "annotation lstqueue.dev/max-run-time of the Job",
}


def job(one: model.Job) -> str:
    """A job as users name it: `namespace/name`."""
    return f"{one.namespace}/{one.name}"
