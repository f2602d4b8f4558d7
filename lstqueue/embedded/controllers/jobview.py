"""One look at a Job: its pods by what they do, and its counters in the making.

The real controller holds every pod with a finalizer until it has counted it. Here pods carry none: a pod that
vanishes uncounted is remembered (`Known.gone`) until it is counted, which comes to the same. Counting is the
only thing done here; what follows from the numbers is `jobs`' business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lstqueue.embedded.controllers import jobpods, jobpolicies, pods
from lstqueue.kube import port

Condition = dict[str, str]


@dataclass(slots=True)
class Known:
    """What the controller remembers of one Job.

    `pods`: those not counted yet, and counted ones that have not ended. `dropped`: pods that it has deleted
    itself, which count as nothing. `gone`: pods that were removed before they were counted. `failures` and
    `failed_ms`: failures since the last success, and when the last of them ended.
    """

    pods: dict[str, port.Object] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    created: int = 0
    refused: int = 0
    failures: int = 0
    failed_ms: int = 0

    def learn(self, pod: port.Object) -> None:
        """Take notice of a pod as it is now."""
        uid = pod["metadata"]["uid"]
        if uid in self.counted and pods.finished(pod):
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = pod

    def lose(self, pod: port.Object) -> None:
        """Take notice that a pod has been removed."""
        uid = pod["metadata"]["uid"]
        if uid in self.counted or uid in self.dropped:
            self.pods.pop(uid, None)
            self.counted.discard(uid)
            self.dropped.discard(uid)
        else:
            self.pods[uid] = pod
            self.gone.add(uid)

    def count(self, uid: str) -> None:
        """Remember that a pod has been counted."""
        if uid in self.gone:
            self.gone.discard(uid)
            del self.pods[uid]
            return
        self.counted.add(uid)
        if pods.finished(self.pods[uid]):
            del self.pods[uid]


@dataclass(slots=True)
class Look:
    """A Job and its pods at one time.

    `delayed` holds, with a back-off limit per index, the last failed pod of each index that waits for a
    replacement: its failure is counted when the replacement is there. `failed_job`: the message of a pod
    failure policy that ends the Job.
    """

    job: port.Object
    known: Known
    status: dict[str, Any]
    conditions: list[Any]
    active: list[port.Object] = field(default_factory=list)
    terminating: list[port.Object] = field(default_factory=list)
    completed: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    delayed: dict[int, port.Object] = field(default_factory=dict)
    failed_job: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        """The Job's spec."""
        spec: dict[str, Any] = self.job["spec"]
        return spec

    @property
    def indexed(self) -> bool:
        """Whether its pods have completion indexes."""
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def per_index(self) -> bool:
        """Whether each index has a back-off limit of its own."""
        return self.spec.get("backoffLimitPerIndex") is not None

    @property
    def failures(self) -> int:
        """Failures that count against the Job's back-off limit, those that are held back among them."""
        held = sum(jobpolicies.judge(self.spec, pod).counts for pod in self.delayed.values())
        return int(self.status.get("failed", 0)) + held

    def condition(self, kind: str) -> Condition:
        """Return a condition if it is True, else nothing."""
        for item in self.conditions:
            if item["type"] == kind and item["status"] == "True":
                found: Condition = item
                return found
        return {}

    def has(self, kind: str) -> bool:
        """Whether a condition is True."""
        return bool(self.condition(kind))


def observe(job: port.Object, known: Known) -> Look:
    """Return a look at a Job in which every pod that has ended, or failed otherwise, is counted once."""
    status = {**job.get("status", {})}
    look = Look(job, known, status, list(status.get("conditions") or ()))
    completions = job["spec"].get("completions") or 0
    for name, into in (("completedIndexes", look.completed), ("failedIndexes", look.failed_indexes)):
        into.update(index for index in jobpods.parse_indexes(status.get(name) or "") if index < completions)
    for uid, pod in known.pods.items():
        if uid not in known.gone and not pods.finished(pod):
            (look.terminating if pods.deleting(pod) else look.active).append(pod)
    succeeded, failed = _new(look)
    _note_failures_in_a_row(known, succeeded, failed)
    _count_succeeded(look, succeeded)
    _count_failed(look, failed)
    if look.indexed:
        status["completedIndexes"] = jobpods.format_indexes(look.completed)
        if look.per_index:
            status["failedIndexes"] = jobpods.format_indexes(look.failed_indexes)
    return look


def uncounted(look: Look) -> list[port.Object]:
    """Return the pods that were neither counted nor deleted by the controller."""
    known = look.known
    return [pod for uid, pod in known.pods.items() if uid not in known.counted and uid not in known.dropped]


def _new(look: Look) -> tuple[list[port.Object], list[port.Object]]:
    succeeded, failed = [], []
    for pod in uncounted(look):
        if pods.phase(pod) == "Succeeded":
            succeeded.append(pod)
        elif pod["metadata"]["uid"] in look.known.gone or jobpolicies.has_failed(look.spec, pod):
            failed.append(pod)
    return succeeded, failed


def _note_failures_in_a_row(known: Known, succeeded: list[port.Object], failed: list[port.Object]) -> None:
    """A success forgives the failures before it."""
    ends = [jobpolicies.ended_ms(pod) for pod in failed]
    if succeeded:
        since = max(jobpolicies.ended_ms(pod) for pod in succeeded)
        ends = [end for end in ends if end > since]
        known.failures = 0
    known.failures += len(ends)
    known.failed_ms = max(ends, default=known.failed_ms)


def _count_succeeded(look: Look, succeeded: Iterable[port.Object]) -> None:
    for pod in succeeded:
        index = jobpods.index_of(pod)
        if not look.indexed:
            look.status["succeeded"] = look.status.get("succeeded", 0) + 1
        elif _valid(look, index):
            assert index is not None
            look.completed.add(index)
        look.known.count(pod["metadata"]["uid"])
    if look.indexed:
        look.status["succeeded"] = len(look.completed)


def _valid(look: Look, index: int | None) -> bool:
    return index is not None and index < look.spec["completions"]


def _count_failed(look: Look, failed: list[port.Object]) -> None:
    taken = {jobpods.index_of(pod) for pod in look.active}
    for pod in failed:
        verdict = jobpolicies.judge(look.spec, pod)
        index = jobpods.index_of(pod)
        if verdict.action == jobpolicies.FAIL_JOB:
            look.failed_job = look.failed_job or verdict.message
        if look.per_index and index is not None and _valid(look, index):
            _note_failed_index(look, pod, index, verdict)
            if index not in taken | look.completed | look.failed_indexes:
                _delay(look, pod, index)
    held = {pod["metadata"]["uid"] for pod in look.delayed.values()}
    for pod in failed:
        if pod["metadata"]["uid"] not in held:
            count_failure(look, pod)


def _note_failed_index(look: Look, pod: port.Object, index: int, verdict: jobpolicies.Verdict) -> None:
    used_up = jobpods.failures_of(pod)[0] >= look.spec["backoffLimitPerIndex"]
    if verdict.action == jobpolicies.FAIL_INDEX or (verdict.counts and used_up):
        if index not in look.completed:
            look.failed_indexes.add(index)
        look.delayed.pop(index, None)


def _delay(look: Look, pod: port.Object, index: int) -> None:
    last = look.delayed.get(index)
    if last is None or sum(jobpods.failures_of(last)) <= sum(jobpods.failures_of(pod)):
        look.delayed[index] = pod


def count_failure(look: Look, pod: port.Object) -> None:
    """Count one pod as failed, unless a rule ignores it or its index is none of the Job's."""
    valid = not look.indexed or _valid(look, jobpods.index_of(pod))
    if valid and jobpolicies.judge(look.spec, pod).counts:
        look.status["failed"] = look.status.get("failed", 0) + 1
    look.known.count(pod["metadata"]["uid"])


def next_failures(look: Look, index: int) -> tuple[int, int]:
    """Return the counted and ignored failures of an index, its last one included, for its next pod."""
    last = look.delayed.get(index)
    if last is None:
        return 0, 0
    counted, ignored = jobpods.failures_of(last)
    if jobpolicies.judge(look.spec, last).counts:
        return counted + 1, ignored
    return counted, ignored + 1
