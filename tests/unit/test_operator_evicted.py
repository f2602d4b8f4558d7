"""Pods that were evicted are remembered where nothing else tells of them, and nowhere for ever."""

import copy

import pytest

from cases import objects, raw
from lstqueue.api import names, times
from lstqueue.operator import cache as caches


def evict(cache, pod):
    cache.apply_pod("ADDED", pod)
    gone = copy.deepcopy(pod)
    gone["metadata"]["resourceVersion"] = raw.version()
    cache.apply_pod("DELETED", gone)


def disrupted(pod):
    return raw.touched(
        pod,
        status={"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    )


def test_of_a_gang_of_ours_it_is_remembered_until_it_begins_again():
    cache = caches.Cache(lambda: None)
    job = raw.deadline_job(status={"phase": "Running", "observedGeneration": 1, "attempt": 1})
    child = raw.child(job)
    cache.apply_ledger("ADDED", job)
    cache.apply_child("ADDED", child)
    evict(cache, disrupted(raw.ungated(raw.pod(child), node="gpu-1")))
    assert [pod.phase for pod in cache.records[raw.UID].evicted.values()] == ["Failed"]
    cache.apply_ledger("MODIFIED", raw.touched(job, status={**job["status"], "restarts": 1}))
    assert not cache.records[raw.UID].evicted


@pytest.mark.parametrize("seen_first", ["Job", "DeadlineJob"])
def test_of_a_users_own_job_which_replaces_what_is_evicted_nothing_is_kept(seen_first):
    cache = caches.Cache(lambda: None)
    cache.units.settled()
    ledger = objects.reference("led")
    ledger["spec"]["jobRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "bag"}
    ledger["metadata"] |= {"uid": "uid-led", "namespace": "default", "generation": 1}
    ledger["metadata"] |= {"resourceVersion": raw.version(), "creationTimestamp": times.format(raw.NOW)}
    template = {"metadata": {}, "spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    job = {
        "metadata": {
            "name": "bag",
            "namespace": "default",
            "uid": "uid-bag",
            "resourceVersion": raw.version(),
            "creationTimestamp": times.format(raw.NOW),
        },
        "spec": {"parallelism": 4, "completions": 1000, "suspend": False, "template": template},
    }
    tell = {
        "Job": lambda: cache.apply_job("ADDED", job),
        "DeadlineJob": lambda: cache.apply_ledger("ADDED", ledger),
    }
    for kind in sorted(tell, key=lambda kind: kind != seen_first):
        tell[kind]()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "bag", "uid": "uid-bag", "controller": True}
    for number in range(50):
        meta = {"name": f"bag-{number}", "namespace": "default", "uid": f"uid-{number}"}
        meta |= {"resourceVersion": raw.version(), "ownerReferences": [owner]}
        meta |= {"labels": {names.LABEL_JOB: "uid-led", names.LABEL_GROUP: "pods"}}
        evict(cache, disrupted({"metadata": meta, "spec": {"nodeName": "gpu-1", "containers": []}}))
    record = cache.records["uid-led"]
    assert (len(record.pods), len(record.evicted)) == (0, 0)
