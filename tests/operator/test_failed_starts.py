"""Starts that do not succeed: the room is given back, the user told why, and the next try comes later."""

from __future__ import annotations

from collections.abc import Callable

import cluster
import pytest
from manifests import group

from lstqueue.api import names, times
from lstqueue.embedded import eventlog
from lstqueue.kube import port


def once_admitted(made: cluster.Cluster, name: str, act: Callable[[], None], *, attempts: int = 1) -> None:
    """Do something between the commit of an admission and its first pod, in each of so many attempts."""
    done: set[int] = set()

    def look(event: eventlog.Event) -> None:
        status = event.object.get("status") or {}
        if event.resource != port.DEADLINE_JOBS or event.object["metadata"]["name"] != name:
            return
        if status.get("phase") == "Admitted" and len(done) < attempts and status["attempt"] not in done:
            done.add(status["attempt"])
            act()

    made.store.subscribe(look)


async def backed_off(made: cluster.Cluster, name: str, count: int, *, within: str = "2h") -> cluster.Object:
    """Wait for the back-off after the `count`-th failed start."""

    def found() -> bool:
        status = made.status(name)
        return status.get("phase") == "Pending" and (status.get("backoff") or {}).get("count") == count

    await made.until(found, f"{name} backs off {count} times", within=within)
    return dict(made.status(name)["backoff"])


@cluster.virtual
async def test_room_that_a_foreign_pod_took_ends_the_start_and_the_gang_goes_elsewhere() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()

        def intrude() -> None:
            made.foreign_pod("intruder", made.placement("gang")[1])

        once_admitted(made, "gang", intrude)
        made.submit("gang", group("worker", 2, run_for="10m"))
        began = made.now()
        found = await backed_off(made, "gang", 1)
        intruded = made.store.get(port.PODS, cluster.NAMESPACE, "intruder")["spec"]["nodeName"]
        assert made.now() - began == pytest.approx(120_000, abs=5_000)
        assert found["avoid"] == [intruded]
        assert made.pods("gang") == []
        assert "admission" not in made.status("gang")
        await made.until_phase("gang", "Succeeded")
        assert made.status("gang")["attempt"] == 2
        assert made.status("gang").get("restarts", 0) == 0
        assert "backoff" not in made.status("gang")


@cluster.virtual
async def test_the_user_reads_which_pod_was_stuck_while_and_after_it_is_given_up() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        once_admitted(made, "gang", lambda: made.foreign_pod("intruder", "node-0000"))
        made.submit("gang", group("worker", 2, gpus=4, run_for="10m"))
        await backed_off(made, "gang", 1)
        said = made.condition("gang", "Suspended")["message"]
        assert "gang-worker-0-0-" in said
        assert "Insufficient nvidia.com/gpu" in said


@cluster.virtual
async def test_a_node_that_is_cordoned_before_the_first_gate_is_lifted_costs_no_failed_start() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()

        def cordon() -> None:
            (node,) = set(made.placement("gang").values())
            made.patch(port.NODES, node, {"spec": {"unschedulable": True}})

        once_admitted(made, "gang", cordon)
        made.submit("gang", group("worker", 2, gpus=4, run_for="10m"))
        await made.until_phase("gang", "Succeeded", within="15m")
        assert made.status("gang")["attempt"] == 2
        assert "backoff" not in made.status("gang")


@cluster.virtual
async def test_a_gang_that_takes_too_long_to_be_ready_is_given_up() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gangReadyTimeout="20m")
        made.submit("slow", group("worker", 2, start_after="25m", run_for="10m"))
        found = await backed_off(made, "slow", 1)
        assert sorted(found["avoid"]) == ["node-0000", "node-0001"]
        assert times.parse(found["avoidUntil"]) == times.parse(found["until"]) + 60_000
        assert made.pods("slow") == []
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"gangReadyTimeout": "1h"}})
        await made.until_phase("slow", "Succeeded", within="4h")


@cluster.virtual
async def test_a_kubelet_that_refuses_a_pod_is_avoided_without_counting_a_failure() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        refused: list[str] = []

        def refuse(event: eventlog.Event) -> None:
            raw = event.object
            if refused or event.resource != port.PODS or not raw["spec"].get("nodeName"):
                return
            refused.append(raw["spec"]["nodeName"])
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices"}
            made.store.patch(
                port.PODS,
                cluster.NAMESPACE,
                raw["metadata"]["name"],
                {"status": status},
                subresource="status",
            )

        made.store.subscribe(refuse)
        made.submit("gang", group("worker", 1, run_for="10m"), backoffLimit=0)
        assert (await backed_off(made, "gang", 1))["avoid"] == refused
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_the_wait_doubles_and_is_capped_and_no_try_is_made_before_it_is_over() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        broken = group("worker", pod={"schedulerName": "nobody"})
        made.submit("stuck", broken)
        waits = []
        for count in range(1, 8):
            found = await backed_off(made, "stuck", count, within="3h")
            waits.append(round((times.parse(found["until"]) - made.now()) / 60_000))
            assert made.code("stuck") in ("", "BackingOff", "NoRoom")
        assert waits == [1, 2, 4, 8, 16, 30, 30]
        # What nobody binds is let go again and again, but at the pace of the back-off.
        before = made.calls.writes()
        await made.rest("6h")
        assert made.calls.writes() - before < 6 * 2 * 12


@cluster.virtual
async def test_a_tight_deadline_shortens_the_wait() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        broken = group("worker", pod={"schedulerName": "nobody"})
        made.submit("tight", broken, deadlineIn="1h3m", estimatedDuration="1h")
        found = await backed_off(made, "tight", 1)
        assert (times.parse(found["until"]) - made.now()) / 1000 == pytest.approx(30, abs=2)


@cluster.virtual
async def test_the_slack_that_shortens_the_wait_is_that_of_the_queues_estimate_where_a_job_has_none() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m", defaults={"estimatedDuration": "1h"})
        broken = group("worker", pod={"schedulerName": "nobody"})
        made.submit("tight", broken, deadlineIn="1h3m")
        found = await backed_off(made, "tight", 1)
        assert (times.parse(found["until"]) - made.now()) / 1000 == pytest.approx(30, abs=2)


@cluster.virtual
async def test_with_one_node_only_the_gang_comes_back_to_it_in_the_end() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        once_admitted(made, "gang", lambda: made.foreign_pod("intruder", "node-0000"))
        made.submit("gang", group("worker", 2, gpus=4, run_for="10m"))
        await backed_off(made, "gang", 1)
        made.delete("intruder", port.PODS)
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_the_others_use_the_room_while_a_gang_backs_off() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        made.submit("stuck", group("worker", pod={"schedulerName": "nobody"}), importance=5)
        await made.until_phase("stuck", "Admitted")
        made.submit("next", group(run_for="10m"))
        await backed_off(made, "stuck", 1)
        await made.until_phase("next", "Succeeded", within="1h")


@cluster.virtual
async def test_a_gate_of_somebody_else_holds_the_gang_back_without_blaming_the_node() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        gated = group("worker", pod={"schedulingGates": [{"name": "example.com/license"}]}, run_for="10m")
        made.submit("gang", gated)
        await made.until(
            lambda: (
                [pod["spec"]["schedulingGates"] for pod in made.pods("gang")]
                == [[{"name": "example.com/license"}]]
            ),
            "only our gate is lifted",
        )
        found = await backed_off(made, "gang", 1)
        assert found.get("avoid", []) == []
        await made.until_phase("gang", "Admitted")
        await made.until(lambda: bool(made.pods("gang")), "its pod is there again")
        await made.until(
            lambda: names.GATE not in str(made.pods("gang")[0]["spec"].get("schedulingGates")), "it is let go"
        )
        pod = made.pods("gang")[0]["metadata"]["name"]
        made.patch(port.PODS, pod, {"spec": {"schedulingGates": None}})
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_an_edit_of_its_spec_ends_the_row_of_failed_starts() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        made.submit("stuck", group("worker", pod={"schedulerName": "nobody"}))
        await backed_off(made, "stuck", 4, within="3h")
        made.edit("stuck", importance=1)
        await backed_off(made, "stuck", 1, within="5m")
