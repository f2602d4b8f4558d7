"""Words about why a job waits, in a cluster where nothing happens: they are looked at again all the same."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import group

from lstqueue.kube import port


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


@cluster.virtual
async def test_why_no_start_can_be_foreseen_is_put_right_once_that_is_past() -> None:
    async with cluster.run(nodes=2, slack=4000, reaction="15h") as made:
        made.queue(gpus=16)
        made.world.cordon("node-0000")
        made.foreign_pod("intruder", "node-0001")
        made.submit("gang", group(replicas=2, run_for="30m"), deadlineIn="50h", estimatedDuration="30m")
        await made.rest("1m")
        assert "node-0000 is cordoned and foreign pod" in made.status("gang")["verdict"]["reason"]
        assert "others leave and it is uncordoned" in made.status("gang")["pending"]["message"]
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": False}})
        await made.rest("65m")
        reason = made.status("gang")["verdict"]["reason"]
        assert "cordoned" not in reason
        assert "default/intruder on node-0001" in reason
        made.delete("intruder", port.PODS)
        await made.until_phase("gang", "Succeeded")
