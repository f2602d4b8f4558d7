"""What the models of all kinds share: the base class and the field types.

Specs are read strictly (a duration is text), statuses also take what the operator reckons in, so that a
status is built from integers and written as text. Everything becomes integer ms on reading. The field types
carry their own OpenAPI schema, since what pydantic would derive is not always what an API server accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pydantic
from pydantic import alias_generators

from lstqueue.api import bandwidths, durations, errors, percents, times

MESSAGE_LENGTH = 1024
"""Longest message in a status; longer ones are cut."""
TEXT_LENGTH = 253
"""Longest short text in a status, such as a name; messages that are as short are cut."""


class Model(pydantic.BaseModel):
    """Base of every object and sub-object: camelCase on the wire, unknown fields ignored, frozen."""

    model_config = pydantic.ConfigDict(
        alias_generator=alias_generators.to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        """Treat null as absent, as an API server does for fields that are not nullable."""
        if isinstance(data, Mapping) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data

    def dump(self) -> dict[str, Any]:
        """Return the JSON to write: camelCase, without nulls and without what is empty."""
        return _compact(self.model_dump(mode="json", by_alias=True, exclude_none=True))


def _compact(value: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, item in value.items():
        small = _compact(item) if isinstance(item, dict) else item
        if isinstance(small, list):
            small = [_compact(entry) if isinstance(entry, dict) else entry for entry in small]
        if small not in ({}, [], ""):
            kept[key] = small
    return kept


def list_map(items: int, *keys: str, least: int = 0) -> Any:
    """Field settings for a list of at most `items` objects that are told apart by `keys` (by name)."""
    extra: dict[str, Any] = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys or ("name",)),
    }
    return pydantic.Field(min_length=least or None, max_length=items, json_schema_extra=extra)


def list_set(items: int) -> Any:
    """Field settings for a list of at most `items` values, of which `distinct` says that none is twice."""
    return pydantic.Field(max_length=items, json_schema_extra={"x-kubernetes-list-type": "set"})


def distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse a list in which a value is there twice."""
    for index, item in enumerate(items):
        if item in items[:index]:
            raise errors.BadValueError(f"{errors.show(item)} occurs twice", "name each once")
    return items


def unique(key: str) -> pydantic.AfterValidator:
    """Refuse a list in which two items have the same `key`."""

    def check(items: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = set()
        for item in items:
            value = getattr(item, key)
            if value in seen:
                raise errors.BadValueError(f"{key} {value!r} occurs twice", "give each its own")
            seen.add(value)
        return items

    return pydantic.AfterValidator(check)


def _or_integer(read: Callable[[str], int]) -> Callable[[Any], int]:
    def accept(value: Any) -> int:
        return value if type(value) is int else read(value)

    return accept


def _positive(value: str) -> int:
    return durations.parse(value, positive=True)


def cut(text: str, most: int = MESSAGE_LENGTH) -> str:
    """Return a text with so many characters at most; one that was longer ends in an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cut(value: Any) -> Any:
    return cut(value) if isinstance(value, str) else value


_DURATION_SCHEMA = {"type": "string", "maxLength": durations.MAX_LENGTH}
_TIME_SCHEMA = {"type": "string", "format": "date-time"}

Duration = Annotated[
    int,
    pydantic.BeforeValidator(_positive),
    pydantic.PlainSerializer(durations.format),
    pydantic.WithJsonSchema(_DURATION_SCHEMA),
]
"""A duration of more than zero in a spec. The CRD checks its grammar by a rule, which has a message."""

DurationOrZero = Annotated[
    int,
    pydantic.BeforeValidator(durations.parse),
    pydantic.PlainSerializer(durations.format),
    pydantic.WithJsonSchema(_DURATION_SCHEMA),
]
"""A duration in a spec where zero has a meaning of its own."""

Percent = Annotated[
    int,
    pydantic.BeforeValidator(percents.parse),
    pydantic.PlainSerializer(percents.format),
    pydantic.WithJsonSchema({"type": "string", "maxLength": percents.MAX_LENGTH}),
]
"""A share in a spec, in ppm. The CRD checks its grammar by a rule, which has a message."""

Bandwidth = Annotated[
    int,
    pydantic.BeforeValidator(bandwidths.parse),
    pydantic.PlainSerializer(bandwidths.format),
    pydantic.WithJsonSchema({"type": "string", "maxLength": bandwidths.MAX_LENGTH}),
]
"""A bandwidth in a spec, in MB/s one way. The CRD checks its grammar by a rule, which has a message."""

Time = Annotated[
    int,
    pydantic.BeforeValidator(times.parse),
    pydantic.PlainSerializer(times.format),
    pydantic.WithJsonSchema(_TIME_SCHEMA),
]
"""A point in time in a spec."""

StatusDuration = Annotated[
    int,
    pydantic.BeforeValidator(_or_integer(durations.parse)),
    pydantic.PlainSerializer(durations.format),
    pydantic.WithJsonSchema(_DURATION_SCHEMA),
]
"""A duration in a status; given as text or in ms."""

StatusTime = Annotated[
    int,
    pydantic.BeforeValidator(_or_integer(times.parse)),
    pydantic.PlainSerializer(times.format),
    pydantic.WithJsonSchema(_TIME_SCHEMA),
]
"""A point in time in a status; given as text or in ms."""

Flag = pydantic.StrictBool
"""Yes or no; the texts and numbers that pydantic would take for one are refused, as by an API server."""

QueueName = Annotated[
    pydantic.StrictStr,
    pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
]
"""The name of a GPUQueue."""

Count = Annotated[pydantic.StrictInt, pydantic.Field(ge=0)]
"""A number of things."""

Text = Annotated[pydantic.StrictStr, pydantic.Field(max_length=TEXT_LENGTH)]
"""A short text such as a name."""

Message = Annotated[
    pydantic.StrictStr, pydantic.Field(max_length=MESSAGE_LENGTH), pydantic.BeforeValidator(_cut)
]
"""A sentence for people; cut when too long, since a status that is refused helps nobody."""
