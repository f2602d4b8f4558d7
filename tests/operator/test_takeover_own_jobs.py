"""What an operator that comes up finds of users' own Jobs, row by row: forward if it can, else back."""

from __future__ import annotations

from collections.abc import Callable

import cluster
import pytest
from crashes import dead, dies_when
from existing import Existing
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

SAID = {"estimated-duration": "3h"}


def let_go(jobs: Existing) -> int:
    """How many pods of the Job were let go."""
    return sum(not raw["spec"].get("schedulingGates") for raw in jobs.pods("train"))


async def starting(jobs: Existing, condition: Callable[[], bool], **given: object) -> None:
    """A labelled Job of two nodes starts, and the operator dies on the way."""
    made = jobs.made
    made.queue()
    dies_when(made, condition)
    jobs.create("train", **{"run_for": "1h", "said": SAID, **given})
    await dead(made, condition, "it dies while the Job starts")


async def running(jobs: Existing, **given: str) -> None:
    jobs.made.queue()
    jobs.create("train", said=SAID, **({"run_for": "3h"} | given))
    await jobs.until_phase("train", "Running")


@cluster.virtual
async def test_a_commit_whose_reply_was_lost_is_read_again_and_counts() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", run_for="1h", said=SAID)
        await jobs.until_phase("train", "Pending")
        await made.rest("1m")
        made.faults.lose_response(when=faults.calls(verb="patch", resource=port.DEADLINE_JOBS), times=1)
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Succeeded", within="2h")
        assert made.status(jobs.ledger("train"))["attempt"] == 1


@cluster.virtual
async def test_an_admission_that_was_not_released_is_carried_out_where_all_of_it_holds() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: jobs.phase("train") == "Admitted")
        assert jobs.suspended("train")
        places = made.placement(jobs.ledger("train"))
        await made.start()
        await jobs.until_phase("train", "Running", within="5m")
        assert made.placement(jobs.ledger("train")) == places
        assert made.status(jobs.ledger("train"))["attempt"] == 1
        await jobs.until_phase("train", "Succeeded", within="2h")


@cluster.virtual
@pytest.mark.parametrize("change", ["node gone", "node cordoned", "paused", "widened"])
async def test_an_admission_that_was_not_released_and_does_not_hold_is_rolled_back(change: str) -> None:
    async with cluster.run(nodes=4, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: jobs.phase("train") == "Admitted")
        name = jobs.ledger("train")
        node = made.placement(name)[1]
        if change == "node gone":
            made.delete(node, port.NODES)
        elif change == "node cordoned":
            made.world.cordon(node)
        elif change == "paused":
            made.edit(name, active=False)
        else:
            jobs.patch("train", {"spec": {"parallelism": 3, "completions": 3}})
        seen: list[tuple[str, bool]] = []
        unsubscribe = made.store.subscribe(lambda _: seen.append((made.phase(name), jobs.suspended("train"))))
        await made.start()
        await made.until(lambda: any(phase == "Pending" for phase, _ in seen), "it is rolled back")
        unsubscribe()
        first = [phase for phase, _ in seen].index("Pending")
        assert all(phase == "Admitted" for phase, _ in seen[:first])
        assert all(suspended for _, suspended in seen[: first + 1])
        made.edit(name, active=True)
        await jobs.until_phase("train", "Running", within="10m")
        assert change in ("paused", "widened") or node not in made.placement(name).values()
        assert len(made.placement(name)) == (3 if change == "widened" else 2)
        assert "backoff" not in made.status(name)
        await jobs.until_phase("train", "Succeeded", within="2h")


@cluster.virtual
async def test_an_admission_of_a_job_that_was_created_anew_meanwhile_releases_nothing() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: jobs.phase("train") == "Admitted")
        first = jobs.ledger("train")
        made.delete("train", port.JOBS)
        jobs.create("train", queue=None, run_for="1h")
        await made.start()
        await made.until_phase(first, "Failed", within="5m")
        assert made.condition(first, "Finished")["reason"] == "JobVanished"
        await made.rest("5m")
        assert jobs.suspended("train")


@cluster.virtual
async def test_pods_that_are_not_all_there_are_waited_for() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: bool(jobs.ledger("train")) and not jobs.suspended("train"))
        assert let_go(jobs) == 0
        await made.start()
        await jobs.until_phase("train", "Running", within="5m")
        assert made.status(jobs.ledger("train"))["attempt"] == 1
        await jobs.until_phase("train", "Succeeded", within="2h")


@cluster.virtual
async def test_pods_that_never_come_to_run_end_the_start_in_time() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        jobs = Existing(made)
        nobody = {"schedulerName": "nobody"}
        await starting(jobs, lambda: bool(jobs.ledger("train")) and not jobs.suspended("train"), pod=nobody)
        await made.start()

        def backed_off() -> bool:
            return (made.status(jobs.ledger("train")).get("backoff") or {}).get("count") == 1

        await made.until(backed_off, "it backs off", within="10m")
        await made.until(lambda: jobs.suspended("train"), "it is suspended", within="5m")
        assert not jobs.over("train")


@cluster.virtual
async def test_a_job_that_was_half_let_go_is_let_go_to_where_it_was_recorded() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: let_go(jobs) == 1)
        places = made.placement(jobs.ledger("train"))
        made.world.add_nodes(2)
        await made.start()
        await jobs.until_phase("train", "Running", within="5m")
        assert made.placement(jobs.ledger("train")) == places
        assert jobs.bound("train") == sorted(places.values())
        assert made.status(jobs.ledger("train"))["attempt"] == 1
        await jobs.until_phase("train", "Succeeded", within="2h")


@cluster.virtual
@pytest.mark.parametrize("rank", [0, 1])
async def test_a_job_that_was_half_let_go_and_lost_a_node_is_suspended_and_queued(rank: int) -> None:
    async with cluster.run(nodes=3, slack=30, reaction="10m") as made:
        jobs = Existing(made)
        await starting(jobs, lambda: let_go(jobs) == 1)
        name = jobs.ledger("train")
        node = made.placement(name)[rank]
        made.delete(node, port.NODES)
        await made.start()
        await made.until(lambda: made.status(name)["attempt"] == 2, "it is admitted again", within="20m")
        await jobs.until_phase("train", "Running", within="5m")
        assert node not in made.placement(name).values()
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_job_that_finished_before_it_was_suspended_has_succeeded() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="30m") as made:
        jobs = Existing(made)
        await running(jobs, run_for="20m")
        dies_when(made, lambda: jobs.phase("train") == "Suspending")
        made.edit(jobs.ledger("train"), active=False)
        await dead(
            made, lambda: jobs.phase("train") == "Suspending", "it dies before it is stopped", away="25m"
        )
        assert jobs.over("train") == "Complete"
        await made.start()
        await jobs.until_phase("train", "Succeeded", within="5m")


@cluster.virtual
async def test_a_job_whose_pods_are_gone_is_queued() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await running(jobs)

        def stopped() -> bool:
            return jobs.phase("train") == "Suspending" and not jobs.pods("train")

        dies_when(made, stopped)
        made.edit(jobs.ledger("train"), active=False)
        await dead(made, stopped, "it dies when the last pod is gone")
        await made.start()
        await jobs.until_phase("train", "Pending", within="5m")
        made.edit(jobs.ledger("train"), active=True)
        await jobs.until_phase("train", "Succeeded", within="5h")


@cluster.virtual
@pytest.mark.parametrize("phase", ["Admitted", "Running"])
async def test_a_job_that_its_user_suspended_meanwhile_is_paused(phase: str) -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        if phase == "Running":
            await running(jobs)
            await made.kill()
        else:
            await starting(jobs, lambda: let_go(jobs) == 1)
        jobs.suspend("train")
        await made.rest("5m")
        await made.start()
        await jobs.until_phase("train", "Pending", within="10m")
        name = jobs.ledger("train")
        assert made.job(name)["spec"]["active"] is False
        assert "backoff" not in made.status(name)
        made.edit(name, active=True)
        await jobs.until_phase("train", "Succeeded", within="5h")


@cluster.virtual
@pytest.mark.parametrize("phase", ["Admitted", "Running"])
async def test_a_job_that_vanished_meanwhile_has_failed_and_missed_nothing(phase: str) -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        if phase == "Running":
            await running(jobs)
            await made.kill()
        else:
            await starting(jobs, lambda: let_go(jobs) == 1)
        name = jobs.ledger("train")
        made.delete("train", port.JOBS)
        await made.rest("5m")
        await made.start()
        await made.until_phase(name, "Failed", within="5m")
        assert made.condition(name, "Finished")["reason"] == "JobVanished"
        assert not made.holds(name, "DeadlineMissed")
        made.submit("next", group("worker", 2, run_for="1m"))
        await made.until_phase("next", "Succeeded", within="10m")


@cluster.virtual
async def test_a_job_that_vanished_after_its_success_could_be_seen_has_succeeded() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await running(jobs, run_for="20m")
        name = jobs.ledger("train")
        # The status write in which it would be said is held up; the Job is cleared away meanwhile.
        made.faults.delay(30.0, when=faults.calls(verb="patch", resource=port.DEADLINE_JOBS), times=1)
        await made.until(lambda: jobs.over("train") == "Complete", "it is complete")
        await made.rest("5s")
        made.delete("train", port.JOBS)
        await made.until_phase(name, "Succeeded", within="5m")
