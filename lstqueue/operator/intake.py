"""What the API server makes of a gang's pods: one dry run per group on arrival.

The effective requests (after LimitRanges, RuntimeClasses and defaults) and the effective priority come from
the server itself, and so do its refusals. Only an answer that can never change ends a job; everything else
is a reason to wait and to ask again. Equal templates in one namespace are asked about once: for good where
the server would take them, else once per interval, however many jobs wait for the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, names
from lstqueue.engine import model
from lstqueue.jobs import inline, podspec
from lstqueue.kube import port


@dataclass(frozen=True, slots=True)
class Answer:
    """`groups` when the server would take the pods; else the `problem`, final or to be asked again."""

    groups: tuple[model.Group, ...] | None = None
    problem: str = ""
    reason: str = ""
    final: bool = False


class Intake:
    """Asks the API server, and remembers its answers by (namespace, shape hash).

    Args:
        api: where to ask.
        now: ms since the epoch.
        interval: ms for which a refusal is taken to hold.
        remembered: how many answers are kept.
    """

    def __init__(
        self, api: port.KubeApi, *, now: Callable[[], int], interval: int, remembered: int = 10_000
    ) -> None:
        self._api = api
        self._now = now
        self._interval = interval
        self._remembered = remembered
        self._answers: dict[tuple[str, str], tuple[Answer, int]] = {}
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}

    def known(self, namespace: str, shape: str) -> Answer | None:
        """Return an answer that was had before and still holds."""
        answer, at = self._answers.get((namespace, shape), (None, 0))
        if answer is None or answer.groups is not None or self._now() < at + self._interval:
            return answer
        return None

    async def ask(self, gang: inline.Gang, shape: str, templates: Mapping[str, Mapping[str, Any]]) -> Answer:
        """Return what the server makes of a gang; raises nothing but bugs."""
        key = (gang.namespace, shape)
        async with self._asking.setdefault(key, asyncio.Lock()):
            # Equal gangs that come together wait here for the first one's answer.
            answer = self.known(*key)
            if answer is None:
                answer = await self._dry_run(gang, templates)
                self._answers[key] = (answer, self._now())
        self._asking.pop(key, None)
        if len(self._answers) > self._remembered:
            self._answers.pop(next(iter(self._answers)))
        return answer

    async def _dry_run(self, gang: inline.Gang, templates: Mapping[str, Mapping[str, Any]]) -> Answer:
        groups = []
        for name, replicas in gang.groups:
            try:
                body = inline.probe_pod(gang, name, templates[name])
                seen = await self._api.create(port.PODS, gang.namespace, body, dry_run=True)
                refused = _refusal(seen["spec"])
                if refused:
                    return Answer(
                        problem=f"spec.groups[{name}].template.{refused}",
                        reason="UnsupportedConstraint",
                        final=True,
                    )
                groups.append(model.Group(name, replicas, podspec.shape(seen["spec"])))
            except errors.BadValueError as error:
                return Answer(
                    problem=f"spec.groups[{name}].template: {error}", reason="InvalidTemplate", final=True
                )
            except port.ApiError as error:
                if isinstance(error, port.InvalidError) and not _by_policy(error):
                    return Answer(
                        problem=f"spec.groups[{name}].template: {error.message}",
                        reason="InvalidTemplate",
                        final=True,
                    )
                return Answer(
                    problem=f"the API server refuses a pod of group {name}: {error.message}",
                    reason=error.reason or "Refused",
                )
        return Answer(groups=tuple(groups))


def _by_policy(error: port.InvalidError) -> bool:
    """Whether somebody's policy refused, which may change, and not the server's own validation.

    A webhook that names no code refuses with 400, a ValidatingAdmissionPolicy with 422: only words differ.
    """
    return error.message.startswith("admission webhook ") or " is forbidden: " in error.message


def _refusal(spec: Mapping[str, Any]) -> str:
    """Say what in an accepted pod lstqueue cannot honour, "" when all is well."""
    constraint = podspec.unsupported(spec)
    if constraint:
        return f"{constraint} is not modelled by the placement; remove it"
    if spec.get("priorityClassName") != names.PRIORITY_CLASS and spec.get("preemptionPolicy") != "Never":
        return (
            f"spec.priorityClassName {spec.get('priorityClassName')!r} would let single pods preempt; "
            f"use {names.PRIORITY_CLASS!r} or leave it out"
        )
    return ""
