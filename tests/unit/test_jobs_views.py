"""What is kept of pods and Jobs, however odd they are: every pod of the cluster comes through here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import raw
from lstqueue.api import names, quantities, times
from lstqueue.embedded import patches
from lstqueue.jobs import inline, views

JOB = raw.child(raw.deadline_job(groups={"leader": 1, "worker": 3}), "worker", restart=2)


def test_a_pod_as_it_comes_is_gated_and_knows_where_it_belongs():
    pod = views.pod(raw.pod(JOB, 1))
    assert (pod.job, pod.group, pod.restart, pod.index, pod.attempt) == ("uid-train", "worker", 2, 1, -1)
    assert pod.owner == JOB["metadata"]["uid"]
    assert pod.gated
    assert pod.pinning is not None
    assert pod.pinning.gates == (names.GATE,)
    assert dict(pod.requests) == {raw.GPU: 8, "pods": 1}


def test_a_pod_that_was_let_go_says_for_which_admission_and_at_whose_charge():
    pod = views.pod(raw.ungated(raw.pod(JOB), attempt=4, node="gpu-1", phase="Running", ready=True))
    assert (pod.gated, pod.attempt, pod.charge) == (False, 4, "research/a100")
    assert (pod.node, pod.phase, pod.ready, pod.gone, pod.succeeded) == (
        "gpu-1",
        "Running",
        True,
        False,
        False,
    )


def test_a_pod_is_aimed_at_a_node_from_the_moment_it_is_let_go():
    gated = raw.pod(JOB)
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    gated["spec"]["affinity"] = raw.pinned("mine")
    terms = gated["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"].append(zone)
    assert views.pod(gated).aim == ""
    patch = inline.ungate(views.pod(gated), node="gpu-1", rank=0, attempt=1, charge="research/a100")
    assert views.pod(patches.merge(gated, patch)).aim == "gpu-1"
    assert views.pod(raw.ungated(raw.pod(JOB))).aim == ""
    foreign = raw.foreign_pod()
    foreign["spec"]["affinity"] = raw.pinned("gpu-1")
    assert views.pod(foreign).aim == ""


def test_a_gated_pod_was_not_let_go_whatever_its_template_says():
    odd = raw.pod(JOB)
    odd["metadata"]["labels"][names.LABEL_ATTEMPT] = "1"
    assert views.pod(odd).attempt == -1


def test_a_pod_that_ends_well_because_it_was_told_to_leave_did_not_succeed():
    through = raw.ungated(raw.pod(JOB), node="gpu-1", phase="Succeeded")
    assert views.pod(through).succeeded
    told = views.pod(raw.leaving(through))
    assert told.gone
    assert not told.succeeded


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "9" * 5000, None])
def test_numbers_that_somebody_spoilt_are_none(text):
    odd = raw.pod(JOB)
    odd["metadata"]["labels"] |= {names.LABEL_RESTART: text, names.LABEL_ATTEMPT: text}
    del odd["metadata"]["labels"][views.INDEX]
    odd["metadata"]["annotations"][views.INDEX] = text
    pod = views.pod(odd)
    assert (pod.restart, pod.attempt, pod.index) == (0, -1, -1)


@pytest.mark.parametrize("amount", ["2E", "1e30", "5e18"])
def test_a_pod_that_asks_for_more_than_there_is_anywhere_is_read_all_the_same(amount):
    odd = raw.foreign_pod(node="gpu-1")
    odd["spec"]["containers"][0]["resources"]["requests"]["memory"] = amount
    asked = dict(views.pod(odd).requests)
    assert asked == {"memory": quantities.LARGEST, raw.GPU: quantities.LARGEST, "pods": 1}


def test_a_bare_pod_of_somebody_else_is_read():
    meta = {"uid": "u", "namespace": "default", "name": "n", "resourceVersion": "1"}
    pod = views.pod({"metadata": meta})
    assert (pod.job, pod.phase, pod.node, pod.gated, pod.requests) == (
        "",
        "Pending",
        "",
        False,
        (("pods", 1),),
    )


@pytest.mark.parametrize(
    ("reason", "message", "refused"),
    [
        ("UnexpectedAdmissionError", "no healthy devices", True),
        ("OutOfnvidia.com/gpu", "", True),
        ("OutOfcpu", "", True),
        ("NodeShutdown", "", True),
        ("Evicted", "Pod was rejected: the node had condition: [DiskPressure]", True),
        ("Evicted", "The node was low on resource: memory", False),
        ("DeadlineExceeded", "", False),
        ("", "", False),
    ],
)
def test_a_kubelets_refusal_is_told_from_a_failure_of_the_program(reason, message, refused):
    failed = raw.ungated(raw.pod(JOB), node="gpu-1", phase="Failed", reason=reason, message=message)
    assert views.pod(failed).refused is refused
    running = raw.ungated(raw.pod(JOB), node="gpu-1", phase="Running", reason=reason, message=message)
    assert not views.pod(running).refused


def waiting(reason, message=""):
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def terminated(reason, code):
    return {"state": {"terminated": {"reason": reason, "exitCode": code}}}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"reason": "Evicted", "message": "low on memory"}, ("Evicted", "low on memory")),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
                ]
            },
            ("Unschedulable", "0/3"),
        ),
        (
            {"containerStatuses": [waiting("ImagePullBackOff", "not found")]},
            ("ImagePullBackOff", "not found"),
        ),
        (
            {
                "initContainerStatuses": [terminated("Completed", 0), waiting("CrashLoopBackOff")],
                "containerStatuses": [waiting("PodInitializing")],
            },
            ("CrashLoopBackOff", ""),
        ),
        (
            {
                "containerStatuses": [
                    terminated("Completed", 0),
                    {"state": {"running": {}}},
                    terminated("Error", 3),
                ]
            },
            ("Error", "exit code 3"),
        ),
        ({}, ("", "")),
    ],
)
def test_what_holds_a_pod_is_told_in_the_words_of_whoever_holds_it(status, said):
    pod = views.pod(raw.ungated(raw.pod(JOB), **status))
    assert (pod.reason, pod.message) == said


def test_a_child_job_is_read_with_its_ends():
    fine = {"completedIndexes": "0,2", "completionTime": "2026-03-01T19:00:00Z"}
    done = views.child(raw.touched(JOB, status=raw.ended("Complete", **fine)))
    assert (done.job, done.group, done.restart) == ("uid-train", "worker", 2)
    assert (done.complete, done.failed, done.done) == (True, False, frozenset({0, 2}))
    assert done.completion_time == times.parse("2026-03-01T19:00:00Z")
    failed = views.child(raw.touched(JOB, status=raw.ended("FailureTarget", "BackoffLimitExceeded")))
    assert (failed.complete, failed.failed, failed.reason) == (False, True, "BackoffLimitExceeded")
    assert views.child(raw.leaving(JOB)).deleting


def test_a_job_that_only_wears_our_label_is_nobodys_child():
    spoofed = raw.touched(JOB)
    spoofed["metadata"]["ownerReferences"] = []
    assert views.child(spoofed).job == ""
    spoofed["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "uid-train", "controller": True}
    ]
    assert views.child(spoofed).job == ""


@given(st.sets(st.integers(0, 300)))
def test_ranges_can_be_read_back(numbers):
    text = views.ranges(tuple(sorted(numbers)))
    assert views.indexes(text) == numbers
    assert "--" not in text


def test_ranges_are_short():
    assert views.ranges((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert views.ranges(()) == ""


@pytest.mark.parametrize(
    ("version", "maker"),
    [
        ("kubeflow.org/v1", ("PyTorchJob", "train")),
        ("example.com/v1", ("", "")),
        ("kubeflow.org.evil/v1", ("", "")),
    ],
)
def test_only_the_pods_of_kubeflows_pytorchjobs_keep_what_made_them(version, maker):
    owner = {"apiVersion": version, "kind": "PyTorchJob", "name": "train", "uid": "u", "controller": True}
    meta = {"uid": "p", "namespace": "d", "name": "train-worker-0", "resourceVersion": "1"}
    labels = {"training.kubeflow.org/replica-index": "0"}
    found = views.pod({"metadata": {**meta, "labels": labels, "ownerReferences": [owner]}})
    assert (found.maker, found.replica) == (maker, 0 if maker[0] else -1)
