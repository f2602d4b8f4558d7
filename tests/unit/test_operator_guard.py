"""One object that cannot be dealt with is left aside, or held back; the next one is taken in as ever."""

import pytest

from cases import raw
from lstqueue.jobs import views
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import guard, holding, keeper, ledger, lenient, settings


def broken(*_):
    raise KeyError("end")


def test_a_deadline_job_that_cannot_be_read_is_held_back_until_it_can(monkeypatch):
    cache = caches.Cache(lambda: None)
    job = raw.deadline_job()
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "read", broken)
        cache.apply_ledger("ADDED", job)
    record = cache.records[job["metadata"]["uid"]]
    code, words = holding.back(record, cache)
    assert (code, cache.guard.counts) == (guard.CODE, {"DeadlineJob": 1})
    assert "KeyError" in words
    assert "put right" in words
    version = str(int(job["metadata"]["resourceVersion"]) + 1)
    cache.apply_ledger("MODIFIED", {**job, "metadata": {**job["metadata"], "resourceVersion": version}})
    assert record.unreadable == ""
    assert record.ledger.spec is not None


def test_what_was_known_of_a_deadline_job_stays_when_it_cannot_be_read_any_more(monkeypatch):
    cache = caches.Cache(lambda: None)
    job = raw.deadline_job()
    cache.apply_ledger("ADDED", job)
    before = cache.records[job["metadata"]["uid"]].ledger
    version = str(int(job["metadata"]["resourceVersion"]) + 1)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "read", broken)
        cache.apply_ledger("MODIFIED", {**job, "metadata": {**job["metadata"], "resourceVersion": version}})
    after = cache.records[job["metadata"]["uid"]].ledger
    assert (after.spec, after.status, after.version) == (before.spec, before.status, int(version))


TAKEN_IN = [
    (port.PODS, lambda cache: cache.apply_pod),
    (port.JOBS, lambda cache: cache.apply_job),
    (port.NODES, lambda cache: cache.apply_node),
    (port.NAMESPACES, lambda cache: cache.apply_namespace),
    (port.GPU_QUEUES, lambda cache: cache.apply_queue),
    (port.DEADLINE_JOBS, lambda cache: cache.apply_ledger),
    (port.RESOURCE_QUOTAS, lambda cache: cache.allowances.apply),
    (
        port.CRON_JOBS,
        lambda cache: (
            keeper.Keeper(None, cache, None, now=lambda: 0, settings=settings.Settings()).saw_cron_job
        ),
    ),
]


@pytest.mark.parametrize(("resource", "intake"), TAKEN_IN)
def test_nothing_that_a_watch_shows_gets_further_than_the_guard(resource, intake):
    cache = caches.Cache(lambda: None)
    intake(cache)("ADDED", {"metadata": {"name": 7, "labels": 7}, "spec": None, "status": 7})
    assert set(cache.guard.counts) == {resource.kind}


def test_a_counter_goes_round_before_its_label_gets_too_long():
    for value in (0, 1, 10**9, views.COUNTED - 1, views.COUNTED, 2**63 - 1, 2**64):
        read = lenient.count(value)
        assert views.counter(str(read), -1) == read
        assert (read == 0) is (value == 0)
        assert lenient.count(read + 1) != read
    assert [lenient.count(value) for value in (None, "7", True, -1, 1.5)] == [0] * 5
