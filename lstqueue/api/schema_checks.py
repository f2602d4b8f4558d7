"""Validation of a raw object against a structural schema, with the words of an API server.

Covers the keywords that our own schemas use. Whether a finding keeps the server from asking its rules is part
of the finding. Unknown fields are not looked at: they are pruned before.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lstqueue.api import errors, field_rules

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One departure from the schema. `blocks`: a server does not ask its rules after this one."""

    field: str
    message: str
    blocks: bool = False


def check(schema: Schema, value: Any, field: str = "") -> Iterator[Finding]:
    """Yield every departure of `value` from its schema, depth first."""
    expected = _type(schema)
    if expected and not _is(expected, value):
        yield Finding(field or "<nil>", _type_message(field, expected, value), blocks=True)
        return
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(f'"{choice}"' for choice in schema["enum"])
        message = f"Unsupported value: {_shown(value)}: supported values: {choices}"
        yield Finding(field, message, blocks=True)
    if isinstance(value, str):
        yield from _string(schema, value, field)
    elif isinstance(value, list):
        yield from _list(schema, value, field)
    elif isinstance(value, dict):
        yield from _object(schema, value, field)
    elif not isinstance(value, bool) and isinstance(value, int | float):
        yield from _number(schema, value, field)


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer,string"
    found: str = schema.get("type", "")
    return found


def _whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


_TYPES: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "object": lambda value: isinstance(value, dict),
        "array": lambda value: isinstance(value, list),
        "string": lambda value: isinstance(value, str),
        "boolean": lambda value: isinstance(value, bool),
        "integer": _whole,
        "integer,string": lambda value: isinstance(value, str) or _whole(value),
    }
)


def _is(expected: str, value: Any) -> bool:
    return _TYPES[expected](value)


def _name(value: Any) -> str:
    if value is None:
        return "null"
    return next((name for name in _TYPES if _is(name, value)), "number")


def _shown(value: Any) -> str:
    """Return a value as a server repeats it; a list or an object only by its type, as it may be large."""
    if isinstance(value, dict | list):
        return f'"{_name(value)}"'
    return json.dumps(value[: errors.SHOWN] if isinstance(value, str) else value, ensure_ascii=False)


def _type_message(field: str, expected: str, value: Any) -> str:
    found = _name(value)
    return f'Invalid value: "{found}": {field} in body must be of type {expected}: "{found}"'


def _invalid(field: str, value: Any, what: str) -> Finding:
    return Finding(field, f"Invalid value: {_shown(value)}: {field} in body {what}")


def _string(schema: Schema, value: str, field: str) -> Iterator[Finding]:
    longest = schema.get("maxLength")
    if longest is not None and len(value) > longest:
        yield Finding(field, f"Too long: may not be more than {longest} bytes", blocks=True)
    elif len(value) < schema.get("minLength", 0):
        yield _invalid(field, value, f"should be at least {schema['minLength']} chars long")
    elif "pattern" in schema and not field_rules.matches(schema["pattern"], value):
        yield _invalid(field, value, f"should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not is_date_time(value):
        message = (
            f"Invalid value: {_shown(value)}: {field} in body must be of type date-time: {_shown(value)}"
        )
        yield Finding(field, message, blocks=True)


def _number(schema: Schema, value: float, field: str) -> Iterator[Finding]:
    if "minimum" in schema and value < schema["minimum"]:
        yield _invalid(field, value, f"should be greater than or equal to {schema['minimum']}")
    if "maximum" in schema and value > schema["maximum"]:
        yield _invalid(field, value, f"should be less than or equal to {schema['maximum']}")


def _too_many(field: str, count: int, most: int) -> Finding:
    return Finding(field, f"Too many: {count}: must have at most {most} items", blocks=True)


def _list(schema: Schema, value: list[Any], field: str) -> Iterator[Finding]:
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        yield _too_many(field, len(value), most)
    if len(value) < schema.get("minItems", 0):
        yield _invalid(field, value, f"should have at least {schema['minItems']} items")
    for index, item in enumerate(value):
        yield from check(schema.get("items", {}), item, f"{field}[{index}]")
    if schema.get("x-kubernetes-list-type") == "map":
        yield from _duplicates(schema["x-kubernetes-list-map-keys"], value, field)
    elif schema.get("x-kubernetes-list-type") == "set":
        for index, item in enumerate(value):
            if value[:index].count(item) == 1:
                yield Finding(f"{field}[{index}]", f"Duplicate value: {json.dumps(item)}")


def _duplicates(keys: Sequence[str], value: list[Any], field: str) -> Iterator[Finding]:
    """A list-map in which a key occurs again; each such key is reported once, where it comes second."""
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            continue
        key = json.dumps(
            {name: item[name] for name in keys if name in item}, sort_keys=True, separators=(",", ":")
        )
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield Finding(f"{field}[{index}]", f"Duplicate value: {key}")


def _object(schema: Schema, value: dict[str, Any], field: str) -> Iterator[Finding]:
    most = schema.get("maxProperties")
    if most is not None and len(value) > most:
        yield _too_many(field, len(value), most)
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Finding(_join(field, name), "Required value", blocks=True)
    for name, item in value.items():
        inner = known.get(name, schema.get("additionalProperties"))
        if inner is not None:
            yield from check(inner, item, _join(field, name))


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")


def is_date_time(text: str) -> bool:
    """Tell whether an API server takes a text for a date-time; it is laxer about offsets than RFC 3339."""
    date, _, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    if not match or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", date):
        return False
    year, month, day = map(int, date.split("-"))
    try:
        # Year 0 exists for the server, and was a leap year like 2000.
        datetime.date(year or 2000, month, day)
    except ValueError:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"
