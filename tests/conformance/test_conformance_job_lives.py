"""What becomes of Jobs: pods made and counted, suspension, limits and endings."""

from tests.conformance.live import Cluster, live
from tests.conformance.samples import Object, job

INDEX = "batch.kubernetes.io/job-completion-index"


def running(name: str = "job", **spec: object) -> Object:
    """A Job that runs, its pods for ever."""
    return job(name, suspend=False, **spec)


def simulated(annotations: dict[str, str], **spec: object) -> Object:
    body = running(**spec)
    body["spec"]["template"]["metadata"] = {"annotations": annotations}
    return body


@live
async def test_an_indexed_job_counts_each_index_once(cluster: Cluster) -> None:
    await cluster.create(running(completionMode="Indexed", completions=3, parallelism=3))
    await cluster.until_status(active=3, ready=3)
    pods = {pod["metadata"]["labels"][INDEX]: pod for pod in await cluster.pods()}
    await cluster.end(pods["0"], "Succeeded")
    await cluster.end(pods["2"], "Succeeded")
    status = await cluster.until_status(succeeded=2, active=1)
    assert status["completedIndexes"] == "0,2"
    await cluster.end(pods["1"], "Succeeded")
    ended = await cluster.until_condition("Complete")
    assert ended["reason"] == "CompletionsReached"
    status = await cluster.status()
    assert [item["type"] for item in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["completedIndexes"] == "0-2"
    assert status["completionTime"] >= status["startTime"]


@live
async def test_a_bag_keeps_as_many_pods_as_slots_until_its_completions(cluster: Cluster) -> None:
    await cluster.create(running(completions=4, parallelism=2))
    for done in range(3):
        await cluster.until_status(active=2, ready=2, succeeded=done)
        pod = next(pod for pod in await cluster.pods() if pod["status"]["phase"] == "Running")
        await cluster.end(pod, "Succeeded")
    await cluster.until_status(succeeded=3, active=1)
    assert len(await cluster.pods()) == 4


@live
async def test_a_work_queue_makes_no_pods_after_its_first_success(cluster: Cluster) -> None:
    await cluster.create(running(parallelism=2))
    await cluster.until_status(active=2, ready=2)
    first, second = await cluster.pods()
    await cluster.end(first, "Succeeded")
    await cluster.until_status(active=1, succeeded=1)
    await cluster.end(second, "Failed")
    await cluster.until_condition("Complete")
    assert await cluster.until_status(succeeded=1, failed=1)


@live
async def test_suspending_a_work_queue_after_a_success_completes_it(cluster: Cluster) -> None:
    await cluster.create(running(parallelism=3))
    await cluster.until_status(active=3, ready=3)
    await cluster.end((await cluster.pods())[0], "Succeeded")
    await cluster.until_status(active=2, succeeded=1)
    await cluster.patch("job", {"suspend": True})
    await cluster.until_condition("Complete")
    assert not await cluster.condition("Suspended")


@live
async def test_suspension_keeps_what_succeeded_and_resumes_the_rest_any_number_of_times(
    cluster: Cluster,
) -> None:
    body = running(completionMode="Indexed", completions=3, parallelism=3, backoffLimit=0)
    await cluster.create(body)
    await cluster.until_status(active=3, ready=3)
    done = next(pod for pod in await cluster.pods() if pod["metadata"]["labels"][INDEX] == "1")
    await cluster.end(done, "Succeeded")
    await cluster.until_status(succeeded=1, active=2)
    for _ in range(2):
        await cluster.patch("job", {"suspend": True})
        await cluster.until_condition("Suspended")
        status = await cluster.until_status(active=0, terminating=0, succeeded=1)
        assert "startTime" not in status
        kept = await cluster.until_pods(1)
        assert kept[0]["metadata"]["name"] == done["metadata"]["name"]
        await cluster.patch("job", {"suspend": False})
        status = await cluster.until_status(active=2, ready=2)
        assert status["startTime"]
        assert status.get("failed", 0) == 0
        indexes = sorted(pod["metadata"]["labels"][INDEX] for pod in await cluster.pods())
        assert indexes == ["0", "1", "2"]


@live
async def test_a_failure_past_the_limit_ends_the_job_and_counts_all_its_pods(cluster: Cluster) -> None:
    await cluster.create(running(completionMode="Indexed", completions=3, parallelism=3, backoffLimit=0))
    await cluster.until_status(active=3, ready=3)
    await cluster.end((await cluster.pods())[0], "Failed")
    ended = await cluster.until_condition("Failed")
    assert ended["reason"] == "BackoffLimitExceeded"
    status = await cluster.status()
    assert [item["type"] for item in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["failed"] == 3
    assert "active" not in status


@live
async def test_a_failed_pod_is_replaced_after_ten_seconds(cluster: Cluster) -> None:
    await cluster.create(running(completions=1, backoffLimit=1))
    await cluster.until_status(active=1, ready=1)
    await cluster.end((await cluster.pods())[0], "Failed")
    await cluster.until_status(active=0, failed=1)
    assert len(await cluster.pods()) == 1
    await cluster.until_pods(2)
    await cluster.until_status(active=1, failed=1)


@live
async def test_parallelism_changes_in_flight(cluster: Cluster) -> None:
    await cluster.create(running(completions=6, parallelism=1))
    await cluster.until_status(active=1)
    await cluster.patch("job", {"parallelism": 3})
    await cluster.until_status(active=3)
    await cluster.patch("job", {"parallelism": 0})
    status = await cluster.until_status(active=0, terminating=0)
    assert status.get("failed", 0) == 0
    await cluster.until_pods(0)


@live
async def test_an_active_deadline_fails_the_job(cluster: Cluster) -> None:
    await cluster.create(running(completions=1, activeDeadlineSeconds=2))
    ended = await cluster.until_condition("Failed")
    assert ended["reason"] == "DeadlineExceeded"
    assert ended["message"] == "Job was active longer than specified deadline"
    await cluster.until_pods(0)


@live
async def test_a_finished_job_is_removed_after_its_time_to_live(cluster: Cluster) -> None:
    annotations = {"sim/run-for": "1s"}
    await cluster.create(simulated(annotations, completions=1, ttlSecondsAfterFinished=2))
    await cluster.until_condition("Complete")
    await cluster.until_gone("job")
    await cluster.until_pods(0)


@live
async def test_a_job_of_another_manager_is_left_alone(cluster: Cluster) -> None:
    await cluster.create(running("other", managedBy="example.com/manager"))
    await cluster.create(running("own", completions=1))
    await cluster.until_status("own", active=1)
    assert await cluster.pods("other") == []
    assert await cluster.status("other") == {}
