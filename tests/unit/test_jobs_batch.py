"""An existing Job as a queued unit, and the patches that steer it."""

import pytest

from cases import batch_jobs, raw
from lstqueue.api import names
from lstqueue.embedded import patches
from lstqueue.jobs import batch, existing, views


def unit(**given):
    return batch.unit(batch_jobs.job(**given))


@pytest.mark.parametrize(
    ("parallelism", "completions", "indexed", "gang", "size"),
    [
        (4, 4, True, True, 4),
        (4, 4, False, True, 4),
        (1, 1, False, True, 1),
        (8, 4, True, True, 4),
        (2, 10, True, False, 2),
        (1, 10, False, False, 1),
        (3, None, False, False, 3),
        (0, 10, True, False, 0),
    ],
)
def test_a_job_whose_pods_all_run_at_once_is_a_gang(parallelism, completions, indexed, gang, size):
    seen = unit(parallelism=parallelism, completions=completions, indexed=indexed)
    assert (seen.gang, seen.size) == (gang, size)


def test_what_remains_of_a_bag_shrinks_its_slots():
    seen = unit(parallelism=4, completions=10, status={"completedIndexes": "0-6", "failedIndexes": "7"})
    assert (seen.finished, seen.wanted, seen.size) == (8, 2, 2)
    counted = unit(parallelism=4, completions=10, indexed=False, status={"succeeded": 9})
    assert (counted.wanted, counted.size) == (1, 1)


def test_a_gang_asks_for_all_its_ranks_even_when_some_are_through():
    seen = unit(status={"completedIndexes": "0,2"})
    assert (seen.done, seen.wanted, seen.size) == (frozenset({0, 2}), 2, 4)


def test_the_shape_knows_nothing_of_what_is_ours_or_the_servers():
    plain = batch_jobs.job("one")
    other = batch_jobs.job("two", queue=None, suspend=False)
    assert batch.unit(plain).shape == batch.unit(other).shape
    released = patches.merge(plain, batch.release(batch.unit(plain), job="uid-ledger", attempt=1))
    assert batch.unit(released).shape == batch.unit(plain).shape
    for change in (
        {"parallelism": 5},
        {"completions": 5},
        {"completionMode": "NonIndexed"},
        {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
        {"template": {"metadata": {"labels": {"team": "vision"}}}},
        {"template": {"spec": {"schedulingGates": [{"name": "example.com/licence"}]}}},
    ):
        assert batch.unit(patches.merge(plain, {"spec": change})).shape != batch.unit(plain).shape


def test_the_first_release_puts_gate_and_labels_into_the_template_and_later_ones_leave_it():
    gates = {"spec": {"schedulingGates": [{"name": "example.com/licence"}], "containers": []}}
    made = batch_jobs.job(template=gates)
    first = batch.release(batch.unit(made), job="uid-ledger", attempt=1)
    assert first["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    released = patches.merge(made, first)
    template = released["spec"]["template"]
    assert released["spec"]["suspend"] is False
    assert [gate["name"] for gate in template["spec"]["schedulingGates"]] == [
        "example.com/licence",
        names.GATE,
    ]
    assert template["metadata"]["labels"] == {
        names.LABEL_JOB: "uid-ledger",
        names.LABEL_GROUP: "pods",
        names.LABEL_RESTART: "0",
    }
    seen = batch.unit(released)
    assert (seen.job, seen.attempt, seen.suspended) == ("uid-ledger", 1, False)
    assert existing.stamped(seen, "uid-ledger")
    again = batch.release(seen, job="uid-ledger", attempt=2)
    assert again["spec"] == {"suspend": False}
    assert "template" in batch.release(seen, job="uid-of-a-new-ledger", attempt=1)["spec"]


@pytest.mark.parametrize(
    ("label", "managed", "who"),
    [
        ("", "", ""),
        ("", "kubernetes.io/job-controller", ""),
        ("", "kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/multikueue (spec.managedBy)"),
        ("team-a", "", "Kueue (label kueue.x-k8s.io/queue-name)"),
    ],
)
def test_another_manager_is_recognised(label, managed, who):
    made = batch_jobs.job(**({"managedBy": managed} if managed else {}))
    if label:
        made["metadata"]["labels"][existing.KUEUE] = label
    assert batch.unit(made).manager == who


def test_a_job_that_failed_or_is_about_to_is_over():
    assert not unit().over
    assert unit(status=raw.ended("Complete")).over
    failed = unit(status=raw.ended("FailureTarget", "BackoffLimitExceeded"))
    assert (failed.over, failed.reason) == (True, "BackoffLimitExceeded")


def test_the_pod_of_a_dry_run_is_the_gated_pod_without_the_servers_labels():
    probe = batch.probe_pod(batch_jobs.job()["spec"]["template"], existing.GROUP)
    assert probe["metadata"]["labels"] == {}
    assert probe["spec"]["schedulingGates"] == [{"name": names.GATE}]
    assert probe["spec"]["restartPolicy"] == "Never"


def test_annotations_of_others_are_not_kept():
    seen = unit(annotations={f"{names.GROUP}/deadline-in": "4h", "other": "x"})
    assert seen.annotation("deadline-in") == "4h"
    assert seen.annotation("deadline") == ""
    assert len(seen.annotations) == 1


def test_a_unit_stands_as_the_one_job_of_its_ledger():
    seen = existing.child(unit(), "uid-ledger", existing.GROUP, parallelism=4, done=frozenset({1}))
    assert isinstance(seen, views.ChildView)
    assert (seen.job, seen.group, seen.restart, seen.done) == ("uid-ledger", "pods", 0, frozenset({1}))


def test_a_pod_that_is_let_go_loses_our_gate_and_labels_and_keeps_the_gates_of_others():
    gates = [{"name": "example.com/licence"}, {"name": names.GATE}]
    labels = {names.LABEL_JOB: "uid-gone", names.LABEL_GROUP: "pods", names.LABEL_RESTART: "0", "team": "a"}
    meta = {"name": "w-0", "namespace": "default", "uid": "uid-pod", "resourceVersion": "7", "labels": labels}
    made = {"metadata": meta, "spec": {"schedulingGates": gates, "containers": []}}
    body = existing.let_go_pod(views.pod(made))
    assert body["metadata"]["resourceVersion"] == "7"
    after = patches.merge(made, body)
    assert after["spec"] == {"schedulingGates": gates[:1], "containers": []}
    assert after["metadata"]["labels"] == {"team": "a"}
    with pytest.raises(ValueError, match="is not gated"):
        existing.let_go_pod(views.pod(after))
