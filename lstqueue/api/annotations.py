"""From the labels and annotations of a user's own job to the spec of the DeadlineJob that stands for it.

Whoever labels a Job says there what a DeadlineJob says in fields. Each value is checked here, since nothing
else sees it before it is acted on; what cannot be used is left out and told by the name of its annotation.
Labels and annotations come from users and may be of any size and content, so no message repeats much of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lstqueue.api import (
    bandwidths,
    deadlinejob,
    deadlinejob_rules,
    durations,
    errors,
    field_rules,
    names,
    percents,
    times,
    zones,
)

LONGEST = 253
"""Characters of a value; everything that makes sense is much shorter."""
UNKNOWN = 8
"""How many annotations that nobody reads are told."""

DEADLINE = f"{names.GROUP}/deadline"
DEADLINE_IN = f"{names.GROUP}/deadline-in"
DEADLINE_AT = f"{names.GROUP}/deadline-at"
PREFERRED = f"{names.GROUP}/topology-preferred"
MAX_WAIT = f"{names.GROUP}/topology-max-wait"
ADOPT = f"{names.GROUP}/adopt"

_LEVEL_NAME = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_QUEUE_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a labelled object asks for.

    `spec` is part of a DeadlineJob's spec, as JSON: all that could be used, without `jobRef`. `problems` say
    what could not be used, and what to write instead; `unread` names annotations of ours that nothing reads,
    as they may be misspelt. Whether to adopt what runs is no part of a spec: see `operator.adoption`.
    """

    spec: Mapping[str, Any]
    problems: tuple[errors.Problem, ...] = ()
    unread: tuple[errors.Problem, ...] = ()


def read(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Reading:
    """Read the labels and annotations of an object; never raises for what a user wrote."""
    spec: dict[str, Any] = {}
    problems: list[errors.Problem] = []
    given = annotations or {}
    queue = (labels or {}).get(names.LABEL_QUEUE)
    if queue:
        _put(spec, problems, f"metadata.labels[{names.LABEL_QUEUE}]", _queue, queue)
    for name, convert in _FIELDS.items():
        if name in given:
            _put(spec, problems, _place(name), convert, given[name])
    deadlines = [name for name in (DEADLINE, DEADLINE_IN, DEADLINE_AT) if name in given]
    if len(deadlines) > 1:
        problem = f"is set beside {' and '.join(deadlines[:-1])}, so that it has no deadline now"
        problems.append(errors.Problem(_place(deadlines[-1]), problem, "keep one of them"))
        spec = {key: value for key, value in spec.items() if not key.startswith("deadline")}
    topology = spec.get("topology", {})
    if "maxWait" in topology and "preferred" not in topology:
        problem = "says how long to wait for a domain of a level, and none is preferred"
        problems.append(errors.Problem(_place(MAX_WAIT), problem, f"set {PREFERRED}, or remove it"))
        spec["topology"] = {key: value for key, value in topology.items() if key != "maxWait"}
    if ADOPT in given:
        # Only judged here; it is read anew whenever a Job runs that nothing is recorded of.
        _put({}, problems, _place(ADOPT), _flag("adopt"), given[ADOPT])
    return Reading(spec, tuple(problems), _unread(given))


_Convert = Callable[[str], Mapping[str, Any]]
"""From the text of an annotation to fields of a spec; raises BadValueError."""


def _place(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _put(
    spec: dict[str, Any], problems: list[errors.Problem], place: str, convert: _Convert, value: object
) -> None:
    try:
        found = convert(_bounded(value))
    except errors.BadValueError as error:
        problems.append(errors.Problem(place, error.problem, error.remedy))
        return
    for key, item in found.items():
        inner = spec.get(key)
        spec[key] = {**inner, **item} if isinstance(inner, dict) and isinstance(item, dict) else item


def _bounded(value: object) -> str:
    if not isinstance(value, str):
        raise errors.BadValueError(f"{errors.show(value)} is not a text", "write it in quotes")
    if len(value) > LONGEST:
        problem = f"{errors.show(value[: errors.SHOWN])} has {len(value)} characters"
        raise errors.BadValueError(problem, f"write at most {LONGEST}")
    return value


def _queue(text: str) -> Mapping[str, Any]:
    if len(text) > 63 or not field_rules.matches(_QUEUE_NAME, text):
        remedy = "write lower-case letters, digits, hyphens and points, or nothing for the default queue"
        raise errors.BadValueError(f"{errors.show(text)} is not the name of a queue", remedy)
    return {"queue": text}


def _deadline(text: str) -> Mapping[str, Any]:
    if not 0 < times.parse(text) < deadlinejob_rules.END_OF_TIME:
        problem = f"{errors.show(text)} {deadlinejob_rules.OUT_OF_TIME}"
        raise errors.BadValueError(problem, deadlinejob_rules.OUT_OF_TIME_REMEDY)
    return {"deadline": text.replace(",", ".")}


def _deadline_at(text: str) -> Mapping[str, Any]:
    parts = text.split()
    if len(parts) != 2:
        problem = f"{errors.show(text)} is not a time of day and a time zone"
        raise errors.BadValueError(problem, 'write both, such as "06:00 Europe/Berlin"')
    zones.clock(parts[0])
    zones.name(parts[1])
    return {"deadlineAt": {"time": parts[0], "zone": parts[1]}}


def _value(text: str) -> Mapping[str, Any]:
    if not re.fullmatch("[0-9]{1,7}", text) or not 1 <= int(text) <= 1_000_000:
        problem = f"{errors.show(text)} is not a whole number from 1 to 1000000"
        raise errors.BadValueError(problem, 'write one such as "10"')
    return {"value": int(text)}


def _sweep(text: str) -> Mapping[str, Any]:
    found = re.fullmatch("([0-9]{1,5}) of ([a-z0-9]([-a-z0-9.]*[a-z0-9])?)", text)
    if found is None or not 1 <= int(found[1]) <= 10_000 or len(found[2]) > 63:
        problem = f"{errors.show(text)} is not a part of a sweep"
        raise errors.BadValueError(
            problem, 'write how many of which have to succeed, such as "3 of lr-search"'
        )
    return {"sweep": {"name": found[2], "need": int(found[1])}}


def _level(field: str) -> _Convert:
    def convert(text: str) -> Mapping[str, Any]:
        if len(text) > 63 or not field_rules.matches(_LEVEL_NAME, text):
            problem = f"{errors.show(text)} is not the name of a level of an interconnect"
            raise errors.BadValueError(problem, 'write one such as "leafgroup"')
        return {"topology": {field: text}}

    return convert


def _slice(text: str) -> Mapping[str, Any]:
    found = re.fullmatch("([1-9][0-9]{0,3})( per (.+))?", text)
    if found is None or int(found[1]) > 4096:
        remedy = 'write how many pods share a domain, such as "4", or "4 per leafgroup"'
        raise errors.BadValueError(f"{errors.show(text)} is not a size of slices", remedy)
    level = _level("sliceLevel")(found[3]) if found[3] else {"topology": {}}
    return {"topology": {"sliceSize": int(found[1]), **level["topology"]}}


def _bandwidth(text: str) -> Mapping[str, Any]:
    bandwidths.parse(text)
    return {"topology": {"minBandwidth": text}}


def _percent(text: str) -> Mapping[str, Any]:
    percents.parse(text)
    return {"topology": {"communicationShare": text}}


def _duration(field: str, *, zero: bool = False) -> _Convert:
    def convert(text: str) -> Mapping[str, Any]:
        durations.parse(text, positive=not zero)
        return {field: text}

    return convert


def _flag(field: str) -> _Convert:
    def convert(text: str) -> Mapping[str, Any]:
        if text not in ("true", "false"):
            problem = f"{errors.show(text)} is neither true nor false"
            raise errors.BadValueError(problem, 'write "true" or "false"')
        return {field: text == "true"}

    return convert


def _choice(field: str, kind: type[deadlinejob.OnMissed] | type[deadlinejob.OnInfeasible]) -> _Convert:
    allowed = [item.value for item in kind]

    def convert(text: str) -> Mapping[str, Any]:
        if text not in allowed:
            problem = f"{errors.show(text)} is not one of the values allowed here"
            raise errors.BadValueError(problem, f"write {', '.join(allowed[:-1])} or {allowed[-1]}")
        return {field: text}

    return convert


def _inside(outer: str, convert: _Convert) -> _Convert:
    return lambda text: {outer: convert(text)}


_FIELDS: Mapping[str, _Convert] = MappingProxyType(
    {
        DEADLINE: _deadline,
        DEADLINE_IN: _duration("deadlineIn"),
        DEADLINE_AT: _deadline_at,
        f"{names.GROUP}/estimated-duration": _duration("estimatedDuration"),
        f"{names.GROUP}/value": _value,
        f"{names.GROUP}/sweep": _sweep,
        f"{names.GROUP}/topology-required": _level("required"),
        PREFERRED: _level("preferred"),
        MAX_WAIT: _inside("topology", _duration("maxWait", zero=True)),
        f"{names.GROUP}/topology-slice": _slice,
        f"{names.GROUP}/communication-share": _percent,
        f"{names.GROUP}/topology-min-bandwidth": _bandwidth,
        f"{names.GROUP}/checkpoint-interval": _inside("checkpoint", _duration("interval")),
        f"{names.GROUP}/checkpoint-on-suspend": _inside("checkpoint", _flag("onSuspend")),
        f"{names.GROUP}/restart-overhead": _inside("checkpoint", _duration("restartOverhead")),
        f"{names.GROUP}/preemptible": _flag("preemptible"),
        f"{names.GROUP}/min-run-time": _duration("minRunTime", zero=True),
        f"{names.GROUP}/max-run-time": _duration("maxRunTime"),
        f"{names.GROUP}/on-missed": _choice("onMissed", deadlinejob.OnMissed),
        f"{names.GROUP}/on-infeasible": _choice("onInfeasible", deadlinejob.OnInfeasible),
    }
)
"""What each annotation says."""

_READ = (*_FIELDS, ADOPT, names.ANNOTATION_ENDED, names.ANNOTATION_PROGRESS)


def _unread(given: Mapping[str, str]) -> tuple[errors.Problem, ...]:
    ours = sorted(name for name in given if name.startswith(f"{names.GROUP}/") and name not in _READ)
    return tuple(
        errors.Problem(_place(name[:LONGEST]), "is not read by lstqueue", _guess(name[:LONGEST]))
        for name in ours[:UNKNOWN]
    )


def _guess(name: str) -> str:
    # What they have in common says nothing of what was meant.
    own = {known.removeprefix(f"{names.GROUP}/"): known for known in _READ}
    close = difflib.get_close_matches(name.removeprefix(f"{names.GROUP}/"), own, n=1, cutoff=0.7)
    return (
        f"write {own[close[0]]} if you meant that" if close else "remove it if it was meant to do something"
    )
