"""ResourceQuotas: what one allows, which pods it counts, and what a pod counts against it.

The rules are those of the quota plugin of the API server, which charges pods from their creation, gated ones
too. It refuses one pod after the other, so a Job of eight pods with quota for six gets six and nobody says a
word: what is here lets a gang be compared as a whole, before it takes room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, quantities
from lstqueue.jobs import podspec
from lstqueue.topology import model

Amounts = Mapping[str, int]

_REQUESTS, _LIMITS = "requests.", "limits."
_BARE = ("cpu", "memory", "ephemeral-storage")
"""Resources whose requests have a short key as well, and the only ones whose limits count."""
_HUGE = "hugepages-"


@dataclass(frozen=True, slots=True)
class Charge:
    """What one object counts for each key of a quota, and by which scopes quotas choose it.

    `pod` is false for what makes pods (Jobs, Services): quotas with scopes choose pods only.
    """

    amounts: tuple[tuple[str, int], ...]
    pod: bool = True
    terminating: bool = False
    best_effort: bool = False
    priority_class: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """One condition of a quota; `operator` compares the priority class, and is Exists for all others."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def chooses(self, charge: Charge) -> bool:
        """Whether a pod is of this scope; no pod that can be queued is of one that is not known here."""
        match self.name:
            case "Terminating":
                return charge.terminating
            case "NotTerminating":
                return not charge.terminating
            case "BestEffort":
                return charge.best_effort
            case "NotBestEffort":
                return not charge.best_effort
            case "PriorityClass":
                return self._compares(charge.priority_class)
        return False

    def _compares(self, name: str) -> bool:
        match self.operator:
            case "In":
                return name in self.values
            case "NotIn":
                return name not in self.values
            case "DoesNotExist":
                return not name
        return bool(name)


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota: what it allows and what is in use, by key, in the unit of the key's resource."""

    namespace: str
    name: str
    hard: tuple[tuple[str, int], ...]
    used: tuple[tuple[str, int], ...]
    scopes: tuple[Scope, ...] = ()

    def counts(self, charge: Charge) -> bool:
        """Whether it counts an object."""
        if self.scopes and not charge.pod:
            return False
        return all(scope.chooses(charge) for scope in self.scopes)

    def free(self) -> dict[str, int]:
        """Return what is left by key, below zero where more is in use than allowed."""
        used = dict(self.used)
        return {key: amount - used.get(key, 0) for key, amount in self.hard}


def read(raw: Mapping[str, Any]) -> Quota:
    """Project a ResourceQuota."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    selector = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return Quota(
        namespace=meta["namespace"],
        name=meta["name"],
        hard=_amounts(spec.get("hard") or {}),
        used=_amounts(status.get("used") or {}),
        scopes=(
            *(Scope(name) for name in spec.get("scopes") or ()),
            *(
                Scope(item["scopeName"], item.get("operator") or "Exists", tuple(item.get("values") or ()))
                for item in selector
            ),
        ),
    )


def charge(spec: Mapping[str, Any]) -> Charge:
    """Return what a pod with this spec counts.

    Raises:
        BadValueError: it asks for an amount that cannot be reckoned with.
    """
    requests = {name: amount for name, amount in podspec.requests(spec) if name != model.PODS}
    limits = dict(podspec.limits(spec))
    amounts = {"pods": 1, "count/pods": 1}
    for name, amount in requests.items():
        amounts[_REQUESTS + name] = amount
        if name in _BARE or name.startswith(_HUGE):
            amounts[name] = amount
    amounts.update({_LIMITS + name: limits[name] for name in _BARE if name in limits})
    return Charge(
        amounts=tuple(sorted(amounts.items())),
        terminating=spec.get("activeDeadlineSeconds") is not None,
        best_effort=not any(amounts.get(key) for key in ("cpu", "memory", "limits.cpu", "limits.memory")),
        priority_class=str(spec.get("priorityClassName") or ""),
    )


def objects(*keys: str) -> Charge:
    """Return what an object that is no pod counts: one for each of the keys."""
    return Charge(amounts=tuple((key, 1) for key in keys), pod=False)


def text(key: str, amount: int) -> str:
    """Return an amount of a key as people write it."""
    return quantities.format(_resource(key), amount)


def _amounts(raw: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Read amounts; one beyond what can be reckoned with bounds nothing."""
    found = []
    for key, value in sorted(raw.items()):
        try:
            found.append((key, quantities.parse(_resource(key), value)))
        except errors.BadValueError:
            continue
    return tuple(found)


def _resource(key: str) -> str:
    for prefix in (_REQUESTS, _LIMITS):
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key
