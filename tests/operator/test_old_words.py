"""Words about why a job waits, in a cluster where nothing happens: they are looked at again all the same."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import group


@cluster.virtual
async def test_a_node_that_was_forgiven_is_not_said_to_be_avoided() -> None:
    async with cluster.run(nodes=3, slack=300) as made:
        made.queue()
        jobs = Existing(made)
        jobs.create("bag", parallelism=3, completions=9, indexed=False, run_for="1h")
        await jobs.until_phase("bag", "Running")
        await made.rest("30m")
        pod = next(pod for pod in jobs.pods("bag") if pod["spec"]["nodeName"] == "node-0000")
        made.world.cordon("node-0000")
        made.end_pod(pod, "Succeeded")
        await made.rest("10h")
        status = made.status(jobs.ledger("bag"))
        assert "backoff" not in status
        assert "avoiding" not in (status.get("pending") or {}).get("message", "")


@cluster.virtual
async def test_words_are_looked_at_every_hour_and_written_only_where_they_differ() -> None:
    async with cluster.run(nodes=1, slack=300) as made:
        made.queue()
        made.submit("long", group(run_for="48h"), estimatedDuration="2h")
        await made.until_phase("long", "Running")
        made.submit("waits", group(run_for="1m"), estimatedDuration="1m")
        await made.rest("5h")
        passes, writes = made.operator.loop.passes, made.calls.writes()
        await made.rest("10h")
        assert 10 <= made.operator.loop.passes - passes <= 200
        assert made.calls.writes() - writes <= 20
        told = made.operator.cache.records[made.job("waits")["metadata"]["uid"]].told_at
        assert made.world.now() - told <= 3_700_000
