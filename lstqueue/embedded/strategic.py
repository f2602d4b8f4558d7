"""Strategic merge patch: a merge patch that knows which lists are maps in disguise.

kubectl sends it for built-in kinds (`apply`, `edit`, `cordon`). Which field of an item is its key is part of
the built-in schemas; `_KEYS` has it for the kinds of this server, by the name of a list and of what holds it.
Custom kinds have no such schema, here as on a real server.

Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>`. The result is a new object; the old one is left untouched, subtrees are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lstqueue.embedded import failures

Json = Any

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"

_SET = ""
"""In place of a key: the list holds plain values, and merging means adding those that are missing."""

_KEYS: Mapping[tuple[str, str], str] = MappingProxyType(
    # (what holds the list, the list) → key of its items; "" stands for every holder
    {
        ("metadata", "finalizers"): _SET,
        ("metadata", "ownerReferences"): "uid",
        ("spec", "ports"): "port",
        ("spec", "containers"): "name",
        ("spec", "initContainers"): "name",
        ("spec", "ephemeralContainers"): "name",
        ("spec", "volumes"): "name",
        ("spec", "imagePullSecrets"): "name",
        ("spec", "hostAliases"): "ip",
        ("spec", "topologySpreadConstraints"): "topologyKey",
        ("spec", "schedulingGates"): "name",
        ("spec", "resourceClaims"): "name",
        ("spec", "podCIDRs"): _SET,
        ("containers", "ports"): "containerPort",
        ("initContainers", "ports"): "containerPort",
        ("", "env"): "name",
        ("", "volumeMounts"): "mountPath",
        ("", "volumeDevices"): "devicePath",
        ("status", "conditions"): "type",
        ("status", "addresses"): "type",
        ("status", "podIPs"): "ip",
        ("status", "hostIPs"): "ip",
        ("", "secrets"): "name",
    }
)


def apply(target: Json, patch: Json) -> Json:
    """Apply a strategic merge patch to an object of a built-in kind.

    Raises:
        port.InvalidError: 400 for an unknown directive, an item without its key, or a patch whose lists and
            maps are not where the object has them.
    """
    try:
        return _merge_map(target, patch, "")
    except (AttributeError, KeyError, TypeError) as error:
        message = f"the strategic merge patch does not fit the object: {type(error).__name__}: {error}"
        raise failures.bad_request(message) from error


def _merge_map(target: dict[str, Json], patch: dict[str, Json], holder: str) -> dict[str, Json]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        replaced: dict[str, Json] = _plain(patch)
        return replaced
    if directive == "delete":
        return {}
    _check_directive(directive)
    result = dict(target)
    if _RETAIN in patch:
        retained = patch[_RETAIN]
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            result[field] = [item for item in result.get(field) or () if item not in value]
        elif not key.startswith("$"):
            _merge_field(result, key, value, holder)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if isinstance(result.get(field), list):
                result[field] = _ordered(result[field], order, _key_of(holder, field))
    return result


def _merge_field(result: dict[str, Json], field: str, value: Json, holder: str) -> None:
    """Merge one field of a patch into `result`, in place. `holder` is the name of the map it is in."""
    old = result.get(field)
    if value is None:
        result.pop(field, None)
    elif isinstance(value, dict):
        result[field] = _merge_map(old if isinstance(old, dict) else {}, value, field)
    elif isinstance(value, list):
        result[field] = _merge_list(
            old if isinstance(old, list) else [], value, field, _key_of(holder, field)
        )
    else:
        result[field] = value


def _key_of(holder: str, field: str) -> str | None:
    """The key of a list's items, `_SET`, or None for a list that is replaced as a whole."""
    found = _KEYS.get((holder, field))
    return _KEYS.get(("", field)) if found is None else found


def _merge_list(target: list[Json], patch: list[Json], field: str, key: str | None) -> list[Json]:
    if key is None:
        return [_plain(item) for item in patch]
    if key == _SET:
        return target + [item for item in patch if item not in target]
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [_plain(item) for item in patch if _PATCH not in item]
    result = list(target)
    for item in patch:
        name = _name(item, key, field)
        at = next((number for number, old in enumerate(result) if old.get(key) == name), None)
        if item.get(_PATCH) == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(_merge_map({}, item, field))
        else:
            result[at] = _merge_map(result[at], item, field)
    return result


def _name(item: Json, key: str, field: str) -> Json:
    if not isinstance(item, dict) or key not in item:
        raise failures.bad_request(f"an item of {field} in the strategic merge patch has no {key}: name it")
    return item[key]


def _check_directive(directive: object) -> None:
    if directive not in (None, "merge"):
        raise failures.bad_request(
            f"{_PATCH}: {directive!r} in the strategic merge patch: must be replace, delete or merge"
        )


def _ordered(items: list[Json], order: list[Json], key: str | None) -> list[Json]:
    """Items that the order names take its order, in the places that they have; the others stay in theirs."""
    if key:
        wanted = [item.get(key) for item in order]
        named = {item.get(key): item for item in items}
        mine = [item.get(key) in wanted for item in items]
    else:
        wanted = order
        named = {item: item for item in items}
        mine = [item in wanted for item in items]
    line = iter([named[name] for name in wanted if name in named])
    return [next(line, item) if chosen else item for item, chosen in zip(items, mine, strict=True)]


def _plain(value: Json) -> Json:
    """A part of a patch that meets nothing to be merged with: without directives and nulls."""
    if isinstance(value, dict):
        return {
            key: _plain(item) for key, item in value.items() if item is not None and not key.startswith("$")
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
