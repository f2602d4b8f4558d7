"""What a policy of the evaluator is as a GPUQueue: only what an operator can be told can run through it."""

from __future__ import annotations

import dataclasses
from typing import Any

from lstqueue.api import deadlinejob_status, durations, names
from lstqueue.engine import model
from lstqueue.evaluate import lives, policies, workload, world

_ORDERS = (model.Order.LST, model.Order.EDF, model.Order.FIFO)


class UnspeakableError(ValueError):
    """A GPUQueue cannot say what a policy is; the message names what."""


def queue(policy: policies.Policy) -> dict[str, Any]:
    """Return the GPUQueue over all nodes that has the policy's jobs.

    Raises:
        UnspeakableError: The policy sets what only a configuration of the evaluator has.
    """
    return _queue(_spec(policy))


def speakable() -> list[str]:
    """Return the names of the policies that a GPUQueue can say."""
    return [policy.name for policy in policies.ALL if not _unsaid(policy)]


def _spec(policy: policies.Policy) -> dict[str, Any]:
    if unsaid := _unsaid(policy):
        raise UnspeakableError(
            f"{policy.name} sets {unsaid[0]}, which no GPUQueue can say; "
            f"--through takes {', '.join(speakable())}"
        )
    spec: dict[str, Any] = {"pools": [_pool()]}
    for name, value in _wanted(policy).items():
        for part, fields in (_said(name, value) or {}).items():
            spec[part] = {**spec.get(part, {}), **fields} if isinstance(fields, dict) else fields
    return spec


def _queue(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GPUQueue",
        "metadata": {"name": lives.QUEUE},
        "spec": spec,
    }


def _unsaid(policy: policies.Policy) -> list[str]:
    return [name for name, value in _wanted(policy).items() if _said(name, value) is None]


def _wanted(policy: policies.Policy) -> dict[str, Any]:
    """What a policy sets otherwise than an operator and a queue have it."""
    config, set_up = policy.configured(model.Config()), policy.queued(model.Queue(lives.QUEUE))
    wanted = _differing(config, model.Config()) | _differing(set_up, model.Queue(lives.QUEUE))
    if policy.pods is not None:
        wanted["pods"] = policy.pods  # a world without gangs
    if policy.foreknowing:
        wanted["foreknowing"] = True
    if config.order is model.Order.FIFO:
        wanted.pop("reserve_most", None)  # nobody passes the head of a fifo queue, so nothing is kept for it
    return wanted


def _pool() -> dict[str, Any]:
    # Nodes are the limit, as in `world.World`.
    return {"name": world.POOL, "resources": [{"name": workload.GPU, "nominal": world.NO_LIMIT}]}


def _differing(one: Any, other: Any) -> dict[str, Any]:
    """The fields in which one of two equal dataclasses differs from the other."""
    fields = [field.name for field in dataclasses.fields(one)]
    return {name: getattr(one, name) for name in fields if getattr(one, name) != getattr(other, name)}


def _said(name: str, value: Any) -> dict[str, Any] | None:
    """What a spec says for a field of a configuration or queue, None where it has no words for it."""
    match name:
        case "order" if value in _ORDERS:
            return {"order": value.value}
        case "shedding":
            return {"overload": {"shedding": value}}
        case "sharing" if not value:
            return {"overload": {"bestEffortShare": "0%"}}
        case "preemption":
            return {"preemption": {"withinQueue": value.value}}
        case "min_run":
            return {"preemption": {"minRunTime": durations.format(value)}}
        case "cap" if value <= deadlinejob_status.SUSPENSIONS:
            return {"preemption": {"maxPerJobPerDay": value}}
    return None
