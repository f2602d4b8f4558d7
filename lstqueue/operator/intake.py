"""What the API server makes of a gang's pods: one dry run per group on arrival.

The effective requests (after LimitRanges, RuntimeClasses and defaults) and the effective priority come from
the server itself, and so do its refusals. Only an answer that can never change ends a job; everything else
is a reason to wait and to ask again. Equal templates in one namespace are asked about once per interval,
however many jobs wait for the answer; what the server would take holds a little longer than what it refuses,
though not for good, since LimitRanges and policies change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, names
from lstqueue.engine import model
from lstqueue.jobs import inline, kinds, podspec, quotas
from lstqueue.kube import port
from lstqueue.operator import allowances

ACCEPTED = 600_000
"""Ms for which the server's acceptance of a template is taken to hold for equal ones."""
_QUOTA = "exceeded quota: "
"""What the server's quota plugin says of a pod for which there is no room now; it may be there later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`groups` when the server would take the pods; else the `problem`, final or to be asked again.

    It names nobody: all equal gangs of a namespace get it (`words` says it of one of them).
    `priority_class` is one that the user of an existing job chose, and that its queue has to allow. `charges`
    are what a pod of each group counts against ResourceQuotas.
    """

    groups: tuple[model.Group, ...] | None = None
    problem: str = ""
    reason: str = ""
    final: bool = False
    priority_class: str = ""
    charges: tuple[tuple[str, quotas.Charge], ...] = ()

    def words(self, existing: str) -> str:
        """Return the problem for the user of the `existing` job so named, "" for an inline gang."""
        return f"{existing}: {self.problem}" if existing else self.problem


class Intake:
    """Asks the API server, and remembers its answers by (namespace, shape hash).

    Args:
        api: where to ask.
        now: ms since the epoch.
        interval: ms for which a refusal is taken to hold.
        accepted: ms for which an acceptance is.
    """

    def __init__(
        self, api: port.KubeApi, *, now: Callable[[], int], interval: int, accepted: int = ACCEPTED
    ) -> None:
        self._api = api
        self._now = now
        self._interval = interval
        self._accepted = accepted
        self._answers: dict[tuple[str, str], tuple[Answer, int]] = {}
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}

    def known(self, namespace: str, shape: str) -> Answer | None:
        """Return an answer that was had before and still holds."""
        answer, until = self._answers.get((namespace, shape), (None, 0))
        return answer if self._now() < until else None

    def forget(self, namespace: str) -> None:
        """Ask anew about what was refused in a namespace for its quotas: they have changed."""
        for key, (answer, _) in list(self._answers.items()):
            if key[0] == namespace and answer.reason == allowances.EXCEEDED:
                del self._answers[key]

    def forget_all(self) -> None:
        """Ask anew about everything, for it is not known any more when answers cease to hold."""
        self._answers.clear()

    async def ask(
        self,
        gang: inline.Gang,
        shape: str,
        templates: Mapping[str, Mapping[str, Any]],
        *,
        adapter: kinds.Adapter | None = None,
    ) -> Answer:
        """Return what the server makes of a gang, of an existing job by its `adapter`; raises only bugs."""
        key = (gang.namespace, shape)
        async with self._asking.setdefault(key, asyncio.Lock()):
            # Equal gangs that come together wait here for the first one's answer.
            answer = self.known(*key)
            if answer is None:
                answer = await self._dry_run(gang, templates, adapter)
                self._remember(key, answer)
        self._asking.pop(key, None)
        return answer

    def _remember(self, key: tuple[str, str], answer: Answer) -> None:
        """Keep an answer while it holds; those that no longer do go, the oldest first."""
        now = self._now()
        self._answers.pop(key, None)
        self._answers[key] = (answer, now + (self._interval if answer.groups is None else self._accepted))
        while (oldest := next(iter(self._answers))) != key and self._answers[oldest][1] <= now:
            del self._answers[oldest]

    async def _dry_run(
        self, gang: inline.Gang, templates: Mapping[str, Mapping[str, Any]], adapter: kinds.Adapter | None
    ) -> Answer:
        groups, charges, priority_class = [], [], ""
        # Before the server is asked, which would speak of the gate that is ours, and of one thing at a time.
        found = [
            f"{_where(name, adapter)}.{constraint}"
            for name, _ in gang.groups
            for constraint in podspec.unsupported(templates[name].get("spec"))
        ]
        if found:
            return Answer(problem=_not_modelled(found), reason="UnsupportedConstraint", final=True)
        for name, replicas in gang.groups:
            where = _where(name, adapter)
            try:
                if adapter is not None:
                    body = adapter.probe_pod(templates[name], name)
                    priority_class = priority_class or await self._chosen_class(templates[name])
                else:
                    body = inline.probe_pod(gang, name, templates[name])
                seen = await self._api.create(port.PODS, gang.namespace, body, dry_run=True)
                refused = _refusal(seen["spec"], existing=adapter is not None)
                if refused:
                    return Answer(problem=f"{where}.{refused}", reason="UnsupportedConstraint", final=True)
                groups.append(model.Group(name, replicas, podspec.shape(seen["spec"])))
                charges.append((name, quotas.charge(seen["spec"])))
            except errors.BadValueError as error:
                return Answer(problem=f"{where}: {error}", reason="InvalidTemplate", final=True)
            except port.ApiError as error:
                if isinstance(error, port.InvalidError) and not _by_policy(error):
                    return Answer(problem=f"{where}: {error.message}", reason="InvalidTemplate", final=True)
                return Answer(
                    problem=f"the API server refuses a pod of group {name}: {error.message}",
                    reason=allowances.EXCEEDED if _QUOTA in error.message else error.reason or "Refused",
                )
        return Answer(groups=tuple(groups), priority_class=priority_class, charges=tuple(charges))

    async def _chosen_class(self, template: Mapping[str, Any]) -> str:
        """Return the priority class a user chose instead of the cluster's default or our own, else ""."""
        chosen = str(template["spec"].get("priorityClassName") or "")
        if chosen in ("", names.PRIORITY_CLASS):
            return ""
        try:
            found = await self._api.get(port.PRIORITY_CLASSES, None, chosen)
        except port.NotFoundError:
            return chosen
        return "" if found.get("globalDefault") else chosen


def _where(group: str, adapter: kinds.Adapter | None) -> str:
    return f"spec.groups[{group}].template" if adapter is None else adapter.template_path(group)


def _not_modelled(fields: Sequence[str]) -> str:
    """Say that a template asks for what placement cannot honour, all of it at once."""
    if len(fields) == 1:
        return f"{fields[0]} is not modelled by the placement; remove it"
    return f"{', '.join(fields[:-1])} and {fields[-1]} are not modelled by the placement; remove them"


def _by_policy(error: port.InvalidError) -> bool:
    """Whether somebody's policy refused, which may change, and not the server's own validation.

    A webhook that names no code refuses with 400, a ValidatingAdmissionPolicy with 422: only words differ.
    """
    return error.message.startswith("admission webhook ") or " is forbidden: " in error.message


def _refusal(spec: Mapping[str, Any], *, existing: bool) -> str:
    """Say what in an accepted pod lstqueue cannot honour, "" when all is well.

    The priority of an `existing` job is the business of its queue, which lists the classes it takes.
    """
    constraints = podspec.unsupported(spec)
    if constraints:
        return _not_modelled(constraints)
    if existing:
        return ""
    if spec.get("priorityClassName") != names.PRIORITY_CLASS and spec.get("preemptionPolicy") != "Never":
        return (
            f"spec.priorityClassName {spec.get('priorityClassName')!r} would let single pods preempt; "
            f"use {names.PRIORITY_CLASS!r} or leave it out"
        )
    return ""
