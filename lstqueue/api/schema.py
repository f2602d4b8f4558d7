"""The schema of a kind, and what an API server does with it: apply defaults, prune, validate.

Works on raw objects and answers as a real API server does. The order of a write is `default`, `prune`,
`validate`, and then `rules.violations` unless `blocks` says that something stands in the way. Metadata is no
business of a schema and is left alone.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from lstqueue.api import kinds, schema_checks, structural

Object = dict[str, Any]
Schema = structural.Schema

_META = ("apiVersion", "kind", "metadata")
_KEEP = "x-kubernetes-preserve-unknown-fields"


@functools.cache
def openapi(kind: str) -> Schema:
    """Return the structural schema of a kind with its rules, as the CRD has it. Not to be changed."""
    row = kinds.KINDS[kind]
    root: Schema = {
        "description": row.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # The name is declared so that rules may point at it; a server allows no more than that here.
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
            "spec": structural.schema(row.spec),
            "status": structural.schema(row.status, defaults=False),
        },
    }
    structural.attach(root, row.rules)
    return root


def default(kind: str, obj: Object) -> None:
    """Fill in defaults and remove nulls, in place. A null where there is a default counts as absent."""
    _default(obj, openapi(kind))


def prune(kind: str, obj: Object) -> list[str]:
    """Remove unknown fields, in place, and return their paths, sorted (`spec.grops`)."""
    gone: list[str] = []
    _prune(obj, openapi(kind), "", gone)
    return sorted(gone)


def validate(kind: str, obj: Object) -> list[tuple[str, str]]:
    """Return (field, message) of everything in which the object departs from the schema."""
    return [(error.field, error.message) for error in schema_checks.check(openapi(kind), obj)]


def blocks(kind: str, obj: Object) -> bool:
    """Tell whether the object is so wrong that an API server would not ask the rules about it."""
    return any(error.blocks for error in schema_checks.check(openapi(kind), obj))


def _field(schema: Schema, name: str) -> Schema | None:
    found: Schema | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return found


def _default(value: Any, schema: Schema | None) -> None:
    if schema is None:
        return
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items"))
    elif isinstance(value, dict):
        for name in [
            name for name, item in value.items() if item is None and _field(schema, name) is not None
        ]:
            del value[name]
        for name, field in schema.get("properties", {}).items():
            if "default" in field and name not in value:
                value[name] = copy.deepcopy(field["default"])
        for name, item in value.items():
            _default(item, _field(schema, name))


def _prune(value: Any, schema: Schema, path: str, gone: list[str]) -> None:
    if schema.get(_KEEP) and "properties" not in schema:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, schema.get("items", {}), f"{path}[{index}]", gone)
    elif isinstance(value, dict):
        for name in list(value):
            inner = f"{path}.{name}" if path else name
            field = _field(schema, name)
            if not path and name in _META:
                continue
            if field is not None:
                _prune(value[name], field, inner, gone)
            elif not schema.get(_KEEP):
                gone.append(inner)
                del value[name]
