"""What a pod spec means for the fit: its requests, its constraints, and what the fit does not model.

Works on plain JSON as the API server returns it, after defaulting and LimitRanges. It does not decide
anything; a constraint that the placement cannot honour is named, so that intake can refuse it instead of
admitting a gang that the scheduler would leave unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lstqueue.api import quantities
from lstqueue.topology import model

Spec = Mapping[str, Any]
_Stated = Callable[[Spec], Mapping[str, Any] | None]
"""From a container to what it states of each resource."""


def requests(spec: Spec) -> model.Resources:
    """Return the effective requests of a pod, one pod slot included.

    The rule is the scheduler's: the sum over containers, restartable init containers added from their place
    on, the largest plain init container if that is more; what the pod as a whole asks for instead of that;
    plus the overhead.

    Raises:
        BadValueError: an amount that cannot be reckoned with; an API server may well store it (2E of memory).
    """
    running = _effective(spec, _declared, "requests")
    _add(running, _amounts(spec.get("overhead") or {}))
    running[model.PODS] = 1
    return model.resources(running)


def limits(spec: Spec) -> model.Resources:
    """Return the effective limits of a pod, by the rule of its requests; overhead adds to what is limited.

    Raises:
        BadValueError: as for `requests`.
    """
    running = _effective(spec, lambda container: (container.get("resources") or {}).get("limits"), "limits")
    overhead = _amounts(spec.get("overhead") or {})
    _add(running, {name: amount for name, amount in overhead.items() if running.get(name)})
    return model.resources(running)


def asked(spec: Spec) -> set[str]:
    """Return the names of all resources that a pod asks for, however much of each."""
    found = set((spec.get("resources") or {}).get("requests") or {}) | set(spec.get("overhead") or {})
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        found |= _declared(container).keys()
    return found


def shape(spec: Spec) -> model.PodShape:
    """Return all that decides where the pod may run."""
    return model.PodShape(
        requests=requests(spec),
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        affinity=required_terms(spec),
        tolerations=tolerations(spec.get("tolerations") or []),
    )


def tolerations(raw: Iterable[Mapping[str, Any]]) -> tuple[model.Toleration, ...]:
    """Read tolerations; those of a limited time count as none, since a gang must not be evicted later."""
    return tuple(
        model.Toleration(
            key=item.get("key") or "",
            operator=item.get("operator") or "Equal",
            value=item.get("value") or "",
            effect=item.get("effect") or "",
        )
        for item in raw
        if item.get("tolerationSeconds") is None
    )


def unsupported(spec: object) -> tuple[str, ...]:
    """Name the constraints that the placement does not model, as field paths.

    Also of a spec that no API server has judged yet, with anything in it: what makes no sense is left to it.
    """
    given = _mapping(spec)
    affinity = _mapping(given.get("affinity"))
    required = _mapping(_mapping(affinity.get("nodeAffinity")).get(_REQUIRED))
    terms = [_mapping(term) for term in _items(required.get("nodeSelectorTerms"))]
    spread = [_mapping(item) for item in _items(given.get("topologySpreadConstraints"))]
    hard = any(item.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for item in spread)
    found = {
        # A term without expressions matches no node, and the API server refuses to have a pin added to it.
        "spec.affinity.nodeAffinity": not all(
            term.get("matchExpressions") or term.get("matchFields") for term in terms
        ),
        "spec.affinity.podAffinity": _mapping(affinity.get("podAffinity")).get(_REQUIRED),
        "spec.affinity.podAntiAffinity": _mapping(affinity.get("podAntiAffinity")).get(_REQUIRED),
        "spec.topologySpreadConstraints": hard,
        "spec.resourceClaims": given.get("resourceClaims"),
        "spec.nodeName": given.get("nodeName"),
        "spec.hostNetwork": given.get("hostNetwork"),
        "spec.containers[].ports[].hostPort": any(port.get("hostPort") for port in _ports(given)),
    }
    return tuple(field for field, there in found.items() if there)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _ports(spec: Spec) -> Iterator[Spec]:
    for key in ("containers", "initContainers"):
        for container in _items(spec.get(key)):
            yield from map(_mapping, _items(_mapping(container).get("ports")))


def _mapping(value: object) -> Spec:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def required_terms(spec: Spec) -> tuple[tuple[model.Requirement, ...], ...]:
    """Return the terms of the required node affinity."""
    return tuple(_term(term) for term in raw_terms(spec))


def raw_terms(spec: Spec) -> list[Mapping[str, Any]]:
    """Return the terms of the required node affinity as the API has them."""
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def _term(term: Mapping[str, Any]) -> tuple[model.Requirement, ...]:
    """Read a term; one without expressions stays empty, which matches no node."""
    found = [_requirement(item, field=False) for item in term.get("matchExpressions") or []]
    found += [_requirement(item, field=True) for item in term.get("matchFields") or []]
    return tuple(found)


def _requirement(item: Mapping[str, Any], *, field: bool) -> model.Requirement:
    return model.Requirement(
        key=str(item.get("key", "")),
        operator=str(item.get("operator", "")),
        values=tuple(item.get("values") or ()),
        field=field,
    )


def _effective(spec: Spec, stated: _Stated, part: str) -> dict[str, int]:
    """Sum what containers state, and take instead of that what the pod states as a whole in `part`."""
    running: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(running, _amounts(stated(container) or {}))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        wanted = _amounts(stated(container) or {})
        if container.get("restartPolicy") == "Always":
            _add(sidecars, wanted)
            _raise(peak, sidecars)
        else:
            start = dict(sidecars)
            _add(start, wanted)
            _raise(peak, start)
    _add(running, sidecars)
    _raise(running, peak)
    running.update(_amounts((spec.get("resources") or {}).get(part) or {}))
    return running


def _declared(container: Mapping[str, Any]) -> dict[str, Any]:
    declared = container.get("resources") or {}
    # A limit without a request is the request; the API server defaults it so, a raw template does not.
    return {**(declared.get("limits") or {}), **(declared.get("requests") or {})}


def _amounts(raw: Mapping[str, Any]) -> dict[str, int]:
    return {name: quantities.parse(name, value) for name, value in raw.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, 0), amount)
