"""PyTorchJobs as the operator reads them, and the patches that steer them."""

from __future__ import annotations

import copy

import pytest

from lstqueue.api import names
from lstqueue.embedded import patches
from lstqueue.jobs import existing, kinds, pytorch


def job(*, workers=2, master=True, conditions=(), **spec):
    template = {"spec": {"containers": [{"name": "pytorch", "image": "trainer:1"}]}}
    replicas = {"Master": {"template": template}} if master else {}
    if workers is not None:
        replicas["Worker"] = {"replicas": workers, "template": template}
    return copy.deepcopy(
        {
            "metadata": {
                "name": "train",
                "namespace": "default",
                "uid": "uid-train",
                "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {names.LABEL_QUEUE: "research"},
            },
            "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas, **spec},
            "status": {"conditions": [{"type": kind, "status": value} for kind, value in conditions]},
        }
    )


def test_the_master_has_the_first_rank_and_the_workers_follow():
    view = pytorch.unit(job(workers=3))
    assert view.groups == (("master", 1), ("worker", 3))
    assert (view.offset("master"), view.offset("worker"), view.offset("other")) == (0, 1, -1)
    assert view.gang
    assert view.ranked
    assert view.deciding == {0}
    assert pytorch.pod_names(view) == {"train-master-0", "train-worker-0", "train-worker-1", "train-worker-2"}


def test_without_a_master_all_workers_decide():
    view = pytorch.unit(job(workers=2, master=False))
    assert (view.groups, view.deciding) == ((("worker", 2),), {0, 1})


def test_a_condition_that_is_last_and_false_is_none():
    seen = pytorch.unit(job(conditions=[("Running", "True"), ("Suspended", "False"), ("Failed", "False")]))
    assert (seen.complete, seen.failed) == (False, False)
    assert pytorch.unit(job(conditions=[("Succeeded", "True"), ("Running", "False")])).complete


def test_a_release_gates_every_template_once_and_changes_nothing_else_of_its_shape():
    raw = job()
    view = pytorch.unit(raw)
    assert not existing.stamped(view, "uid-ledger")
    released = patches.merge(raw, pytorch.release(view, job="uid-ledger", attempt=1))
    seen = pytorch.unit(released)
    assert existing.stamped(seen, "uid-ledger")
    assert (seen.suspended, seen.shape) == (False, view.shape)
    for group, template in pytorch.templates(released).items():
        assert existing.gates_of(template) == (names.GATE,)
        assert existing.labels_of(template)[names.LABEL_GROUP] == group
    again = pytorch.release(seen, job="uid-ledger", attempt=2)
    assert "pytorchReplicaSpecs" not in again["spec"]
    assert again["metadata"]["resourceVersion"] == "7"


def test_one_template_without_the_gate_is_stamped_anew():
    raw = job()
    released = patches.merge(raw, pytorch.release(pytorch.unit(raw), job="uid-ledger", attempt=1))
    released["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulingGates"] = []
    assert not existing.stamped(pytorch.unit(released), "uid-ledger")


@pytest.mark.parametrize("change", [{"Worker": {"replicas": 3}}, {"Master": None}])
def test_what_an_admission_is_for_changes_with_its_replicas(change):
    raw = job()
    changed = patches.merge(raw, {"spec": {"pytorchReplicaSpecs": change}})
    assert pytorch.unit(changed).shape != pytorch.unit(raw).shape


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (job(elasticPolicy={"maxReplicas": 4}), "spec.elasticPolicy"),
        (job(pytorchReplicaSpecs={}), "spec.pytorchReplicaSpecs is empty"),
        (job(pytorchReplicaSpecs={"worker": {}}), "spec.pytorchReplicaSpecs.worker is unknown"),
        (job(pytorchReplicaSpecs={"Master": {"replicas": 2}}), "spec.pytorchReplicaSpecs.Master.replicas"),
        (job(pytorchReplicaSpecs={"Worker": {}}), "spec.pytorchReplicaSpecs.Worker.template"),
        (job(), ""),
    ],
)
def test_what_cannot_be_queued_says_which_field_and_what_to_do(raw, field):
    assert pytorch.unit(raw).unfit.startswith(field)
    assert bool(pytorch.unit(raw).unfit) is bool(field)


def test_the_pod_of_a_dry_run_has_what_its_controller_adds_and_leaves_the_template_alone():
    template = job()["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    before = copy.deepcopy(template)
    probe = pytorch.probe_pod(template, "worker")
    assert probe["spec"]["containers"][0]["ports"][0]["containerPort"] == 23456
    assert [item["name"] for item in probe["spec"]["initContainers"]] == ["init-pytorch"]
    assert "initContainers" not in pytorch.probe_pod(template, "master")["spec"]
    assert template == before


def test_another_manager_is_told():
    managed = pytorch.unit(job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    assert managed.manager == "kueue.x-k8s.io/multikueue (spec.runPolicy.managedBy)"
    assert not pytorch.unit(job(runPolicy={"managedBy": "kubeflow.org/training-operator"})).manager


def test_every_kind_is_found_by_what_its_objects_and_references_say():
    view = pytorch.unit(job())
    assert kinds.of(view) is kinds.named("kubeflow.org/v1", "PyTorchJob") is pytorch


@pytest.mark.parametrize(
    ("policy", "asked"), [(None, True), ("None", True), ("Running", False), ("All", False)]
)
def test_who_was_asked_to_end_its_pods_is_not_asked_again(policy, asked):
    raw = job()
    raw["spec"]["runPolicy"] = {"suspend": True} | ({} if policy is None else {"cleanPodPolicy": policy})
    assert (pytorch.end_pods(pytorch.unit(raw)) is not None) is asked
