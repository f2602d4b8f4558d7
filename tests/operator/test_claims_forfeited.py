"""Claims of jobs that may not use the queue any more: they are given up, and nobody is suspended for them."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

DEFAULT = "lstqueue.dev/default-queue"


def label(made: cluster.Cluster, **labels: str) -> None:
    if made.store.find(port.NAMESPACES, None, "default") is None:
        made.store.create(port.NAMESPACES, None, {"metadata": {"name": "default"}})
    found = {DEFAULT if key == "default" else key: value for key, value in labels.items()}
    made.store.patch(port.NAMESPACES, None, "default", {"metadata": {"labels": found}})


async def claiming(made: cluster.Cluster) -> None:
    """An urgent job claims the room of a victim that is told of it a little later."""
    made.submit("holder", group(run_for="9h"), estimatedDuration="9h")
    await made.until_phase("holder", "Running")
    await made.rest("1h")
    made.faults.delay(20.0, when=faults.calls(verb="patch", resource=port.DEADLINE_JOBS, name="holder"))
    made.submit_spec(
        "urgent", {"groups": [group(run_for="1h")], "deadlineIn": "90m", "estimatedDuration": "1h"}
    )
    await made.until_phase("urgent", "Claiming", within="1h")
    assert made.status("urgent")["claim"]["queue"] == "research"


def quota(made: cluster.Cluster) -> None:
    body = {"metadata": {"name": "small"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    made.store.create(port.RESOURCE_QUOTAS, "default", body)


@pytest.mark.parametrize("what", ["selector", "default", "quota"])
def test_a_claimer_that_loses_its_queue_waits_again_and_its_victim_runs_on(what: str) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=1, slack=200, reaction="5m") as made:
            label(made, team="a", default="research")
            made.queue(namespaceSelector={"matchLabels": {"team": "a"}} if what == "selector" else {})
            made.queue("second", gpus=0)
            await claiming(made)
            if what == "selector":
                label(made, team="b")
            elif what == "default":
                label(made, default="second")
            else:
                quota(made)
            await made.until_phase("urgent", "Pending", within="1m")
            await made.rest("10m")
            assert made.phase("holder") == "Running"
            assert "claim" not in made.status("urgent")
            assert made.status("holder")["attempt"] == 1

    cluster.alone(scenario)
