"""Reads what stands in a status, whoever wrote it there: what makes no sense counts as absent.

A status is the operator's own word, but users can edit it, and the API server takes more than `api` reads:
its `date-time` has more spellings of a time. Nothing here raises for a value of the wrong kind. Not for
specs: there users are told what is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pydantic

from lstqueue.api import conditions, durations, errors, times
from lstqueue.jobs import views

Object = Mapping[str, Any]

REPLACED = "Replaced"
"""Why a job ended whose Job a CronJob had made, and went on without."""
GONE = frozenset({"JobVanished", REPLACED})
"""Why those ended whose existing object was deleted: nobody missed a deadline then."""


def moment(value: object) -> int | None:
    """Return a time in ms since the epoch, None for none."""
    try:
        return times.parse(value) if isinstance(value, str) and value else None
    except errors.BadValueError:
        return None


def time(value: object) -> int:
    """Return a time in ms since the epoch, 0 for none."""
    return moment(value) or 0


def moments(value: object) -> tuple[int, ...]:
    """Return the times of a list in ms since the epoch."""
    return tuple(at for item in texts(value) if (at := time(item)))


def duration(value: object) -> int:
    """Return a duration in ms, 0 for none."""
    try:
        return durations.parse(value) if isinstance(value, str) and value else 0
    except errors.BadValueError:
        return 0


def count(value: object) -> int:
    """Return a counter, 0 for none.

    One that is too long goes round to 1. So what it is counted on to reads as another number again, and what
    is made of it, as labels and names, reads as the same number: else the lifecycle would never come to rest.
    """
    if type(value) is not int or value <= 0:
        return 0
    return value if value < views.COUNTED else (value - 1) % (views.COUNTED - 1) + 1


def text(value: object) -> str:
    """Return a text, "" for none."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def mapping(value: object) -> Object:
    """Return an object, {} for none."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> tuple[Object, ...]:
    """Return the objects of a list."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))


def condition_list(value: object) -> tuple[conditions.Condition, ...]:
    """Return the conditions of a status that can be read."""
    found = (_condition(tuple(item.items())) for item in objects(value) if _flat(item))
    return tuple(item for item in found if item is not None)


def _flat(item: Object) -> bool:
    return all(isinstance(value, str | int) for value in item.values())


@functools.lru_cache(maxsize=2048)
def _condition(fields: tuple[tuple[str, Any], ...]) -> conditions.Condition | None:
    """Return a condition; most of those read have been read before, when the one beside them was another."""
    try:
        return conditions.Condition.model_validate(dict(fields))
    except pydantic.ValidationError:
        return None


STARTING, STOPPING, UNTIMELY = "Starting", "Stopping", "ClockUnknown"
"""Codes of jobs that own room: what they wait for are pods of their own. For the engine they do not wait."""
NOT_SLOW = ("", "")


def slow(pending: Mapping[str, Any]) -> tuple[str, str]:
    """Return (code, sentence) of what a job that owns room was told it waits for, ("", "") for nothing."""
    code = text(pending.get("code"))
    return (code, text(pending.get("message"))) if code in (STARTING, STOPPING, UNTIMELY) else NOT_SLOW
