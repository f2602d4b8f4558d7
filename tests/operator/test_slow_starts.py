"""Who has its places and does not start, or has to leave and does not end, is told what it waits for."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.kube import port

Object = cluster.Object


def why(made: cluster.Cluster, name: str) -> str:
    """The column WHY of `kubectl get dj -o wide`."""
    return str((made.status(name).get("pending") or {}).get("message", ""))


@cluster.virtual
async def test_a_start_that_takes_minutes_names_the_pod_that_is_late() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(bindTimeout="2m", gangReadyTimeout="30m")
        late, fine = group("late", start_after="10m"), group("fine")
        made.submit("gang", late, fine)
        await made.until_phase("gang", "Admitted")
        await made.rest("30s")
        assert why(made, "gang") == ""
        await made.until(lambda: why(made, "gang"), "it is told", within="2m")
        assert made.code("gang") == "Starting"
        pod = next(raw["metadata"]["name"] for raw in made.pods("gang") if "late" in raw["metadata"]["name"])
        assert why(made, "gang").startswith(f"1m after its admission 1 of 2 pods run; pod {pod} is ")
        assert why(made, "gang").count("on node node-") == 1
        await made.rest("1m")
        assert why(made, "gang").startswith("1m after")
        await made.until(lambda: why(made, "gang").startswith("5m after"), "it is told again", within="5m")
        await made.until_phase("gang", "Running", within="10m")
        assert why(made, "gang") == ""


@cluster.virtual
async def test_a_start_of_seconds_is_not_spoken_of() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        codes: list[str] = []
        made.store.subscribe(
            lambda event: (
                codes.append(((event.object.get("status") or {}).get("pending") or {}).get("code"))
                if event.resource == port.DEADLINE_JOBS
                else None
            )
        )
        made.submit("gang", group(run_for="10m"))
        await made.until_phase("gang", "Succeeded")
        assert "Starting" not in codes
        assert "Stopping" not in codes


@cluster.virtual
async def test_what_was_told_outlives_the_operator_and_is_not_said_twice() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="2m", gangReadyTimeout="30m")
        made.submit("gang", group(start_after="4m"))
        await made.until(lambda: why(made, "gang"), "it is told", within="5m")
        before = made.job("gang")["metadata"]["resourceVersion"]
        await made.restart()
        await made.rest("1m")
        assert made.job("gang")["metadata"]["resourceVersion"] == before
        await made.until_phase("gang", "Running", within="10m")


@cluster.virtual
async def test_a_pod_that_does_not_leave_is_named() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group(pod={"terminationGracePeriodSeconds": 600}, terminate_after="5m"))
        await made.until_phase("gang", "Running")
        made.edit("gang", active=False)
        await made.until_phase("gang", "Suspending")
        await made.until(lambda: why(made, "gang"), "it is told", within="2m")
        assert made.code("gang") == "Stopping"
        words = why(made, "gang")
        assert words.startswith("1m after its suspension 1 of its pods has not ended; pod gang-worker-0-0-")
        assert "is being deleted on node node-0000" in words
        await made.until_phase("gang", "Pending", within="10m")
        assert made.code("gang") == "Inactive"


@pytest.mark.parametrize("words", ["x" * 3000, "ü" * 3000], ids=["ascii", "two bytes"])
@cluster.virtual
async def test_a_pod_with_much_to_say_keeps_its_gang_from_nothing(words: str) -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue(bindTimeout="2m", gangReadyTimeout="30m")
        made.submit("gang", group(replicas=2, start_after="150s"))
        await made.until_phase("gang", "Admitted")
        await made.rest("20s")
        waiting = {"reason": "ImagePullBackOff", "message": words}
        said = {"status": {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}}
        for pod in made.pods("gang"):
            name = pod["metadata"]["name"]
            made.store.patch(port.PODS, "default", name, said, subresource="status")
        await made.until(lambda: why(made, "gang"), "it is told", within="2m")
        assert words[:100] in why(made, "gang")
        assert why(made, "gang").endswith("…")
        await made.until_phase("gang", "Running", within="2m")
        assert not made.operator.api.errors
