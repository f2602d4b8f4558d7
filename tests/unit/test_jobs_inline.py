"""The children of an inline gang, and the patches that let its pods go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import raw
from lstqueue.api import errors, names
from lstqueue.jobs import inline, views
from lstqueue.operator import ledger

GANG = inline.Gang("uid-train", "default", "train", (("leader", 1), ("worker", 3)))
TEMPLATE = {"spec": {"containers": [{"name": "main"}]}}


def env(template, container=0):
    return {item["name"]: item for item in template["spec"]["containers"][container]["env"]}


def test_ranks_count_through_the_groups_in_their_order():
    assert (GANG.size, GANG.offset("leader"), GANG.offset("worker")) == (4, 0, 1)
    with pytest.raises(KeyError):
        GANG.offset("nobody")


def test_a_group_becomes_an_indexed_gated_job_without_retries():
    made = inline.job(GANG, "worker", 2, TEMPLATE)
    assert made["metadata"]["name"] == "train-worker-2"
    assert inline.owning_job(made) == "uid-train"
    spec = made["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert (spec["backoffLimit"], spec["suspend"]) == (0, False)
    pod = spec["template"]
    assert pod["spec"]["schedulingGates"] == [{"name": names.GATE}]
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["priorityClassName"] == names.PRIORITY_CLASS
    assert pod["spec"]["subdomain"] == GANG.service
    assert pod["metadata"]["labels"] == {
        names.LABEL_JOB: "uid-train",
        names.LABEL_GROUP: "worker",
        names.LABEL_RESTART: "2",
    }


def test_every_member_finds_the_leader_of_its_own_restart():
    found = env(inline.pod_template(GANG, "worker", 2, TEMPLATE))
    assert found["MASTER_ADDR"]["value"] == "train-leader-2-0.gang-train"
    assert found["PET_MASTER_ADDR"] == {**found["MASTER_ADDR"], "name": "PET_MASTER_ADDR"}
    assert (found["WORLD_SIZE"]["value"], found["PET_NNODES"]["value"]) == ("4", "4")
    path = found["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == f"metadata.annotations['{names.ANNOTATION_RANK}']"


def test_one_pod_needs_no_service():
    alone = inline.Gang("u", "default", "solo", (("worker", 1),))
    template = inline.pod_template(alone, "worker", 0, TEMPLATE)
    assert alone.service == ""
    assert "subdomain" not in template["spec"]
    assert env(template)["MASTER_ADDR"]["value"] == "localhost"


def test_a_service_names_ranks_before_they_are_ready():
    made = inline.service(GANG)
    assert made["spec"]["publishNotReadyAddresses"] is True
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["selector"] == {names.LABEL_JOB: "uid-train"}


def test_what_the_user_wrote_stays_and_is_not_changed_in_place():
    template = {
        "metadata": {"labels": {"team": "vision", names.LABEL_JOB: "spoofed"}, "annotations": {"a": "b"}},
        "spec": {
            "containers": [{"name": "main", "env": [{"name": "MASTER_PORT", "value": "1"}, {"name": "X"}]}],
            "initContainers": [{"name": "fetch"}],
            "schedulingGates": [{"name": "example.com/licence"}, {"name": names.GATE}],
            "priorityClassName": "batch",
        },
    }
    before = repr(template)
    built = inline.pod_template(GANG, "worker", 0, template)
    assert repr(template) == before
    assert built["metadata"]["labels"]["team"] == "vision"
    assert built["metadata"]["labels"][names.LABEL_JOB] == "uid-train"
    assert built["metadata"]["annotations"] == {"a": "b"}
    assert built["spec"]["priorityClassName"] == "batch"
    assert built["spec"]["schedulingGates"] == [{"name": "example.com/licence"}, {"name": names.GATE}]
    assert env(built)["MASTER_PORT"]["value"] == "1"
    listed = [item["name"] for item in built["spec"]["containers"][0]["env"]]
    assert listed.count("MASTER_PORT") == 1
    assert listed.index("RANK") < listed.index("X")
    assert built["spec"]["initContainers"][0]["env"]


def test_fields_that_were_left_empty_are_as_good_as_absent():
    template = {
        "metadata": None,
        "spec": {
            "containers": [{"name": "main", "env": None}],
            "initContainers": None,
            "schedulingGates": None,
            "priorityClassName": None,
        },
    }
    built = inline.pod_template(GANG, "worker", 0, template)
    assert built["spec"]["priorityClassName"] == names.PRIORITY_CLASS
    assert built["spec"]["schedulingGates"] == [{"name": names.GATE}]
    assert inline.probe_pod(GANG, "worker", template)["metadata"]["annotations"] == {}


def test_nulls_at_any_depth_are_left_out_as_the_api_server_leaves_them_out_of_pods():
    affinity = {"nodeAffinity": None, "podAffinity": {"preferred": None}}
    template = {"spec": {"containers": [{"name": "main", "command": None}], "affinity": affinity}}
    built = inline.pod_template(GANG, "worker", 0, template)["spec"]
    assert built["affinity"] == {"podAffinity": {}}
    assert "command" not in built["containers"][0]
    assert affinity["nodeAffinity"] is None


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"labels": ["a"]}}, "metadata.labels"),
        ({"spec": {"schedulingGates": ["gate"]}}, "spec.schedulingGates"),
        ({"spec": {"initContainers": {"name": "x"}}}, "spec.initContainers"),
        ({"spec": {"containers": [{"env": "A=1"}]}}, "env"),
        ({"spec": {"containers": [{"env": [{"name": ["A"]}, 1]}]}}, "env"),
    ],
)
def test_a_template_of_the_wrong_form_is_an_error_that_names_the_field(template, field):
    spec = {"containers": [{}], **template.get("spec", {})}
    with pytest.raises(errors.BadValueError, match=field):
        inline.pod_template(GANG, "worker", 0, {**template, "spec": spec})


def test_a_probe_is_the_pod_that_the_job_would_make():
    template = {"metadata": {"name": "mine", "namespace": "elsewhere", "labels": {"a": "b"}}, **TEMPLATE}
    probe = inline.probe_pod(GANG, "worker", template)
    assert probe["spec"] == inline.job(GANG, "worker", 0, template)["spec"]["template"]["spec"]
    assert probe["metadata"]["labels"]["a"] == "b"
    assert "train" not in probe["metadata"]["generateName"]
    assert {"name", "namespace"}.isdisjoint(probe["metadata"])


def gated(**spec):
    pod = raw.pod(raw.child(raw.deadline_job()), 1)
    pod["spec"] |= spec
    return pod


def terms(patch):
    required = patch["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required["nodeSelectorTerms"]


PIN = {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}


def ungate(pod, **more):
    return inline.ungate(views.pod(pod), node="gpu-1", rank=1, attempt=3, charge="research/a100", **more)


def test_letting_a_pod_go_is_one_conditional_patch():
    pod = gated()
    patch = ungate(pod)
    assert patch["metadata"] == {
        "resourceVersion": pod["metadata"]["resourceVersion"],
        "labels": {names.LABEL_ATTEMPT: "3"},
        "annotations": {names.ANNOTATION_RANK: "1", names.ANNOTATION_CHARGE: "research/a100"},
    }
    assert terms(patch) == [{"matchFields": [PIN]}]
    assert patch["spec"]["schedulingGates"] is None
    assert "tolerations" not in patch["spec"]


def test_the_pin_goes_into_every_term_and_nothing_of_the_user_is_lost():
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["bad"]}]}
    node = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone, other]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
    }
    pod = gated(
        affinity={"nodeAffinity": node, "podAffinity": {"x": 1}},
        tolerations=[{"operator": "Exists", "key": "mine"}],
        schedulingGates=[{"name": "example.com/licence"}, {"name": names.GATE}],
    )
    before = repr(pod)
    patch = ungate(pod, tolerations=[{"operator": "Exists", "key": "pool"}])
    assert repr(pod) == before
    assert terms(patch) == [{**zone, "matchFields": [PIN]}, {"matchFields": [*other["matchFields"], PIN]}]
    assert patch["spec"]["affinity"]["podAffinity"] == {"x": 1}
    assert patch["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [item["key"] for item in patch["spec"]["tolerations"]] == ["mine", "pool"]
    assert patch["spec"]["schedulingGates"] == [{"name": "example.com/licence"}]


@pytest.mark.parametrize(
    "node", [None, {"requiredDuringSchedulingIgnoredDuringExecution": None}], ids=["affinity", "terms"]
)
def test_a_pod_is_pinned_whatever_of_its_affinity_is_null(node):
    assert terms(ungate(gated(affinity={"nodeAffinity": node}))) == [{"matchFields": [PIN]}]


def test_a_pod_without_our_gate_is_not_let_go_twice():
    with pytest.raises(ValueError, match="not gated"):
        ungate(raw.ungated(gated()))


def test_suspending_a_job_is_conditional():
    child = raw.child(raw.deadline_job())
    patch = inline.suspend(views.child(child), value=True)
    assert patch == {
        "metadata": {"resourceVersion": child["metadata"]["resourceVersion"]},
        "spec": {"suspend": True},
    }


@given(st.sampled_from(["name", "replicas", "template"]), st.integers(2, 50))
def test_the_hash_of_a_gang_changes_with_whatever_it_is_made_of(field, number):
    groups = [{"name": "a", "template": TEMPLATE}, {"name": "b", "replicas": 1, "template": TEMPLATE}]
    changed = {"name": f"n{number}", "replicas": number, "template": {"spec": {"priority": number}}}
    assert inline.shape_hash(groups) == inline.shape_hash([{**groups[0], "replicas": 1}, groups[1]])
    assert inline.shape_hash(groups) != inline.shape_hash([groups[0], {**groups[1], field: changed[field]}])
    assert inline.shape_hash(groups) != inline.shape_hash(groups[::-1])
    assert ledger.read(raw.deadline_job()).spec.shape == inline.shape_hash(
        raw.deadline_job()["spec"]["groups"]
    )
