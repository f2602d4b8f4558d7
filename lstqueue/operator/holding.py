"""Why a waiting job may not be admitted for reasons outside the engine: a code for programs, and words."""

from __future__ import annotations

from lstqueue.api import names
from lstqueue.engine import words as engine_words
from lstqueue.jobs import kinds
from lstqueue.operator import allowances, guard, ledger, specs
from lstqueue.operator import cache as caches

NOTHING = ("", "")
Why = tuple[str, str]


def back(record: caches.Record, cache: caches.Cache) -> Why:
    """Return (code, words) of what holds a waiting job back, ("", "") when nothing does.

    The code is empty too where the engine's own, HeldBack, says all there is to say.
    """
    job = record.ledger
    if record.unreadable or record.odd:
        return guard.CODE, record.unreadable or record.odd
    if job.deleting:
        return "", "is being deleted"
    if job.spec is not None and not job.spec.active:
        return ledger.INACTIVE, paused(job)
    if record.hindered[0]:
        return record.hindered
    short = (allowances.EXCEEDED, record.short) if record.short else None
    # Of a quota the server speaks for one pod, our own words for the whole gang.
    if record.held_back and not (short and record.held_code == allowances.EXCEEDED):
        return record.held_code, record.held_back
    return _by_queue(record, cache) or short or _for_a_while(record, cache)


def paused(job: ledger.Ledger) -> str:
    """Say that a job is not to run, and how its user lets it: a labelled Job has a switch of its own."""
    if job.unit_uid and job.spec is not None and job.spec.ref is not None:
        return f"is paused; resume {_called(job.spec.ref)} to queue it again"
    return "is paused; set spec.active to true to queue it again"


def _called(ref: specs.JobRef) -> str:
    """Say how the job is called that a DeadlineJob refers to, and by which field it is resumed."""
    switch = kinds.named(ref.api_version, ref.kind).SUSPENDED_BY
    return f"{ref.kind} {ref.name} ({switch}: false)"


def hindered(record: caches.Record, cache: caches.Cache) -> bool:
    """Whether a job that has a claim could not be admitted now; that an answer is late is no hindrance."""
    return bool(record.hindered[0] or record.held_back or forfeited(record, cache))


def forfeited(record: caches.Record, cache: caches.Cache) -> str:
    """Say why a job may not keep its claim, "" where it may: its queue takes it no more, or is another."""
    job = record.ledger
    if job.status.phase is not ledger.Phase.CLAIMING:
        return ""
    claimed, queue = job.status.claim_queue, cache.queue_of(job)
    if claimed and claimed != queue:
        return f"its claim is on room of queue {claimed}, and its queue is {queue or 'none'} now"
    found = _by_queue(record, cache)
    return found[1] if found else ""


def _by_queue(record: caches.Record, cache: caches.Cache) -> Why | None:
    job = record.ledger
    name = cache.queue_of(job)
    if not name:
        field = engine_words.field("spec.queue", labelled=bool(job.unit_uid))
        return (
            "QueueNotSet",
            f"names no queue and namespace {job.namespace} has no default; set the {field}, or label the "
            f"namespace {names.LABEL_DEFAULT_QUEUE}",
        )
    queue = cache.queues.get(name)
    if queue is not None and not queue.selects(cache.namespaces.labels(job.namespace)):
        return (
            "NamespaceNotSelected",
            f"queue {name} does not take jobs of namespace {job.namespace}; see its spec.namespaceSelector",
        )
    if queue is not None and queue.problem:
        words = f"queue {name} cannot be read and admits nothing until somebody corrects it: {queue.problem}"
        return "QueueInvalid", words
    chosen = record.priority_class
    if chosen and queue is not None and chosen not in queue.priority_classes:
        return (
            "PriorityClassNotAllowed",
            f"its pods have the priority class {chosen}, with which one of them could push another out; "
            f"leave priorityClassName out, or have spec.priorityClasses of queue {name} list it",
        )
    return None


def _for_a_while(record: caches.Record, cache: caches.Cache) -> Why:
    if record.shapes is None:
        return "", "waits for the API server's answer about its pods"
    left = cache.left_behind(record)
    if any(not pod.gone and uid not in left for uid, pod in record.pods.items()):
        return "", "waits until the pods of its last run are gone"
    return NOTHING
