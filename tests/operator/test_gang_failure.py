"""A failed member ends the whole gang, which begins again as often as its user allows."""

from __future__ import annotations

import cluster
from manifests import group

from lstqueue.api import names
from lstqueue.embedded import eventlog
from lstqueue.kube import port

FAILS = {"fail_after": "11m", "exit_code": "3"}


def history(made: cluster.Cluster, name: str) -> list[str]:
    """Collect the phases that a DeadlineJob goes through from now on."""
    seen: list[str] = []

    def note(event: eventlog.Event) -> None:
        if event.resource == port.DEADLINE_JOBS and event.object["metadata"]["name"] == name:
            phase = (event.object.get("status") or {}).get("phase", "")
            if phase and (not seen or seen[-1] != phase):
                seen.append(phase)

    made.store.subscribe(note)
    return seen


@cluster.virtual
async def test_a_failed_rank_stops_all_groups_and_the_gang_starts_again_under_new_names() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        phases = history(made, "gang")
        made.submit("gang", group("leader", run_for="1h"), group("worker", 2, **FAILS), backoffLimit=1)
        await made.until_phase("gang", "Running")
        first = made.placement("gang")
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Running")
        assert made.children("gang") == ["gang-leader-1", "gang-worker-0", "gang-worker-1"]
        assert made.placement("gang") == first
        live = [pod for pod in made.pods("gang") if pod["status"]["phase"] == "Running"]
        assert {pod["metadata"]["labels"][names.LABEL_RESTART] for pod in live} == {"1"}
        assert {pod["metadata"]["labels"][names.LABEL_ATTEMPT] for pod in live} == {"1"}
        await made.until_phase("gang", "Failed")
        assert phases == [
            *("Admitted", "Running", "Suspending"),
            *("Admitted", "Running", "Suspending"),
            "Failed",
        ]
        finished = made.condition("gang", "Finished")
        assert (finished["status"], finished["reason"]) == ("True", "BackoffLimitExceeded")
        assert [run["reason"] for run in made.status("gang")["runs"]] == ["GangFailed", "GangFailed"]


@cluster.virtual
async def test_with_a_limit_of_zero_the_first_failure_is_the_end() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit(
            "gang",
            group("worker", 2, gpus=4, **FAILS),
            backoffLimit=0,
            deadlineIn="1h",
            estimatedDuration="5m",
        )
        await made.until_phase("gang", "Failed")
        assert made.status("gang").get("restarts", 0) == 0
        assert made.holds("gang", "DeadlineMissed")
        assert made.children("gang") == ["gang-worker-0"]


@cluster.virtual
async def test_three_restarts_are_granted_to_those_who_ask_for_nothing() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(**FAILS))
        await made.until_phase("gang", "Failed", within="2h")
        assert made.status("gang")["restarts"] == 3
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_the_user_reads_which_pod_failed_and_how() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit(
            "gang",
            group("worker", 1, terminate_after="5m", **FAILS),
            group("other", 1, gpus=0, terminate_after="5m"),
        )
        await made.until_phase("gang", "Suspending")
        assert made.status("gang")["suspension"]["reason"] == "GangFailed"
        said = made.condition("gang", "Suspended")["message"]
        assert "gang-worker-0-0-" in said
        assert "exit code 3" in said


@cluster.virtual
async def test_the_room_of_a_failed_gang_stays_its_own_until_it_is_back() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit(
            "gang",
            group("leader", run_for="1h"),
            group("worker", terminate_after="10m", **FAILS),
            importance=-5,
        )
        await made.until_phase("gang", "Running")
        made.submit("rival", group("worker", run_for="10m"), deadlineIn="2h", estimatedDuration="10m")
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Running")
        assert made.phase("rival") == "Pending"
        await made.until_phase("gang", "Failed", within="3h")
        await made.until_phase("rival", "Succeeded")


@cluster.virtual
async def test_the_leader_alone_may_decide_that_the_gang_succeeded() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("leader", run_for="30m"), group("worker"), successPolicy="Leader")
        await made.until_phase("gang", "Succeeded")
        await made.until(lambda: not made.staying(), "the workers are ended", within="1m")
        assert made.condition("gang", "Finished")["reason"] == "Succeeded"


@cluster.virtual
async def test_a_worker_may_leave_early_when_the_leader_decides() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit(
            "gang", group("leader", run_for="30m"), group("worker", run_for="5m"), successPolicy="Leader"
        )
        await made.until_phase("gang", "Running")
        await made.rest("10m")
        assert made.phase("gang") == "Running"
        made.submit("next", group(run_for="5m"))
        await made.until_phase("next", "Succeeded", within="10m")
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_rank_that_fails_after_another_has_succeeded_brings_back_the_whole_gang() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("first", run_for="5m"), group("second", **FAILS), backoffLimit=1)
        await made.until_phase("gang", "Running")
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Running")
        live = [pod for pod in made.pods("gang") if pod["status"]["phase"] == "Running"]
        assert sorted(pod["metadata"]["annotations"][names.ANNOTATION_RANK] for pod in live) == ["0", "1"]
        await made.until_phase("gang", "Failed")


@cluster.virtual
async def test_the_room_of_a_rank_that_succeeded_goes_to_others_at_once() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("short", run_for="5m"), group("long", run_for="2h"))
        await made.until_phase("gang", "Running")
        made.submit("next", group(run_for="5m"), estimatedDuration="5m")
        await made.until_phase("next", "Succeeded", within="20m")
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_an_evicted_pod_costs_a_restart_but_is_not_counted_against_the_user() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h", terminate_after="30s"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        made.evict(made.pods("gang")[0])
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        assert made.status("gang")["disruptions"] == 1
        await made.until_phase("gang", "Succeeded", within="2h")
        assert made.status("gang")["runs"][0]["reason"] == "GangDisrupted"


@cluster.virtual
async def test_a_pod_that_somebody_deletes_is_a_failure_of_the_gang() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h"), backoffLimit=1)
        await made.until_phase("gang", "Running")
        made.delete(made.pods("gang")[0]["metadata"]["name"], port.PODS)
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_child_that_somebody_deletes_brings_the_gang_down_and_back() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("leader", run_for="1h"), group("worker", run_for="1h"))
        await made.until_phase("gang", "Running")
        made.delete("gang-worker-0", port.JOBS)
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Succeeded", within="3h")
