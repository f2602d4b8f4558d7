"""What a pod spec asks for, by the scheduler's own rule, and what the placement refuses to promise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.api import errors
from lstqueue.jobs import podspec
from lstqueue.topology import model

GPU = "nvidia.com/gpu"


def container(restart=None, **requests):
    made = {
        "name": "c",
        "resources": {"requests": {key.replace("gpu", GPU): v for key, v in requests.items()}},
    }
    return made if restart is None else {**made, "restartPolicy": restart}


def asks(spec):
    return dict(podspec.requests(spec))


def test_containers_add_up_and_a_pod_takes_one_slot():
    spec = {"containers": [container(cpu="500m", gpu="2"), container(cpu="1", memory="1Gi")]}
    assert asks(spec) == {"cpu": 1500, "memory": 1 << 30, GPU: 2, "pods": 1}


def test_a_pod_without_requests_takes_only_its_slot():
    assert asks({"containers": [{"name": "c"}]}) == {"pods": 1}


def test_an_init_container_counts_only_where_it_needs_more_than_what_comes_after():
    spec = {
        "containers": [container(cpu="2", gpu="1")],
        "initContainers": [container(cpu="3"), container(gpu="1")],
    }
    assert asks(spec) == {"cpu": 3000, GPU: 1, "pods": 1}


def test_a_sidecar_stays_and_weighs_on_the_init_containers_after_it_only():
    spec = {
        "containers": [container(cpu="1")],
        "initContainers": [container(cpu="4"), container("Always", cpu="2"), container(cpu="3")],
    }
    assert asks(spec)["cpu"] == 5000
    early = {**spec, "initContainers": [container(cpu="4"), container("Always", cpu="2")]}
    assert asks(early)["cpu"] == 4000


def test_what_the_pod_as_a_whole_asks_for_replaces_the_sum_and_overhead_comes_on_top():
    spec = {
        "containers": [container(cpu="4", gpu="1")],
        "resources": {"requests": {"cpu": "2"}},
        "overhead": {"cpu": "250m", "memory": "64Mi"},
    }
    assert asks(spec) == {"cpu": 2250, "memory": 64 << 20, GPU: 1, "pods": 1}


def test_a_limit_without_a_request_is_the_request():
    spec = {"containers": [{"resources": {"limits": {GPU: 8, "cpu": "4"}, "requests": {"cpu": "1"}}}]}
    assert asks(spec) == {"cpu": 1000, GPU: 8, "pods": 1}


@pytest.mark.parametrize("amount", ["2E", "1e30", "lots", "-1"])
def test_an_amount_that_cannot_be_reckoned_with_is_an_error(amount):
    spec = {"containers": [container(memory=amount)]}
    with pytest.raises(errors.BadValueError):
        podspec.requests(spec)
    assert podspec.asked(spec) == {"memory"}


@given(
    st.lists(st.integers(0, 50), max_size=5),
    st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=5),
)
def test_no_moment_of_a_pods_life_needs_more_than_its_requests(mains, inits):
    spec = {
        "containers": [container(cpu=str(amount)) for amount in mains],
        "initContainers": [
            container("Always" if stays else None, cpu=str(amount)) for stays, amount in inits
        ],
    }
    moments = []
    sidecars = 0
    for stays, amount in inits:
        moments.append(sidecars + amount)
        sidecars += amount if stays else 0
    moments.append(sidecars + sum(mains))
    assert asks(spec).get("cpu", 0) == 1000 * max(moments)


def test_a_shape_holds_selector_affinity_and_tolerations():
    term = {
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["bad"]}],
    }
    shape = podspec.shape(
        {
            "containers": [container(gpu="1")],
            "nodeSelector": {"z": "1", "a": "2"},
            "affinity": required(term, {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}),
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        }
    )
    assert shape.selector == (("a", "2"), ("z", "1"))
    assert shape.affinity == (
        (
            model.Requirement("zone", "In", ("a", "b")),
            model.Requirement("metadata.name", "NotIn", ("bad",), field=True),
        ),
        (model.Requirement("fast", "Exists"),),
    )
    assert shape.tolerations == (model.Toleration("gpu", "Exists", "", "NoSchedule"),)


def required(*terms):
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }


def test_a_toleration_for_a_limited_time_tolerates_nothing():
    forever = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoExecute"}
    found = podspec.tolerations([{**forever, "tolerationSeconds": 0}, forever, {"operator": "Exists"}])
    assert found == (
        model.Toleration("gpu", "Equal", "yes", "NoExecute"),
        model.Toleration("", "Exists", "", ""),
    )


HARD = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
SOFT = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"affinity": {"podAffinity": HARD}}, "spec.affinity.podAffinity"),
        ({"affinity": {"podAntiAffinity": HARD}}, "spec.affinity.podAntiAffinity"),
        ({"affinity": required({"matchExpressions": [{}]}, {})}, "spec.affinity.nodeAffinity"),
        ({"topologySpreadConstraints": [{}]}, "spec.topologySpreadConstraints"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"nodeName": "gpu-1"}, "spec.nodeName"),
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"initContainers": [{"ports": [{"hostPort": 80}]}]}, "spec.containers[].ports[].hostPort"),
        ({"affinity": {"podAffinity": SOFT, "podAntiAffinity": SOFT}}, None),
        ({"affinity": required({"matchExpressions": [{"key": "a", "operator": "Exists"}]})}, None),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, None),
        ({"containers": [{"ports": [{"containerPort": 80}]}], "affinity": None, "tolerations": None}, None),
        ({}, None),
    ],
)
def test_what_the_placement_does_not_model_is_named(spec, named):
    assert podspec.unsupported(spec) == (() if named is None else (named,))


def test_all_of_it_is_named_at_once_whatever_else_is_in_the_spec():
    spec = {
        "nodeName": "n0",
        "hostNetwork": True,
        "containers": [{"ports": [{"hostPort": 80}, "text"]}, 5],
        "affinity": "text",
        "topologySpreadConstraints": {"a": 1},
    }
    assert podspec.unsupported(spec) == (
        "spec.nodeName",
        "spec.hostNetwork",
        "spec.containers[].ports[].hostPort",
    )
    assert podspec.unsupported("text") == ()
