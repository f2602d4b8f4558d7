"""From a pydantic model to the structural schema that an API server takes in a CRD.

Walks what pydantic derives and rewrites what a server would refuse: references are inlined, an alternative
with null is dropped (absent is how Kubernetes says it), titles go. Whatever else it does not know it refuses,
here and not at the first `kubectl apply`. Rules are attached at their places as `x-kubernetes-validations`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic

from lstqueue.api import cel

Schema = dict[str, Any]

_DROPPED = frozenset({"title", "$defs"})
_ANY_TYPE = frozenset({"type", "description", "default", "enum", "nullable"})
_BY_TYPE: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "maxProperties", "minProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"format", "pattern", "minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


class UnstructurableError(TypeError):
    """A model has something that no structural schema can express. The message says where."""


def schema(model: type[pydantic.BaseModel], *, defaults: bool = True) -> Schema:
    """Return the structural schema of a model, its keys in a fixed order.

    Args:
        model: the model, read by its aliases.
        defaults: keep default values; a status has none, since only lstqueue writes it.

    Raises:
        UnstructurableError: the model cannot be expressed.
    """
    derived = model.model_json_schema(by_alias=True, mode="validation")
    return _Walk(derived.get("$defs", {}), defaults=defaults).convert(derived, model.__name__, ())


def attach(root: Schema, rules: Iterable[cel.Rule]) -> None:
    """Put each rule where it belongs in the schema of a whole object.

    Raises:
        UnstructurableError: a rule names a place that the schema does not have.
    """
    for rule in rules:
        node = root
        for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", rule.at):
            found = node.get("items") if step.startswith("[") else node.get("properties", {}).get(step)
            if found is None:
                raise UnstructurableError(f"no such place as {rule.at}, for the rule: {rule.message}")
            node = found
        entry = {"rule": rule.cel, "message": rule.message}
        if rule.field:
            entry["fieldPath"] = rule.field
        node.setdefault("x-kubernetes-validations", []).append(entry)


class _Walk:
    """One conversion: the definitions that references lead to, and whether defaults are kept."""

    def __init__(self, definitions: Mapping[str, Schema], *, defaults: bool) -> None:
        self._definitions = definitions
        self._dropped = _DROPPED if defaults else _DROPPED | {"default"}

    def convert(self, node: Schema, where: str, inside: tuple[str, ...]) -> Schema:
        """Convert one node; `inside` holds the references that led here."""
        node, inside = self._resolved(node, where, inside)
        result: Schema = {}
        for key, value in sorted(node.items(), key=_rank):
            if key in self._dropped or (key == "default" and value is None):
                continue
            _check(node, key, where)
            if key == "properties":
                result[key] = {
                    name: self.convert(field, f"{where}.{name}", inside) for name, field in value.items()
                }
            elif key in ("items", "additionalProperties"):
                if not isinstance(value, dict):
                    raise UnstructurableError(f"{where} has {key}: {value}")
                result[key] = self.convert(value, f"{where}[]", inside)
            else:
                result[key] = " ".join(value.split()) if key == "description" else value
        return result

    def _resolved(self, node: Schema, where: str, inside: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Follow a reference or the one alternative that is not null; what stands beside it wins."""
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name in inside:
                raise UnstructurableError(f"{where} contains itself by way of {name}")
            return self._resolved(_beside(node, "$ref", self._definitions[name]), where, (*inside, name))
        if "anyOf" in node and "x-kubernetes-int-or-string" not in node:
            others = [choice for choice in node["anyOf"] if choice != {"type": "null"}]
            if len(others) != 1:
                raise UnstructurableError(f"{where} is a union")
            return self._resolved(_beside(node, "anyOf", others[0]), where, inside)
        return node, inside


def _beside(node: Schema, key: str, target: Schema) -> Schema:
    return {**target, **{name: value for name, value in node.items() if name != key}}


def _check(node: Schema, key: str, where: str) -> None:
    """Refuse a keyword that is unknown or does nothing for the node's type."""
    if key.startswith("x-kubernetes-") or key in _ANY_TYPE:
        return
    if "x-kubernetes-int-or-string" in node:
        fine = key == "maxLength" or (key == "anyOf" and node[key] == _INT_OR_STRING)
    else:
        fine = key in _BY_TYPE.get(node.get("type", ""), frozenset())
    if not fine:
        raise UnstructurableError(f"{where} has {key}, which its type {node.get('type')} cannot have")


_ORDER = (
    "description", "type", "format", "enum", "default", "pattern", "minLength", "maxLength",
    "minimum", "maximum", "minItems", "maxItems", "maxProperties",
    "required", "properties", "items", "additionalProperties",
)  # fmt: skip


def _rank(item: tuple[str, Any]) -> tuple[int, str]:
    key = item[0]
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER), key)
