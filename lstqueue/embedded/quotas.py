"""ResourceQuotas: what a namespace uses, and the refusal of what would exceed its bounds.

A real cluster charges in an admission plugin and corrects in a controller; here one subscriber of the store
does both at once, whether or not controllers run. Pods are charged from their creation (gated ones too) until
they have ended, or are overdue in leaving. Objects of any kind are counted by `count/<plural>.<group>`.
Scopes are refused rather than ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lstqueue.api import errors, quantities
from lstqueue.embedded import eventlog, failures, metadata, rules
from lstqueue.embedded.controllers import pods
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_PARTS = {"requests.": ("requests",), "limits.": ("limits",)}
_BARE = ("cpu", "memory", "ephemeral-storage")
_EXPLICIT = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_COUNT = "count/"
_COUNTED = {"services": port.SERVICES, "resourcequotas": port.RESOURCE_QUOTAS}
_STANDARD = frozenset((*_BARE, *_EXPLICIT, "pods", "requests.ephemeral-storage", "limits.ephemeral-storage"))
_SCOPES = ("scopes", "scopeSelector")


class _Store(Protocol):
    def keys(self, resource: port.Resource, namespace: str) -> list[str]: ...

    def list(self, resource: port.Resource, *, namespace: str | None = None) -> list[Any]: ...

    def now_ms(self) -> int: ...

    def patch(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        body: port.Object,
        *,
        subresource: str = "",
    ) -> port.Object: ...


@dataclass(slots=True)
class _Account:
    """One namespace with quotas: what its pods are charged, and until when those that leave are (ms)."""

    quotas: dict[str, port.Object] = field(default_factory=dict)
    charged: dict[str, pods.Amounts] = field(default_factory=dict)
    overdue: dict[str, int] = field(default_factory=dict)
    used: pods.Amounts = field(default_factory=dict)

    def charge(self, uid: str, amounts: pods.Amounts) -> None:
        """Charge a pod anew."""
        for name, amount in self.charged.pop(uid, {}).items():
            self.used[name] -= amount
        self.overdue.pop(uid, None)
        if amounts:
            self.charged[uid] = amounts
            for name, amount in amounts.items():
                self.used[name] = self.used.get(name, 0) + amount


class Accounts:
    """Watches one store.

    Args:
        source: the cluster's objects.
    """

    def __init__(self, source: _Store) -> None:
        self._store = source
        self._accounts: dict[str, _Account] = {}

    def written(self, event: eventlog.Event) -> None:
        """Take notice of a write."""
        namespace = event.object["metadata"].get("namespace", "")
        if event.resource == port.RESOURCE_QUOTAS:
            self._quota(namespace, event)
        account = self._accounts.get(namespace)
        if account is None or not namespace:
            return
        if event.resource == port.PODS:
            self._pod(account, event.object, gone=event.type == eventlog.DELETED)
        elif event.type == eventlog.MODIFIED and event.resource != port.RESOURCE_QUOTAS:
            return
        self._report(namespace, account)

    def check(self, resource: port.Resource, new: port.Object) -> None:
        """Refuse the creation of an object that would exceed a quota of its namespace.

        Raises:
            port.ForbiddenError: naming the quota, what is asked for and what is left.
        """
        namespace = new["metadata"].get("namespace", "")
        account = self._accounts.get(namespace)
        if account is None:
            return
        for name in sorted(account.quotas):
            self._check_one(namespace, account, account.quotas[name], resource, new)

    def _check_one(
        self, namespace: str, account: _Account, quota: port.Object, resource: port.Resource, new: port.Object
    ) -> None:
        title, name = quota["metadata"]["name"], new["metadata"]["name"]
        hard = _hard(quota)
        if resource == port.PODS and (missing := _unstated(new["spec"], hard)):
            raise failures.forbidden(resource, name, f"failed quota: {title}: must specify {missing}")
        asked = _counts_of(resource) | (_charge(new) if resource == port.PODS else {})
        used = self._used(namespace, account, hard)
        over = [key for key in sorted(asked) if key in hard and used[key] + asked[key] > hard[key]]
        if over:
            told = ", ".join(
                f"{word}: {','.join(f'{key}={_text(key, amounts[key])}' for key in over)}"
                for word, amounts in (("requested", asked), ("used", used), ("limited", hard))
            )
            raise failures.forbidden(resource, name, f"exceeded quota: {title}, {told}")

    def _quota(self, namespace: str, event: eventlog.Event) -> None:
        name = event.object["metadata"]["name"]
        if event.type == eventlog.DELETED:
            account = self._accounts[namespace]
            account.quotas.pop(name, None)
            if not account.quotas:
                del self._accounts[namespace]
            return
        known = self._accounts.get(namespace)
        if known is None:
            known = self._accounts[namespace] = _Account()
            for pod in self._store.list(port.PODS, namespace=namespace):
                self._pod(known, pod, gone=False)
        known.quotas[name] = event.object

    def _pod(self, account: _Account, pod: port.Object, *, gone: bool) -> None:
        meta = pod["metadata"]
        account.charge(meta["uid"], {} if gone or pods.finished(pod) else _charge(pod))
        if meta["uid"] in account.charged and pods.deleting(pod):
            grace = meta.get("deletionGracePeriodSeconds") or 0
            account.overdue[meta["uid"]] = metadata.parse_timestamp(meta["deletionTimestamp"]) + grace * 1000

    def _used(self, namespace: str, account: _Account, hard: Mapping[str, int]) -> pods.Amounts:
        now = self._store.now_ms()
        for uid in [uid for uid, until in account.overdue.items() if until < now]:
            account.charge(uid, {})
        return {key: self._count(namespace, account, key) for key in hard}

    def _count(self, namespace: str, account: _Account, key: str) -> int:
        counted = _resource_of(key)
        if counted is None:
            return account.used.get(key, 0)
        try:
            return len(self._store.keys(counted, namespace))
        except port.NotFoundError:
            return 0  # a kind that this server does not have

    def _report(self, namespace: str, account: _Account) -> None:
        for name, quota in sorted(account.quotas.items()):
            hard = _hard(quota)
            used = self._used(namespace, account, hard)
            status = {
                "hard": {key: _text(key, amount) for key, amount in hard.items()},
                "used": {key: _text(key, amount) for key, amount in used.items()},
            }
            before = quota.get("status") or {}
            if status != before:
                gone = {part: dict.fromkeys((before.get(part) or {}).keys() - hard.keys()) for part in status}
                body = {part: {**gone[part], **status[part]} for part in status}
                account.quotas[name] = {**quota, "status": status}
                self._store.patch(
                    port.RESOURCE_QUOTAS, namespace, name, {"status": body}, subresource="status"
                )


def _charge(pod: port.Object) -> pods.Amounts:
    """Return what a pod is charged, by the keys that a quota may have."""
    charged = {"pods": 1}
    for prefix, parts in _PARTS.items():
        for name, amount in pods.totals(pod["spec"], parts).items():
            if prefix == "requests." or name in _BARE:
                charged[prefix + name] = amount
            if prefix == "requests." and name in _BARE:
                charged[name] = amount
    return charged


def _counts_of(resource: port.Resource) -> pods.Amounts:
    qualified = failures.qualified(resource)
    counts = {_COUNT + qualified: 1}
    if _COUNTED.get(resource.plural) == resource:
        counts[resource.plural] = 1
    return counts


def _resource_of(key: str) -> port.Resource | None:
    """Return the kind whose objects a key counts, None for a key that sums what pods ask for."""
    if not key.startswith(_COUNT):
        return _COUNTED.get(key)
    plural, _, group = key.removeprefix(_COUNT).partition(".")
    return port.Resource(group, "", plural, "")


def _unstated(spec: Mapping[str, Any], hard: Mapping[str, int]) -> str:
    """Return which bounded resources which containers leave open, in the words of the refusal."""
    missing: dict[str, set[str]] = {}
    for key in hard.keys() & set(_EXPLICIT):
        limits = key.startswith("limits.")
        for group in ("containers", "initContainers"):
            for container in spec.get(group) or ():
                stated = pods.of_container(container, ("limits",) if limits else ("requests",))
                if key.rpartition(".")[2] not in stated:
                    missing.setdefault(key, set()).add(container["name"])
    return "; ".join(f"{key} for: {','.join(sorted(missing[key]))}" for key in sorted(missing))


def _base(key: str) -> str:
    for prefix in _PARTS:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key


def _text(key: str, amount: int) -> str:
    return quantities.format(_base(key), amount)


def _hard(quota: port.Object) -> dict[str, int]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {key: quantities.parse(_base(key), value) for key, value in hard.items()}


def _check(new: port.Object, _old: port.Object | None) -> list[Violation]:
    spec = new.get("spec") or {}
    found = []
    for key, value in (spec.get("hard") or {}).items():
        path = f"spec.hard[{key}]"
        if key not in _STANDARD and "/" not in key and key not in _COUNTED:
            found.append(failures.bad(path, key, "must be a standard resource for quota"))
            continue
        try:
            quantities.parse(_base(key), value)
        except errors.BadValueError as error:
            found.append(failures.bad(path, value, str(error)))
    found += [
        failures.forbidden_field(f"spec.{key}", "this server does not know scopes of quotas")
        for key in _SCOPES
        if spec.get(key)
    ]
    return found


RULES = rules.Rules(check=_check)
