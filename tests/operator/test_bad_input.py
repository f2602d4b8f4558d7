"""Whatever a DeadlineJob says, its user is told what is wrong with it, and nobody else is held up."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from manifests import group, own, pool

from cases import bad_input
from lstqueue.kube import port

OTHER = "healthy"


def healthy(made: cluster.Cluster) -> None:
    """A job beside the bad one, in a queue of its own; it has to run as if nothing were."""
    made.queue(OTHER)
    made.submit(OTHER, group(run_for="10m"), queue=OTHER)


@cluster.virtual
async def test_what_is_wrong_in_itself_is_refused_at_once_with_field_and_remedy() -> None:
    async with cluster.run(nodes=1) as made:
        healthy(made)
        for title, row in bad_input.REFUSED.items():
            message = refusal(made, own("DeadlineJob", row.name, row.spec))
            for word in row.says:
                assert word in message, f"{title}: {message}"
            assert len(message) < 2000, title
        await made.until_phase(OTHER, "Succeeded")
        assert made.status(OTHER)["attempt"] == 1


@cluster.virtual
async def test_nulls_are_as_good_as_absent() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        nulls = dict.fromkeys(("deadline", "deadlineIn", "jobRef", "checkpoint", "minRunTime", "value"))
        made.submit_spec("job", {**bad_input.job(), **nulls})
        await made.until_phase("job", "Succeeded")


@pytest.mark.parametrize("title", bad_input.TOLD)
def test_what_the_cluster_cannot_honour_is_told_in_the_status(title: str) -> None:
    row = bad_input.TOLD[title]

    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=3, slack=20) as made:
            made.queue(**{"pools": [pool("all", gpus=16)], **row.queue})
            made.create(port.PRIORITY_CLASSES, {"metadata": {"name": "pushy"}, "value": 1000})
            made.submit_spec("bad", row.spec)
            if row.smuggled is not None:
                made.smuggle(port.DEADLINE_JOBS, "bad", row.smuggled)
            healthy(made)
            await made.until(lambda: row.code in reasons(made), f"{row.code} is told", within="5m")
            assert made.phase("bad") == row.phase
            for word in row.says:
                assert word in words(made), words(made)
            await made.until_phase(OTHER, "Succeeded")
            assert made.status(OTHER)["attempt"] == 1
            assert made.phase("bad") == row.phase
            assert made.pods("bad") == []

    scenario()


def refusal(made: cluster.Cluster, body: dict[str, Any]) -> str:
    """What the API server says of an object that it will not have, "" when it takes it."""
    try:
        made.create(port.DEADLINE_JOBS, body)
    except port.InvalidError as error:
        return error.message
    return ""


def reasons(made: cluster.Cluster) -> tuple[str, str]:
    """The codes under which the bad one is told about: why it waits, and why it ended."""
    return made.code("bad"), str(made.condition("bad", "Finished").get("reason", ""))


def words(made: cluster.Cluster) -> str:
    if made.phase("bad") in cluster.FINAL:
        return str(made.condition("bad", "Finished")["message"])
    return str(made.status("bad")["pending"]["message"])
