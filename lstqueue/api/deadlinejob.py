"""The spec of a DeadlineJob: what a user asks for.

`parse` reads it from a raw object, unknown fields ignored, so that a newer CRD does not break an older
operator. The status is in `deadlinejob_status`, the rules between fields in `deadlinejob_rules`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from lstqueue.api import base, deadlinejob_rules, errors, podtemplate, reading

NAME = "DeadlineJob"


class SuccessPolicy(enum.StrEnum):
    """When a gang has succeeded."""

    ALL = "All"
    LEADER = "Leader"


def _template(value: Any) -> Any:
    """Accept a pod template with at least one container; the API server judges the rest of it."""
    spec = value.get("spec") if isinstance(value, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    usable = isinstance(containers, list) and containers and all(isinstance(c, Mapping) for c in containers)
    if not usable:
        raise errors.BadValueError("a pod template needs containers", "list at least one in spec.containers")
    return value


class Group(base.Model):
    """Equal pods of a gang."""

    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=20, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$"),
    ]
    """Name of the group, part of its pods' names."""
    replicas: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=4096)] = 1
    """How many pods it has."""
    template: Annotated[
        dict[str, Any], pydantic.BeforeValidator(_template), pydantic.WithJsonSchema(podtemplate.SCHEMA)
    ]
    """The pod template, as in a Job."""


class Spec(base.Model):
    """A gang and the deadline it has to meet."""

    queue: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ]
    """The GPUQueue it waits in."""
    deadline: base.Time | None = None
    """When it has to be finished. With neither this nor deadlineIn it runs when others leave room."""
    deadline_in: base.Duration | None = None
    """The deadline as a duration from the creation of this object, such as 1d12h."""
    estimated_duration: base.Duration | None = None
    """How long the whole gang is expected to run on a good placement."""
    importance: Annotated[pydantic.StrictInt, pydantic.Field(ge=-10, le=10)] = 0
    """Tier above the deadline: all jobs of a higher one go first."""
    success_policy: SuccessPolicy = SuccessPolicy.ALL
    """All: every pod succeeds. Leader: the first group does, then the rest is ended."""
    backoff_limit: Annotated[pydantic.StrictInt, pydantic.Field(ge=0, le=100)] = 3
    """How many times the whole gang is started again after one of its pods failed."""
    groups: Annotated[tuple[Group, ...], base.list_map(8, least=1), base.unique("name")]
    """The groups of the gang, the leader's first. They never change."""

    def resolved_deadline(self, created: int) -> int | None:
        """Return the deadline of an object created at `created`, both in ms since the epoch, or None."""
        return self.deadline if self.deadline_in is None else created + self.deadline_in


def parse(obj: object) -> Spec:
    """Read the spec of a raw DeadlineJob.

    Raises:
        InvalidSpecError: with every problem by field.
    """
    return reading.read(Spec, obj, part="spec", rules=deadlinejob_rules.RULES)
