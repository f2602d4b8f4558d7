"""Run times of namespaces that are gone: nothing is written there again, and nothing of them is kept."""

from __future__ import annotations

import cluster
import pytest
from manifests import group, own

from lstqueue.embedded import faults
from lstqueue.kube import port

GONE = "ci-1"


def create_namespace(made: cluster.Cluster) -> None:
    made.create(port.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GONE}})


async def run_there(made: cluster.Cluster) -> None:
    """Have a job run to its end in the namespace; its run time waits to be written."""
    spec = {"queue": cluster.QUEUE, "groups": [group(run_for="5m")]}
    made.store.create(port.DEADLINE_JOBS, GONE, own("DeadlineJob", "job", spec, alike=True))
    await made.until(lambda: GONE in made.operator.cache.histories.unwritten(), "it has ended")


def writes(made: cluster.Cluster) -> int:
    """How often somebody has tried to store run times."""
    return sum(call.resource == port.CONFIG_MAPS and faults.writes(call) for call in made.calls.seen)


@cluster.virtual
@pytest.mark.parametrize("stored", [True, False])
async def test_when_a_namespace_goes_its_run_times_are_forgotten(stored: bool) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        create_namespace(made)
        await run_there(made)
        if stored:
            await made.rest("15s")
        made.delete(GONE, port.NAMESPACES)
        await made.rest("1m")
        before = writes(made)
        await made.rest("1d")
        assert writes(made) == before
        assert made.operator.cache.histories.shelves == {}
        create_namespace(made)
        await run_there(made)
        await made.rest("15s")
        assert [raw["metadata"]["namespace"] for raw in made.store.list(port.CONFIG_MAPS)] == [GONE]


@cluster.virtual
@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (404, "NotFound", f'namespaces "{GONE}" not found'),
        (
            403,
            "Forbidden",
            f"unable to create new content in namespace {GONE} because it is being terminated",
        ),
    ],
)
async def test_what_is_refused_for_its_namespace_is_tried_while_there_are_jobs_in_it(
    status: int, reason: str, words: str
) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        create_namespace(made)
        refused = faults.calls(verb="create", resource=port.CONFIG_MAPS)
        made.faults.fail(status, reason, message=words, when=refused, times=None)
        made.calls.slack = 60
        await run_there(made)
        await made.rest("10m")
        assert made.operator.cache.histories.unwritten() == [GONE]
        made.store.delete(port.DEADLINE_JOBS, GONE, "job")
        await made.rest("10m")
        assert made.operator.cache.histories.shelves == {}
        before = writes(made)
        await made.rest("1d")
        assert writes(made) == before
