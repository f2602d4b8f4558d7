"""A namespace with its record, our operator at work in it: what users do there, and what they then see."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import documented_role
import operator_run
import plain_jobs
import stack

from lstqueue.api import names
from lstqueue.jobs import views
from lstqueue.kube import port
from lstqueue.operator import settings as all_settings

Object = dict[str, Any]

ENDED = ("Succeeded", "Failed")


def our_job(
    name: str,
    count: int,
    queue: str | None,
    *,
    gpus: int = 8,
    said: Object | None = None,
    run_for: str = "",
    **spec: Any,
) -> Object:
    """A suspended Job of a user with our label, and with our annotations by their short names."""
    pods = plain_jobs.template(gpus=gpus, annotations={"sim/run-for": run_for} if run_for else {})
    body = plain_jobs.job(name, count, pods=pods, **{"suspend": True, **spec})
    body["metadata"]["labels"] = {} if queue is None else {names.LABEL_QUEUE: queue}
    body["metadata"]["annotations"] = {f"{names.GROUP}/{key}": value for key, value in (said or {}).items()}
    return body


class Scene(plain_jobs.Namespace):
    """What a test does in a namespace, and what was seen of it; its queue has its name."""

    def __init__(self, api: port.KubeApi, namespace: str, record: operator_run.Record) -> None:
        super().__init__(api, namespace)
        self.record = record

    # What users do

    async def submit(self, name: str, count: int, **more: Any) -> Object:
        """Create a labelled Job; see `our_job`."""
        return await self.create(port.JOBS, our_job(name, count, self.name, **more))

    async def submit_inline(self, name: str, *groups: Object, **spec: Any) -> Object:
        """Create a DeadlineJob with groups of its own."""
        return await self.create(
            port.DEADLINE_JOBS, operator_run.deadline_job(name, self.name, list(groups), **spec)
        )

    async def activate(self, name: str, active: bool) -> None:
        """Pause a job, or end its pause, in its DeadlineJob."""
        meta = self.ledger(name)["metadata"]
        await self.patch(meta["name"], {"spec": {"active": active}}, port.DEADLINE_JOBS)

    async def finish(self, *pods: Object) -> None:
        """Let pods succeed."""
        for pod in pods:
            await self.end(pod, "Succeeded")

    # What was seen

    def newest(self, kind: str) -> list[Object]:
        """The newest version of each object of a kind that is still there."""
        found: dict[str, tuple[str, Object]] = {}
        for _, event, raw in sorted(self.record.seen, key=lambda row: row[0]):
            if raw["kind"] == kind:
                found[raw["metadata"]["uid"]] = (event, raw)
        return [raw for event, raw in found.values() if event != "DELETED"]

    def ledger(self, name: str) -> Object:
        """The DeadlineJob of that name, or the newest for the Job of that name."""
        found = [raw for raw in self.newest("DeadlineJob") if named(raw) == name]
        return found[-1] if found else {}

    def status(self, name: str) -> Object:
        return dict(self.ledger(name).get("status") or {})

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def phases(self, name: str) -> list[str]:
        """The phases that a DeadlineJob went through."""
        found = [raw["status"]["phase"] for raw in self.record.of("DeadlineJob") if _told(raw, name)]
        return [phase for number, phase in enumerate(found) if number == 0 or phase != found[number - 1]]

    def condition(self, name: str, kind: str) -> Object:
        return next((item for item in self.status(name).get("conditions", ()) if item["type"] == kind), {})

    def job(self, name: str, kind: str = "Job") -> Object:
        return next(raw for raw in self.newest(kind) if raw["metadata"]["name"] == name)

    def children(self, name: str) -> list[Object]:
        """The Job that a DeadlineJob refers to, or the Jobs of its groups."""
        job = self.ledger(name)
        reference = job["spec"].get("jobRef")
        if reference:
            return [self.job(reference["name"], reference["kind"])]
        uid = job["metadata"]["uid"]
        return [
            raw
            for raw in self.newest("Job")
            if any(owner["uid"] == uid for owner in raw["metadata"].get("ownerReferences", ()))
        ]

    def members(self, name: str) -> list[Object]:
        """The pods of a job that have not ended, in the order of their names."""
        makers = {raw["metadata"]["uid"] for raw in self.children(name)}
        found = [
            raw
            for raw in self.newest("Pod")
            if raw["status"].get("phase") not in ENDED
            and any(owner["uid"] in makers for owner in raw["metadata"].get("ownerReferences", ()))
        ]
        return sorted(found, key=lambda raw: str(raw["metadata"]["name"]))

    def nodes(self, name: str) -> list[str]:
        """Where the pods of a job are that have not ended."""
        return sorted(raw["spec"]["nodeName"] for raw in self.members(name) if raw["spec"].get("nodeName"))

    async def until_seen(self, found: Callable[[], Any], what: str, *, within_s: float = 60.0) -> Any:
        return await self.record.until(found, what=what, within_s=within_s)

    async def until_phase(self, name: str, *phases: str, within_s: float = 60.0) -> None:
        await self.until_seen(
            lambda: self.phase(name) in phases, f"{name} is {' or '.join(phases)}", within_s=within_s
        )

    async def until_pending(self, name: str, *codes: str) -> None:
        await self.until_seen(
            lambda: (self.status(name).get("pending") or {}).get("code") in codes,
            f"{name} waits for {' or '.join(codes)}",
        )

    async def reasons(self, kind: str, name: str) -> set[str]:
        """Reasons of the Events about an object."""
        fields = f"involvedObject.kind={kind},involvedObject.name={name}"
        found = await self.api.list_page(port.EVENTS, namespace=self.name, fields=fields)
        return {item["reason"] for item in found.items}

    async def until_told(self, kind: str, name: str, reason: str) -> None:
        async def look() -> bool:
            return reason in await self.reasons(kind, name)

        await self.until(look, f"an Event {reason} on {kind} {name}")

    def assert_sound(self) -> None:
        """Fail if the auditor finds anything in the record."""
        assert self.record.violations() == []


def named(raw: Object) -> str:
    return str((raw["spec"].get("jobRef") or raw["metadata"])["name"])


def _told(raw: Object, name: str) -> bool:
    return named(raw) == name and bool((raw.get("status") or {}).get("phase"))


def places(grant: Object) -> dict[int, str]:
    """Node of each rank, as an admission says."""
    return {
        rank: item["node"]
        for group in grant["groups"]
        for item in group["nodes"]
        for rank in views.indexes(item["ranks"])
    }


def claimed(claim: Object) -> list[str]:
    """Node of each member, as a claim says."""
    return sorted(
        item["node"] for group in claim["groups"] for item in group["nodes"] for _ in range(item["count"])
    )


@contextlib.asynccontextmanager
async def watched(api: port.KubeApi, namespace: str) -> AsyncIterator[Scene]:
    """A scene without an operator, judged by the auditor at its end."""
    async with operator_run.record(api, namespace) as record:
        made = Scene(api, namespace, record)
        yield made
        made.assert_sound()


@contextlib.asynccontextmanager
async def scene(
    plane: stack.ControlPlane,
    api: port.KubeApi,
    namespace: str,
    *,
    before: operator_run.Before | None = None,
    may_not: tuple[str, ...] = (),
    settings: all_settings.Settings = operator_run.PROMPT,
) -> AsyncIterator[Scene]:
    """A scene with the operator under its documented role, judged by the auditor at its end."""
    role = documented_role.kubeconfig(plane)
    run = operator_run.operator(role, settings, before=before, may_not=may_not)
    async with watched(api, namespace) as made, run:
        yield made
