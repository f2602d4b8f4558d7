"""From a raw object to a model, with every problem said in our own words and by field.

Turns what pydantic finds into `errors.Problem`s; its own messages speak of validators and Python types, which
is no help to somebody who wrote YAML. Rules that hold for a single object (not those about a change) are
checked as well, so that reading a file needs no API server to be strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pydantic
from pydantic_core import ErrorDetails

from lstqueue.api import base, cel, errors

M = TypeVar("M", bound=base.Model)


def read(model: type[M], obj: object, *, part: str, rules: cel.RuleSet | None = None) -> M:
    """Return `obj[part]` as `model`.

    Raises:
        InvalidSpecError: with all problems, fields starting with `part`.
    """
    if not isinstance(obj, Mapping):
        raise errors.InvalidSpecError([_shape("the object", obj)])
    raw = obj.get(part)
    if raw is None:
        raise errors.InvalidSpecError([errors.Problem(part, "is missing", f"add {part}")])
    if not isinstance(raw, Mapping):
        raise errors.InvalidSpecError([_shape(part, raw)])
    try:
        parsed = model.model_validate(raw, by_alias=True, by_name=False)
    except pydantic.ValidationError as error:
        found = _relevant(error.errors(include_url=False))
        raise errors.InvalidSpecError(_problem(part, detail) for detail in found) from error
    broken = [
        errors.Problem(item.field, item.rule.problem, item.rule.remedy)
        for item in (rules.broken(obj) if rules else ())
    ]
    if broken:
        raise errors.InvalidSpecError(broken)
    return parsed


def _shape(field: str, value: object) -> errors.Problem:
    return errors.Problem(field, f"{_shown(value)} is not a mapping of fields", "write one")


def _relevant(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Drop what only follows from another problem: a list is "too short" by the items that are wrong."""
    inner = {detail["loc"][:end] for detail in found for end in range(len(detail["loc"]))}
    return [detail for detail in found if detail["type"] != "too_short" or detail["loc"] not in inner]


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return "this list"
    return "this mapping" if isinstance(value, Mapping) else errors.show(value)


def _problem(part: str, detail: ErrorDetails) -> errors.Problem:
    field = part
    for step in detail["loc"]:
        field += f"[{step}]" if isinstance(step, int) else f".{step}"
    context = detail.get("ctx", {})
    value = _shown(detail["input"])
    kind = detail["type"]
    cause = context.get("error")
    if isinstance(cause, errors.BadValueError):
        return errors.Problem(field, cause.problem, cause.remedy)
    if kind == "missing":
        return errors.Problem(field, "is missing", f"add {field}")
    if kind in _LIMITS:
        limit, remedy = _LIMITS[kind]
        return errors.Problem(field, f"{value} {limit}", remedy.format(**context))
    if kind in _SHAPES:
        return errors.Problem(field, f"{value} is not {_SHAPES[kind]}", f"write {_SHAPES[kind]}")
    return errors.Problem(field, f"{value} cannot be used", "compare it with the reference of this field")


_LIMITS = {
    "greater_than_equal": ("is too small", "write {ge} or more"),
    "less_than_equal": ("is too large", "write {le} or less"),
    "string_too_short": ("is too short", "write at least {min_length} characters"),
    "string_too_long": ("is too long", "write at most {max_length} characters"),
    "too_short": ("has too few items", "write at least {min_length}"),
    "too_long": ("has too many items", "write at most {max_length}"),
    "string_pattern_mismatch": ("has the wrong form", "write something that matches {pattern}"),
    "enum": ("is not one of the values allowed here", "write {expected}"),
}
"""Kinds of errors of pydantic that come with a limit: (problem, remedy)."""

_SHAPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of a usual size",
    "string_type": "a text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
}
"""Kinds of errors of pydantic that say which type was expected."""
