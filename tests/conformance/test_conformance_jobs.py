"""batch/v1 Jobs: defaults, the generated selector, and what may change."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import job, pod, refused, required_affinity

UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"


async def test_defaults(api: port.KubeApi, namespace: str) -> None:
    spec = (await api.create(port.JOBS, namespace, job()))["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"]) == ("NonIndexed", True)
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30


async def test_completions_stay_open_beside_parallelism(api: port.KubeApi, namespace: str) -> None:
    spec = (await api.create(port.JOBS, namespace, job(parallelism=3)))["spec"]
    assert "completions" not in spec


async def test_parallelism_is_one_beside_completions(api: port.KubeApi, namespace: str) -> None:
    assert (await api.create(port.JOBS, namespace, job(completions=3)))["spec"]["parallelism"] == 1


async def test_the_selector_is_generated(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.JOBS, namespace, job())
    uid = created["metadata"]["uid"]
    assert created["spec"]["selector"] == {"matchLabels": {UID_LABEL: uid}}
    labels = created["spec"]["template"]["metadata"]["labels"]
    assert labels == {UID_LABEL: uid, NAME_LABEL: "job", "controller-uid": uid, "job-name": "job"}


async def test_a_job_without_labels_has_those_of_its_template(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.JOBS, namespace, job())
    assert created["metadata"]["labels"] == created["spec"]["template"]["metadata"]["labels"]


async def test_own_labels_stay_as_they_are(api: port.KubeApi, namespace: str) -> None:
    body = job()
    body["metadata"]["labels"] = {"a": "b"}
    body["spec"]["template"]["metadata"] = {"labels": {"c": "d"}}
    created = await api.create(port.JOBS, namespace, body)
    assert created["metadata"]["labels"] == {"a": "b"}
    assert created["spec"]["template"]["metadata"]["labels"]["c"] == "d"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("negative parallelism", {"parallelism": -1}, "spec.parallelism"),
    ("negative completions", {"completions": -1}, "spec.completions"),
    ("negative backoff limit", {"backoffLimit": -1}, "spec.backoffLimit"),
    ("indexed without completions", {"completionMode": "Indexed", "parallelism": 1}, "spec.completions"),
    ("completion mode", {"completionMode": "Other"}, "spec.completionMode"),
    ("own selector", {"selector": {"matchLabels": {"a": "b"}}}, "spec.selector"),
    ("no containers", {"template": {"spec": {"restartPolicy": "Never", "containers": []}}}, "containers"),
    ("restart policy", {"template": {"spec": pod(gated=False)["spec"]}}, "spec.template.spec.restartPolicy"),
]


@pytest.mark.parametrize(("spec", "field"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_jobs_that_are_refused(
    api: port.KubeApi, namespace: str, spec: dict[str, Any], field: str
) -> None:
    await refused(api.create(port.JOBS, namespace, job(**spec)), 422, reason="Invalid", says=field)


async def test_pod_names_of_an_indexed_job_must_fit(api: port.KubeApi, namespace: str) -> None:
    indexed = {"completionMode": "Indexed", "completions": 100, "parallelism": 1}
    assert await api.create(port.JOBS, namespace, job("x" * 60, **indexed))
    await refused(api.create(port.JOBS, namespace, job("y" * 61, **indexed)), 422, says="metadata.name")


MUTABLE: list[tuple[str, Any]] = [
    ("suspend", False),
    ("parallelism", 0),
    ("backoffLimit", 0),
    ("activeDeadlineSeconds", 60),
    ("ttlSecondsAfterFinished", 60),
]


@pytest.mark.parametrize(("field", "value"), MUTABLE, ids=[row[0] for row in MUTABLE])
async def test_what_may_change(api: port.KubeApi, namespace: str, field: str, value: Any) -> None:
    await api.create(port.JOBS, namespace, job(parallelism=0, completions=2))
    patched = await api.patch(port.JOBS, namespace, "job", {"spec": {field: value}})
    assert patched["spec"][field] == value


FROZEN: list[tuple[str, dict[str, Any]]] = [
    ("completions", {"completions": 3}),
    ("completion mode", {"completionMode": "Indexed"}),
    ("selector", {"selector": {"matchLabels": {"a": "b"}}}),
    ("image", {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}),
    ("restart policy", {"template": {"spec": {"restartPolicy": "OnFailure"}}}),
    ("priority class", {"template": {"spec": {"priorityClassName": "system-node-critical"}}}),
]


@pytest.mark.parametrize("spec", [row[1] for row in FROZEN], ids=[row[0] for row in FROZEN])
async def test_what_never_changes(api: port.KubeApi, namespace: str, spec: dict[str, Any]) -> None:
    await api.create(port.JOBS, namespace, job(completions=2))
    await refused(api.patch(port.JOBS, namespace, "job", {"spec": spec}), 422, reason="Invalid")


async def test_an_elastic_indexed_job_is_resized(api: port.KubeApi, namespace: str) -> None:
    indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    await api.create(port.JOBS, namespace, job(**indexed))
    patched = await api.patch(port.JOBS, namespace, "job", {"spec": {"completions": 4, "parallelism": 4}})
    assert patched["spec"]["completions"] == 4
    await refused(
        api.patch(port.JOBS, namespace, "job", {"spec": {"completions": 3}}), 422, says="spec.completions"
    )


SCHEDULING: list[tuple[str, dict[str, Any]]] = [
    ("node selector", {"nodeSelector": {"zone": "a"}}),
    ("tolerations", {"tolerations": [{"key": "gpu", "operator": "Exists"}]}),
    ("gates", {"schedulingGates": [{"name": "example.com/hold"}]}),
    (
        "affinity",
        {"affinity": required_affinity({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})},
    ),
]


@pytest.mark.parametrize("spec", [row[1] for row in SCHEDULING], ids=[row[0] for row in SCHEDULING])
async def test_a_suspended_job_takes_scheduling_directives(
    api: port.KubeApi, namespace: str, spec: dict[str, Any]
) -> None:
    await api.create(port.JOBS, namespace, job())
    patched = await api.patch(port.JOBS, namespace, "job", {"spec": {"template": {"spec": spec}}})
    assert spec.items() <= patched["spec"]["template"]["spec"].items()


@pytest.mark.parametrize("spec", [row[1] for row in SCHEDULING], ids=[row[0] for row in SCHEDULING])
async def test_a_started_job_does_not(api: port.KubeApi, namespace: str, spec: dict[str, Any]) -> None:
    await api.create(port.JOBS, namespace, job(parallelism=0, suspend=False))
    await refused(api.patch(port.JOBS, namespace, "job", {"spec": {"template": {"spec": spec}}}), 422)


async def test_template_labels_change_while_suspended(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.JOBS, namespace, job())
    patch = {"spec": {"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}}
    patched = await api.patch(port.JOBS, namespace, "job", patch)
    assert patched["spec"]["template"]["metadata"]["labels"]["a"] == "b"
    assert patched["spec"]["template"]["metadata"]["annotations"] == {"c": "d"}
