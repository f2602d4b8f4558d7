"""What a pod counts against a ResourceQuota, and which pods a quota with scopes counts."""

import pytest

from lstqueue.jobs import quotas
from lstqueue.topology import model

GPU = "nvidia.com/gpu"


def pod(requests=None, limits=None, **fields):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"containers": [{"name": "main", "resources": resources}], **fields}


def quota(hard, used=None, **spec):
    return quotas.read(
        {
            "metadata": {"name": "q", "namespace": "team"},
            "spec": {"hard": hard, **spec},
            "status": {"used": used or {}},
        }
    )


def counted(spec):
    return dict(quotas.charge(spec).amounts)


def test_requests_count_under_both_keys_where_kubernetes_has_two():
    found = counted(pod({"cpu": "1", "memory": "1Gi", GPU: "2"}, {GPU: "2"}))
    assert found == {
        "cpu": 1000,
        "requests.cpu": 1000,
        "memory": 1 << 30,
        "requests.memory": 1 << 30,
        f"requests.{GPU}": 2,
        "pods": 1,
        "count/pods": 1,
    }


def test_limits_count_for_cpu_memory_and_disk_only():
    found = counted(pod(limits={"cpu": "2", "ephemeral-storage": "1Gi", GPU: "1"}))
    assert {key: amount for key, amount in found.items() if key.startswith("limits.")} == {
        "limits.cpu": 2000,
        "limits.ephemeral-storage": 1 << 30,
    }


def test_init_containers_count_as_for_the_scheduler_and_overhead_for_limits_that_are_set():
    spec = pod({"cpu": "1"}, {"memory": "1Gi"}, overhead={"cpu": "1", "memory": "1Gi"})
    spec["initContainers"] = [{"name": "first", "resources": {"limits": {"memory": "3Gi", "cpu": "4"}}}]
    found = counted(spec)
    assert found["limits.memory"] == 4 << 30
    assert found["limits.cpu"] == 5000
    assert found["requests.cpu"] == 5000


def test_what_is_left_may_be_less_than_nothing():
    assert quota({"pods": "3", "cpu": "1"}, {"pods": "5"}).free() == {"pods": -2, "cpu": 1000}


def test_an_amount_beyond_all_bounds_bounds_nothing():
    assert quota({"memory": "2E", "pods": "1"}).free() == {"pods": 1}


@pytest.mark.parametrize(
    ("scope", "spec", "counts"),
    [
        ("Terminating", pod(activeDeadlineSeconds=60), True),
        ("Terminating", pod(), False),
        ("NotTerminating", pod(), True),
        ("BestEffort", pod({GPU: "8"}, {GPU: "8"}), True),
        ("BestEffort", pod({"cpu": "1"}), False),
        ("NotBestEffort", pod(limits={"memory": "1Gi"}), True),
        ("PriorityClass", pod(priorityClassName="lstqueue"), True),
        ("PriorityClass", pod(), False),
        ("CrossNamespacePodAffinity", pod(), False),
    ],
)
def test_a_scope_chooses_its_pods(scope, spec, counts):
    assert quota({"pods": "1"}, scopes=[scope]).counts(quotas.charge(spec)) is counts


@pytest.mark.parametrize(
    ("operator", "values", "counts"),
    [
        ("In", ["lstqueue"], True),
        ("In", ["other"], False),
        ("NotIn", ["other"], True),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_a_selector_compares_priority_classes(operator, values, counts):
    wanted = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    found = quota({"pods": "1"}, scopeSelector={"matchExpressions": [wanted]})
    assert found.counts(quotas.charge(pod(priorityClassName="lstqueue"))) is counts


def test_quotas_with_scopes_count_pods_only():
    job = quotas.objects("count/jobs.batch")
    assert quota({"count/jobs.batch": "1"}).counts(job)
    assert not quota({"count/jobs.batch": "1"}, scopes=["NotTerminating"]).counts(job)


def test_amounts_are_told_as_people_write_them():
    assert quotas.text("requests.memory", 64 << 30) == "64Gi"
    assert quotas.text("limits.cpu", 1500) == "1500m"
    assert quotas.text(model.PODS, 8) == "8"
