"""What an operator that comes up finds, row by row: it goes on from there, forward if it can, else back."""

from __future__ import annotations

from collections.abc import Callable

import cluster
import pytest
from crashes import AWAY, dead, dies_when
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port


def admitted(made: cluster.Cluster) -> bool:
    return made.phase("gang") == "Admitted"


def let_go(made: cluster.Cluster) -> int:
    """How many pods of the gang were let go."""
    return sum(not raw["spec"].get("schedulingGates") for raw in made.pods("gang"))


async def starting(made: cluster.Cluster, condition: Callable[[], bool], **spec: object) -> None:
    """A gang of two nodes starts, and the operator dies on the way."""
    made.queue()
    dies_when(made, condition)
    made.submit("gang", group("worker", 2, run_for="1h"), backoffLimit=0, **spec)
    await dead(made, condition, "it dies while the gang starts")


@cluster.virtual
async def test_a_commit_whose_reply_was_lost_is_read_again_and_counts() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        made.queue()
        commit = faults.calls(verb="patch", resource=port.DEADLINE_JOBS, name="gang")
        made.faults.lose_response(when=commit, times=1)
        made.submit("gang", group("worker", 2, run_for="1h"))
        await made.until_phase("gang", "Succeeded", within="2h")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_an_admission_that_was_not_released_is_carried_out_where_all_of_it_holds() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        await starting(made, lambda: admitted(made))
        assert made.pods("gang") == []
        places = made.placement("gang")
        await made.start()
        await made.until_phase("gang", "Running", within="5m")
        assert made.placement("gang") == places
        assert made.status("gang")["attempt"] == 1
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
@pytest.mark.parametrize("change", ["node gone", "node cordoned", "paused"])
async def test_an_admission_that_was_not_released_and_does_not_hold_is_rolled_back(change: str) -> None:
    async with cluster.run(nodes=3, slack=20, reaction="10m") as made:
        await starting(made, lambda: admitted(made))
        node = made.placement("gang")[1]
        if change == "node gone":
            made.delete(node, port.NODES)
        elif change == "node cordoned":
            made.world.cordon(node)
        else:
            made.edit("gang", active=False)
        phases: list[str] = []
        made.store.subscribe(lambda _: phases.append(made.phase("gang")))
        await made.start()
        await made.until(lambda: "Pending" in phases, "it is rolled back", within="5m")
        assert "Suspending" not in phases
        made.edit("gang", active=True)
        await made.until_phase("gang", "Running", within="10m")
        assert change == "paused" or node not in made.placement("gang").values()
        assert "backoff" not in made.status("gang")
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_an_admission_whose_job_was_deleted_meanwhile_frees_its_room() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        await starting(made, lambda: admitted(made))
        made.delete("gang")
        await made.start()
        made.submit("next", group("worker", 2, run_for="1m"))
        await made.until_phase("next", "Succeeded", within="10m")


@cluster.virtual
async def test_pods_that_are_not_all_there_are_waited_for() -> None:
    async with cluster.run(nodes=2, slack=30, reaction="10m") as made:
        jobs_made = faults.calls(verb="create", resource=port.JOBS)
        made.queue()
        dies_when(made, lambda: bool(made.children("gang")))
        made.submit("gang", group("leader", run_for="1h"), group("worker", run_for="1h"))
        await dead(made, lambda: bool(made.children("gang")), "it dies between the Jobs of two groups")
        assert len(made.children("gang")) == 1
        assert let_go(made) == 0
        await made.start()
        await made.until_phase("gang", "Running", within="5m")
        assert sum(jobs_made(call) for call in made.calls.seen) <= 3
        await made.until_phase("gang", "Succeeded", within="2h")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_pods_that_never_come_end_the_start_in_time() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        made.queue(gangReadyTimeout="20m")
        dies_when(made, lambda: bool(made.children("gang")))
        held = group("worker", 2, run_for="1h", pod={"schedulerName": "nobody"})
        made.submit("gang", held)
        await dead(made, lambda: bool(made.children("gang")), "it dies once its Job is made")
        await made.start()
        await made.until(lambda: (made.status("gang").get("backoff") or {}).get("count") == 1, "it backs off")
        assert made.status("gang").get("restarts", 0) == 0


@cluster.virtual
async def test_a_gang_that_was_half_let_go_is_let_go_to_where_it_was_recorded() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        await starting(made, lambda: let_go(made) == 1)
        assert let_go(made) == 1
        places = made.placement("gang")
        # Tempting: an empty node that the placement would prefer now.
        made.world.add_nodes(2)
        await made.start()
        await made.until_phase("gang", "Running", within="5m")
        assert made.placement("gang") == places
        assert sorted(raw["spec"]["nodeName"] for raw in made.pods("gang")) == sorted(places.values())
        assert made.status("gang")["attempt"] == 1
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
@pytest.mark.parametrize("rank", [0, 1])
async def test_a_gang_that_was_half_let_go_and_lost_a_node_is_stopped_and_queued(rank: int) -> None:
    async with cluster.run(nodes=3, slack=30, reaction="10m") as made:
        await starting(made, lambda: let_go(made) == 1)
        node = made.placement("gang")[rank]
        made.delete(node, port.NODES)
        await made.start()
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is admitted again", within="20m")
        await made.until_phase("gang", "Running", within="5m")
        assert node not in made.placement("gang").values()
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_gang_whose_pods_are_gone_is_queued() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="2h"))
        await made.until_phase("gang", "Running")

        def stopped() -> bool:
            return made.phase("gang") == "Suspending" and not made.staying()

        dies_when(made, stopped)
        made.edit("gang", active=False)
        await dead(made, stopped, "it dies when the last pod is gone")
        assert made.phase("gang") == "Suspending"
        await made.start()
        await made.until_phase("gang", "Pending", within="5m")
        made.edit("gang", active=True)
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_a_gang_whose_jobs_were_suspended_meanwhile_is_paused() -> None:
    async with cluster.run(nodes=2, slack=30, reaction="10m") as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="2h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        await made.kill()
        made.patch(port.JOBS, "gang-worker-0", {"spec": {"suspend": True}})
        await made.rest(AWAY)
        await made.start()
        await made.until_phase("gang", "Pending", within="5m")
        assert made.job("gang")["spec"]["active"] is False
        made.edit("gang", active=True)
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang").get("restarts", 0) == 0


@cluster.virtual
async def test_a_gang_whose_jobs_vanished_meanwhile_begins_again() -> None:
    async with cluster.run(nodes=2, slack=30, reaction="10m") as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="2h"), backoffLimit=1)
        await made.until_phase("gang", "Running")
        await made.kill()
        made.delete("gang-worker-0", port.JOBS)
        await made.rest(AWAY)
        await made.start()
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["restarts"] == 1


@cluster.virtual
async def test_a_gang_that_finished_meanwhile_has_succeeded_at_the_time_it_did() -> None:
    async with cluster.run(nodes=2, slack=30, reaction="2h") as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="30m"), deadlineIn="1h", estimatedDuration="30m")
        await made.until_phase("gang", "Running")
        await made.kill()
        await made.rest("2h")
        await made.start()
        await made.until_phase("gang", "Succeeded", within="5m")
        assert not made.holds("gang", "DeadlineMissed")
        assert made.now() - made.finished_at("gang") > 80 * 60_000
