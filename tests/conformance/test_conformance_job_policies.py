"""Policies of Jobs as their controller keeps them: which failures count, which replace, what is enough."""

from lstqueue.kube import port
from tests.conformance.live import Cluster, live
from tests.conformance.samples import Object, job

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
BRIEF = {"sim/fail-after": "1s", "sim/exit-code": "42"}


def made(annotations: dict[str, str], **spec: object) -> Object:
    body = job(suspend=False, **spec)
    body["spec"]["template"]["metadata"] = {"annotations": annotations}
    return body


def rule(action: str, *codes: int, container: str | None = None) -> Object:
    wanted = {"operator": "In", "values": list(codes)}
    return {"action": action, "onExitCodes": wanted | ({"containerName": container} if container else {})}


@live
async def test_a_failure_policy_ends_the_job_in_its_own_words(cluster: Cluster) -> None:
    policy = {"rules": [rule("Ignore", 7), rule("FailJob", 42, container="main")]}
    created = await cluster.create(made(BRIEF, completions=1, backoffLimit=6, podFailurePolicy=policy))
    assert created["spec"]["podReplacementPolicy"] == "Failed"
    ended = await cluster.until_condition("Failed")
    (pod,) = await cluster.pods()
    assert ended["reason"] == "PodFailurePolicy"
    assert ended["message"] == (
        f"Container main for pod {cluster.namespace}/{pod['metadata']['name']} failed with exit code 42 "
        "matching FailJob rule at index 1"
    )
    assert (await cluster.status())["failed"] == 1


@live
async def test_ignored_failures_are_replaced_and_not_counted(cluster: Cluster) -> None:
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    await cluster.create(made({}, completions=1, backoffLimit=0, podFailurePolicy=policy))
    await cluster.until_status(active=1, ready=1)
    (pod,) = await cluster.pods()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Test", "message": ""}
    status = {"phase": "Failed", "conditions": [condition]}
    await cluster.api.patch_status(port.PODS, cluster.namespace, pod["metadata"]["name"], {"status": status})
    await cluster.until_pods(2)
    await cluster.until_status(active=1)
    assert (await cluster.status()).get("failed", 0) == 0


@live
async def test_a_pod_in_deletion_is_replaced_at_once_or_when_it_has_ended(cluster: Cluster) -> None:
    slow = {"sim/terminate-after": "4s"}
    for policy, overlap in (("TerminatingOrFailed", True), ("Failed", False)):
        name = policy.lower()
        body = made(slow, completions=1, backoffLimit=6, podReplacementPolicy=policy)
        body["metadata"]["name"] = name
        await cluster.create(body)
        await cluster.until_status(name, active=1, ready=1)
        (pod,) = await cluster.pods(name)
        await cluster.api.delete(port.PODS, cluster.namespace, pod["metadata"]["name"])
        status = await cluster.until_status(name, terminating=1, failed=1 if overlap else 0)
        assert status.get("active", 0) == 0 or overlap
        await cluster.until_status(name, terminating=0, failed=1)


@live
async def test_with_a_limit_per_index_the_others_go_on(cluster: Cluster) -> None:
    indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1}
    created = await cluster.create(made({}, **indexed))
    assert created["spec"]["backoffLimit"] == 2**31 - 1
    await cluster.until_status(active=2, ready=2)
    for failures in ("0", "1"):
        pods = [pod for pod in await cluster.pods() if pod["status"]["phase"] == "Running"]
        pod = next(pod for pod in pods if pod["metadata"]["labels"][INDEX] == "0")
        assert pod["metadata"]["annotations"][FAILURES] == failures
        await cluster.end(pod, "Failed")
        await cluster.until_status(active=1)
        if failures == "0":
            await cluster.until_status(active=2, ready=2)
    status = await cluster.until_status(failedIndexes="0", active=1)
    await cluster.until_status(failed=2)
    other = next(pod for pod in await cluster.pods() if pod["status"]["phase"] == "Running")
    await cluster.end(other, "Succeeded")
    ended = await cluster.until_condition("Failed")
    assert (ended["reason"], ended["message"]) == ("FailedIndexes", "Job has failed indexes")
    status = await cluster.status()
    assert (status["completedIndexes"], status["failedIndexes"]) == ("1", "0")


@live
async def test_too_many_failed_indexes_end_the_job(cluster: Cluster) -> None:
    limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    await cluster.create(made({}, completionMode="Indexed", completions=3, parallelism=3, **limits))
    await cluster.until_status(active=3, ready=3)
    pod = next(pod for pod in await cluster.pods() if pod["metadata"]["labels"][INDEX] == "2")
    await cluster.end(pod, "Failed")
    ended = await cluster.until_condition("Failed")
    assert ended["reason"] == "MaxFailedIndexesExceeded"
    assert (await cluster.status())["failedIndexes"] == "2"


@live
async def test_a_rule_fails_an_index_at_once(cluster: Cluster) -> None:
    policy = {"rules": [rule("FailIndex", 42)]}
    limits = {"backoffLimitPerIndex": 5, "podFailurePolicy": policy}
    await cluster.create(made(BRIEF, completionMode="Indexed", completions=1, parallelism=1, **limits))
    ended = await cluster.until_condition("Failed")
    assert ended["reason"] == "FailedIndexes"
    assert len(await cluster.pods()) == 1


@live
async def test_a_success_policy_ends_the_job_with_the_leader(cluster: Cluster) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    await cluster.create(
        made({}, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    )
    await cluster.until_status(active=3, ready=3)
    leader = next(pod for pod in await cluster.pods() if pod["metadata"]["labels"][INDEX] == "0")
    await cluster.end(leader, "Succeeded")
    ended = await cluster.until_condition("Complete")
    assert (ended["reason"], ended["message"]) == ("SuccessPolicy", "Matched rules at index 0")
    status = await cluster.status()
    assert (status["succeeded"], status["completedIndexes"]) == (1, "0")
    assert "failed" not in status
    await cluster.until_pods(1)
