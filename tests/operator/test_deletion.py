"""DeadlineJobs deleted at any time leave nothing behind, and their names can be used again."""

from __future__ import annotations

import cluster
import manifests
import pytest
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port


def nothing_left(made: cluster.Cluster) -> bool:
    return not (made.pods() or made.store.list(port.JOBS) or made.store.list(port.SERVICES))


@cluster.virtual
async def test_deleted_while_it_waits() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="1h"))
        await made.until_phase("holder", "Running")
        made.submit("waits", group(run_for="1h"))
        await made.until_phase("waits", "Pending")
        made.delete("waits")
        await made.until_phase("holder", "Succeeded", within="2h")


@cluster.virtual
async def test_deleted_before_the_operator_has_even_looked_at_it() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        for number in range(20):
            made.submit(f"brief-{number}", group())
            made.delete(f"brief-{number}")
        await made.rest("1m")
        made.submit("next", group(run_for="10m"))
        await made.until_phase("next", "Succeeded")


@pytest.mark.parametrize("phase", ["Admitted", "Running"])
def test_deleted_while_it_holds_capacity(phase: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2) as made:
            made.queue()
            made.submit("gang", group("worker", 2, start_after="5m", terminate_after="3m"))
            await made.until_phase("gang", phase)
            made.delete("gang")
            deleted = made.now()
            made.submit("next", group("worker", 2, run_for="10m"))
            await made.until_phase("next", "Running")
            if phase == "Running":
                assert made.now() - deleted >= 3 * 60_000
            await made.until_phase("next", "Succeeded")
            assert made.children("gang") == []

    scenario()


@pytest.mark.parametrize("point", range(8))
def test_deleted_after_any_write_of_its_start(point: int) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2) as made:
            made.queue()
            seen = 0

            def look(call: faults.Call) -> None:
                nonlocal seen
                if faults.writes(call) and call.resource != port.GPU_QUEUES:
                    seen += 1
                    if seen == point + 1:
                        # Before this write takes effect.
                        made.delete("gang")

            made.calls.listeners.append(look)
            made.submit("gang", group("leader"), group("worker", start_after="1m"))
            await made.until(lambda: seen > point, "the write is made")
            await made.until(lambda: nothing_left(made), "all is gone", within="5m")
            made.submit("next", group("worker", 2, run_for="10m"))
            await made.until_phase("next", "Succeeded")

    scenario()


@cluster.virtual
async def test_deleted_in_the_foreground_or_held_by_a_finalizer_it_comes_to_rest() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("waits", group("worker", 5))
        made.submit("runs", group("worker", 2, terminate_after="2m"))
        await made.until_phase("waits", "Pending")
        await made.until_phase("runs", "Running")
        held = {"metadata": {"finalizers": ["example.com/keep"]}}
        made.patch(port.DEADLINE_JOBS, "waits", held)
        made.delete("waits")
        made.store.delete(port.DEADLINE_JOBS, cluster.NAMESPACE, "runs", propagation="Foreground")
        await made.until(lambda: not made.status("runs"), "it is gone")
        before = made.operator.loop.passes
        await made.rest("1h")
        assert made.operator.loop.passes - before < 20
        made.patch(port.DEADLINE_JOBS, "waits", {"metadata": {"finalizers": None}})
        await made.until(lambda: nothing_left(made), "all is gone", within="5m")


@cluster.virtual
async def test_a_job_of_the_same_name_waits_for_the_pods_of_its_predecessor() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        first = made.submit("gang", group("worker", 2, terminate_after="10m"))
        await made.until_phase("gang", "Running")
        old = {pod["metadata"]["uid"] for pod in made.pods("gang")}
        made.delete("gang")
        second = made.submit("gang", group("worker", 2, run_for="10m"))
        assert first != second
        await made.until_phase("gang", "Running")
        assert made.status("gang")["attempt"] == 1
        new = [pod for pod in made.pods("gang") if pod["metadata"]["uid"] not in old]
        assert {pod["metadata"]["labels"]["lstqueue.dev/job"] for pod in new} == {second}
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_finished_job_is_deleted_and_submitted_again() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        for _ in range(3):
            made.submit("nightly", group("worker", 2, gpus=4, run_for="10m"))
            await made.until_phase("nightly", "Succeeded")
            assert made.status("nightly")["attempt"] == 1
            made.delete("nightly")
        await made.until(lambda: nothing_left(made), "all is gone", within="5m")


@pytest.mark.parametrize("resource", [port.JOBS, port.SERVICES], ids=["job", "service"])
def test_a_name_that_somebody_else_uses_is_named_and_never_touched(resource: port.Resource) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2) as made:
            made.queue()
            if resource is port.JOBS:
                name = "gang-worker-0"
                template = {"spec": {**manifests.pod_spec(gpus=0), "restartPolicy": "Never"}}
                spec = {"template": template, "suspend": True}
            else:
                name, spec = "gang-gang", {"ports": [{"port": 80}]}
            theirs = made.create(resource, {"metadata": {"name": name}, "spec": spec})
            made.submit("gang", group("worker", 2, run_for="10m"))
            await made.until(
                lambda: (made.status("gang").get("backoff") or {}).get("count") == 2, "it backs off"
            )
            said = made.condition("gang", "Suspended")["message"]
            assert f"{resource.kind} default/{name} exists" in said
            await made.rest("3h")
            assert (
                made.store.get(resource, cluster.NAMESPACE, name)["metadata"]["uid"]
                == theirs["metadata"]["uid"]
            )
            made.delete(name, resource)
            await made.until_phase("gang", "Succeeded")

    scenario()
