"""Conditions: the part of a status that other tools wait on.

The types are derived from a DeadlineJob's phase and verdict by whoever writes its status; here is only
how one is put into the list. `lastTransitionTime` moves when the status of a condition does, not when its
words do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Annotated

import pydantic

from lstqueue.api import base


class Type(enum.StrEnum):
    """What a condition of a DeadlineJob says when it is True."""

    ADMITTED = "Admitted"  # capacity is committed to the whole gang
    GANG_READY = "GangReady"  # every member runs, or has succeeded
    DEADLINE_AT_RISK = "DeadlineAtRisk"  # the forecast may end after the deadline
    DEADLINE_PROMISED = "DeadlinePromised"  # a slot is kept in which it ends in time, whatever comes
    DEADLINE_MISSED = "DeadlineMissed"  # the deadline passed before the gang finished
    SUSPENDED = "Suspended"  # it gave its capacity back and waits
    FINISHED = "Finished"  # it will not run again


class Truth(enum.StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(base.Model):
    """One condition, in the shape all of Kubernetes uses."""

    type: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=63)]
    """What it is about."""
    status: Truth
    """True, False or Unknown."""
    reason: Annotated[
        pydantic.StrictStr, pydantic.Field(max_length=63, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    """Why, in one word for programs."""
    message: base.Message = ""
    """Why, in one sentence for people."""
    last_transition_time: base.StatusTime
    """When the status last changed."""
    observed_generation: base.Count | None = None
    """The generation of the spec it was derived from."""


Conditions = Annotated[tuple[Condition, ...], base.list_map(16, "type")]
"""The type of a status field that holds them; every model names that field `conditions`."""


def put(conditions: Iterable[Condition], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with `new` in place of the one of its type, or appended.

    The older `last_transition_time` is kept when the status is the same. The order of the others never
    changes, so that writing the same facts twice gives the same status.
    """
    result = []
    placed = False
    for old in conditions:
        if old.type != new.type:
            result.append(old)
            continue
        since = old.last_transition_time if old.status == new.status else new.last_transition_time
        result.append(new.model_copy(update={"last_transition_time": since}))
        placed = True
    return tuple(result) if placed else (*result, new)


def get(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Tell whether there is a condition of a type and its status is True."""
    found = get(conditions, type_)
    return found is not None and found.status is Truth.TRUE
