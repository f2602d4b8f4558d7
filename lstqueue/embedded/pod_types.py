"""The types of a pod spec's fields: what a server cannot even decode it refuses, before anybody looks at it.

Only the fields that lstqueue or a controller here reads; all else is taken as it is. Null is absent, as in
JSON for Go, and is not stored; a real server keeps the key of a null in a map of strings, with an empty one.
One in a list of objects it decodes as an empty object; here that is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lstqueue.embedded import failures


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A value of one of these Python types; `name` is what a server calls it."""

    name: str
    types: tuple[type, ...]


@dataclass(frozen=True, slots=True)
class _Object:
    """An object; fields that are not listed may be anything."""

    fields: Mapping[str, _Type]


@dataclass(frozen=True, slots=True)
class _List:
    item: _Type


@dataclass(frozen=True, slots=True)
class _Map:
    """An object with any keys."""

    value: _Type


_Type = _Scalar | _Object | _List | _Map

_TEXT = _Scalar("string", (str,))
_NUMBER = _Scalar("int64", (int,))
_FLAG = _Scalar("bool", (bool,))
_QUANTITY = _Scalar("resource.Quantity", (str, int, float))
_AMOUNTS = _Map(_QUANTITY)
_RESOURCES = _Object({"limits": _AMOUNTS, "requests": _AMOUNTS})
_EXPRESSIONS = _List(_Object({"key": _TEXT, "operator": _TEXT, "values": _List(_TEXT)}))
_TERMS = _List(_Object({"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}))
_POD_TERMS = _Object(
    {"requiredDuringSchedulingIgnoredDuringExecution": _List(_Object({"topologyKey": _TEXT}))}
)
_CONTAINER = _Object(
    {
        "name": _TEXT,
        "image": _TEXT,
        "restartPolicy": _TEXT,
        "env": _List(_Object({"name": _TEXT})),
        "ports": _List(_Object({"containerPort": _NUMBER, "hostPort": _NUMBER})),
        "resources": _RESOURCES,
    }
)
_POD = _Object(
    {
        "containers": _List(_CONTAINER),
        "initContainers": _List(_CONTAINER),
        "affinity": _Object(
            {
                "nodeAffinity": _Object(
                    {"requiredDuringSchedulingIgnoredDuringExecution": _Object({"nodeSelectorTerms": _TERMS})}
                ),
                "podAffinity": _POD_TERMS,
                "podAntiAffinity": _POD_TERMS,
            }
        ),
        "activeDeadlineSeconds": _NUMBER,
        "hostNetwork": _FLAG,
        "hostname": _TEXT,
        "nodeName": _TEXT,
        "nodeSelector": _Map(_TEXT),
        "overhead": _AMOUNTS,
        "preemptionPolicy": _TEXT,
        "priority": _NUMBER,
        "priorityClassName": _TEXT,
        "resourceClaims": _List(_Object({"name": _TEXT})),
        "resources": _RESOURCES,
        "restartPolicy": _TEXT,
        "runtimeClassName": _TEXT,
        "schedulerName": _TEXT,
        "schedulingGates": _List(_Object({"name": _TEXT})),
        "subdomain": _TEXT,
        "terminationGracePeriodSeconds": _NUMBER,
        "tolerations": _List(
            _Object(
                {
                    "key": _TEXT,
                    "operator": _TEXT,
                    "value": _TEXT,
                    "effect": _TEXT,
                    "tolerationSeconds": _NUMBER,
                }
            )
        ),
        "topologySpreadConstraints": _List(
            _Object({"maxSkew": _NUMBER, "topologyKey": _TEXT, "whenUnsatisfiable": _TEXT})
        ),
    }
)
_LARGEST = 2**63 - 1


def refuse(spec: object) -> None:
    """Refuse a pod spec that no server can decode.

    Raises:
        port.InvalidError: 400, naming the first field of another type.
    """
    wrong = problem(spec)
    if wrong:
        raise failures.bad_request(f'Pod in version "v1" cannot be handled as a Pod: json: {wrong}')


def drop_nulls(value: object) -> None:
    """Drop fields that are null, in place and at any depth: decoded, they are as good as absent."""
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            drop_nulls(item)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item)


def problem(spec: object) -> str:
    """Name the first field of a pod spec that cannot be decoded, "" for none."""
    return next(_wrong(spec, _POD, "spec"), "")


def _wrong(value: object, wanted: _Type, path: str) -> Iterator[str]:
    if value is None:
        return
    match wanted:
        case _Scalar(name, types):
            # In Python a boolean is a number too.
            fits = isinstance(value, types) and (isinstance(value, bool) <= (bool in types))
            if not fits or (wanted is _NUMBER and isinstance(value, int) and abs(value) > _LARGEST):
                yield _mismatch(value, name, path)
        case _Object(fields) if isinstance(value, dict):
            for key in value.keys() & fields.keys():
                yield from _wrong(value[key], fields[key], f"{path}.{key}")
        case _Map(inner) if isinstance(value, dict):
            for key, item in value.items():
                yield from _wrong(item, inner, f"{path}.{key}")
        case _List(inner) if isinstance(value, list):
            for index, item in enumerate(value):
                if item is None:
                    yield _mismatch(item, "object", f"{path}[{index}]")
                yield from _wrong(item, inner, f"{path}[{index}]")
        case _List():
            yield _mismatch(value, "list", path)
        case _:
            yield _mismatch(value, "object", path)


def _mismatch(value: object, name: str, path: str) -> str:
    return f"cannot unmarshal {type(value).__name__} into field {path} of type {name}"
