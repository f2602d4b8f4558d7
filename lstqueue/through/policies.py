"""What a policy of the evaluator is as a GPUQueue: only what an operator can be told can run through it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from lstqueue.api import deadlinejob_status, durations, errors, gpuqueue, names
from lstqueue.engine import model
from lstqueue.evaluate import lives, policies, teams, workload, world

_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ORDERS = (model.Order.LST, model.Order.EDF, model.Order.FIFO)


class UnspeakableError(ValueError):
    """A GPUQueue cannot say what a policy is; the message names what."""


def queues(policy: policies.Policy, several: teams.Teams | None = None) -> tuple[dict[str, Any], ...]:
    """Return the GPUQueues over all nodes that have the policy's jobs, the oldest first.

    Raises:
        UnspeakableError: The policy, or a queue, has what only a configuration of the evaluator has.
    """
    spec = _spec(policy)
    if several is None:
        return (_queue(lives.QUEUE, {**spec, "pools": [_pool(world.NO_LIMIT)]}),)
    return tuple(_queue(team.name, {**spec, **_team(several, team)}) for team in several.teams)


def _team(several: teams.Teams, team: teams.Team) -> dict[str, Any]:
    """What one of several queues says of itself."""
    own: dict[str, Any] = {"pools": [_pool(team.gpus, team.limit)]}
    if several.cohort:
        own["cohort"] = several.cohort
    if team.windows:
        own["windows"] = [one.model_dump(mode="json", by_alias=True) for one in team.windows]
    if not _NAME.fullmatch(team.name):
        raise UnspeakableError(
            f"queue {team.name!r} is no name of a GPUQueue; write up to 63 small letters, digits and dashes"
        )
    try:
        gpuqueue.parse(_queue(team.name, own))
    except errors.InvalidSpecError as error:
        raise UnspeakableError(f"queue {team.name!r}: {error}") from error
    return own


def speakable() -> list[str]:
    """Return the names of the policies that a GPUQueue can say."""
    return [policy.name for policy in policies.ALL if not _unsaid(policy)]


def _spec(policy: policies.Policy) -> dict[str, Any]:
    if unsaid := _unsaid(policy):
        raise UnspeakableError(
            f"{policy.name} sets {unsaid[0]}, which no GPUQueue can say; "
            f"--through takes {', '.join(speakable())}"
        )
    spec: dict[str, Any] = {}
    for name, value in _wanted(policy).items():
        for part, fields in (_said(name, value) or {}).items():
            spec[part] = {**spec.get(part, {}), **fields} if isinstance(fields, dict) else fields
    return spec


def _queue(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GPUQueue",
        "metadata": {"name": name},
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
    wanted.pop("promising", None)  # which is the queue's own business
    if config.promising:
        wanted["promising"] = True
    if config.order is model.Order.FIFO:
        wanted.pop("reserve_most", None)  # nobody passes the head of a fifo queue, so nothing is kept for it
    return wanted


def _pool(gpus: int, limit: int | None = None) -> dict[str, Any]:
    """The one pool, of all nodes; with a quota that nothing reaches nodes are the limit, as in `world`."""
    quota: dict[str, Any] = {"name": workload.GPU, "nominal": gpus}
    if limit is not None:
        quota["borrowingLimit"] = limit
    return {"name": world.POOL, "resources": [quota]}


def _differing(one: Any, other: Any) -> dict[str, Any]:
    """The fields in which one of two equal dataclasses differs from the other."""
    fields = [field.name for field in dataclasses.fields(one)]
    return {name: getattr(one, name) for name in fields if getattr(one, name) != getattr(other, name)}


def _said(name: str, value: Any) -> dict[str, Any] | None:
    """What a spec says for a field of a configuration or queue, None where it has no words for it."""
    match name:
        case "order" if value in _ORDERS:
            return {"order": value.value}
        case "promising":
            return {"promises": value}
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
