"""Who is over without success reads which pod failed, where and how; and what became of the deadline."""

from __future__ import annotations

import cluster
import pytest
from existing import Existing
from manifests import group

from lstqueue.api import names, times
from lstqueue.kube import port

FAILS = {"fail_after": "10m", "exit_code": "3"}


def failed_pods(made: cluster.Cluster) -> dict[str, str]:
    """The node of every pod that failed, by its name."""
    pods = made.store.list(port.PODS)
    return {
        raw["metadata"]["name"]: raw["spec"]["nodeName"] for raw in pods if raw["status"]["phase"] == "Failed"
    }


@cluster.virtual
async def test_the_last_failure_is_told_with_its_pod_node_exit_code_and_restarts() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(**FAILS), backoffLimit=1)
        await made.until_phase("gang", "Failed")
        finished = made.condition("gang", "Finished")
        last = {name: node for name, node in failed_pods(made).items() if name.startswith("gang-worker-1-")}
        ((name, node),) = last.items()
        assert finished["reason"] == "BackoffLimitExceeded"
        assert finished["message"] == (
            f"pod {name} failed on node {node}: Error: container main, exit code 3;"
            " it was restarted once, and spec.backoffLimit is 1"
        )


@cluster.virtual
async def test_each_run_keeps_how_it_ended() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(**FAILS), backoffLimit=1)
        await made.until_phase("gang", "Failed")
        runs = made.status("gang")["runs"]
        assert len(runs) == 2
        for number, run in enumerate(runs):
            assert run["message"].startswith(f"pod gang-worker-{number}-0-")
            assert run["message"].endswith("container main, exit code 3")


@cluster.virtual
async def test_a_restart_of_the_operator_on_the_way_out_forgets_nothing() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, **FAILS), backoffLimit=0)
        await made.until_phase("gang", "Suspending")
        await made.restart()
        await made.until_phase("gang", "Failed")
        words = made.condition("gang", "Finished")["message"]
        assert "exit code 3" in words
        assert words.endswith("it was restarted 0 times, and spec.backoffLimit is 0")


@cluster.virtual
async def test_of_a_users_own_job_the_pod_is_told_too_where_its_user_looks() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", parallelism=1, completions=1, spec={"backoffLimit": 0}, **FAILS)
        await jobs.until_phase("train", "Failed")
        ((name, node),) = failed_pods(made).items()
        words = made.condition(jobs.ledger("train"), "Finished")["message"]
        assert words.startswith("Job default/train failed: BackoffLimitExceeded: ")
        assert words.endswith(f"; pod {name} failed on node {node}: Error: container main, exit code 3")
        assert await jobs.until_told("train", "BackoffLimitExceeded") == words


@cluster.virtual
async def test_who_fails_before_its_deadline_has_missed_it_by_another_name() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(**FAILS), backoffLimit=0, deadlineIn="9h", estimatedDuration="1h")
        await made.until_phase("gang", "Failed")
        told = made.condition("gang", "DeadlineMissed")
        assert (told["status"], told["reason"]) == ("True", "EndedWithoutSuccess")
        ended, deadline = made.status("gang")["completionTime"], made.status("gang")["deadline"]
        assert told["message"] == f"it ended at {ended} without success, before its deadline {deadline}"


@cluster.virtual
async def test_its_users_own_job_is_told_the_same() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue()
        said = {"deadline-in": "9h", "estimated-duration": "1h"}
        jobs.create("train", parallelism=1, completions=1, spec={"backoffLimit": 0}, said=said, **FAILS)
        assert "without success" in await jobs.until_told("train", "EndedWithoutSuccess", within="1h")
        assert "DeadlineMissed" not in jobs.events("train")


@cluster.virtual
async def test_a_deadline_that_passes_says_when_it_was() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(run_for="2h"), deadlineIn="1h", estimatedDuration="30m")
        await made.until_phase("gang", "Succeeded", within="3h")
        told = made.condition("gang", "DeadlineMissed")
        deadline = made.status("gang")["deadline"]
        assert told["reason"] == "DeadlineMissed"
        assert told["message"] == f"its deadline {deadline} has passed"


YEAR = "was past already when it was submitted; is the year right?"


@pytest.mark.parametrize("estimate", [{}, {"estimatedDuration": "1h"}])
def test_a_deadline_of_another_year_is_asked_about(estimate: dict[str, str]) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=1) as made:
            made.queue()
            past = times.format(made.now() - 365 * 86_400_000)
            made.submit("gang", group(run_for="1h"), deadline=past, **estimate)
            await made.until(lambda: made.holds("gang", "DeadlineMissed"), "it is told")
            await made.until(lambda: "verdict" in made.status("gang"), "it is judged")
            assert made.condition("gang", "DeadlineMissed")["message"] == f"its deadline {past} {YEAR}"
            assert made.status("gang")["verdict"]["reason"] == f"Its deadline {YEAR}"

    scenario()


@cluster.virtual
async def test_who_cancels_itself_at_once_for_such_a_deadline_reads_so_too() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue()
        past = times.format(made.now() - 365 * 86_400_000)
        made.submit("gang", group(), deadline=past, onMissed="Cancel")
        said = {"deadline": past, "on-missed": "Cancel"}
        jobs.create("train", parallelism=1, completions=1, said=said)
        await made.until_phase("gang", "Failed")
        assert made.condition("gang", "Finished")["message"] == (
            f"spec.onMissed is Cancel, and its deadline {past} {YEAR}"
        )
        await jobs.until_phase("train", "Failed")
        words = made.condition(jobs.ledger("train"), "Finished")["message"]
        assert words.startswith(f"annotation {names.GROUP}/on-missed of the Job is Cancel, and its deadline")
