"""Conditions of queues and interconnects, as a status has them: each with the time of its last change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstqueue.api import conditions
from lstqueue.operator import lenient

Told = tuple[bool, str, str]
"""Of a condition: whether it is true, its reason and its message."""


def written(
    status: Mapping[str, Any], told: Mapping[str, Told], *, now: int, generation: int
) -> list[dict[str, Any]]:
    """Return the conditions that are told, in their order; others that a status has are left out.

    Args:
        status: As it was written last, by whom it may be.
        told: By type.
        now: Ms since the epoch.
        generation: Of the spec that is spoken of.
    """
    known = lenient.condition_list(status.get("conditions"))
    for kind, (true, reason, message) in told.items():
        fresh = conditions.Condition(
            type=kind,
            status=conditions.Truth.TRUE if true else conditions.Truth.FALSE,
            reason=reason,
            message=message,
            last_transition_time=now,
            observed_generation=generation,
        )
        known = conditions.put(known, fresh)
    return [found.dump() for kind in told if (found := conditions.get(known, kind)) is not None]
