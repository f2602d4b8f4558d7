"""Specs that are edited while something that was found out about the older one is on its way."""

from __future__ import annotations

import dataclasses

import cluster
from existing import Existing
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port
from lstqueue.operator import writer

SLOW = dataclasses.replace(cluster.SETTINGS, in_flight=1, quiet=20.0, at_most=40.0)
"""One write at a time, and passes so far apart that writes wait for their turn in between."""


async def report_waits(made: cluster.Cluster, name: str) -> None:
    """Let the first pass be over, whose report on a job stands behind the write of another."""
    await made.rest("22s")
    assert made.operator.loop.writer.pending(made.job(name)["metadata"]["uid"]) is writer.Urgency.REPORT


@cluster.virtual
async def test_a_verdict_on_the_older_spec_does_not_reject_the_newer_one() -> None:
    async with cluster.run(nodes=2, settings=SLOW, reaction="5m") as made:
        made.queue()
        made.faults.delay(15.0, when=faults.calls(verb="patch", name="busy", subresource="status"))
        made.submit("busy", group(run_for="10m"))
        made.submit(
            "rushed", group(run_for="3h"), deadlineIn="30m", estimatedDuration="3h", onInfeasible="Reject"
        )
        await report_waits(made, "rushed")
        made.edit("rushed", deadlineIn="100h")
        await made.until_phase("rushed", "Running", "Rejected", within="10m")
        assert made.phase("rushed") == "Running"
        assert made.level("rushed") == "LIKELY"
        assert made.status("rushed")["observedGeneration"] == 2


@cluster.virtual
async def test_the_same_verdict_is_said_of_the_newer_spec_too() -> None:
    async with cluster.run(nodes=2, settings=SLOW, reaction="5m") as made:
        made.queue()
        made.faults.delay(15.0, when=faults.calls(verb="patch", name="busy", subresource="status"))
        made.submit("busy", group(run_for="10m"))
        made.submit(
            "rushed", group(run_for="3h"), deadlineIn="30m", estimatedDuration="3h", onInfeasible="Reject"
        )
        await report_waits(made, "rushed")
        made.edit("rushed", deadlineIn="20m")
        await made.until_phase("rushed", "Rejected", within="10m")
        assert made.status("rushed")["observedGeneration"] == 2


@cluster.virtual
async def test_the_answer_about_an_older_template_is_not_taken_for_one_about_the_newer() -> None:
    async with cluster.run(nodes=2, reaction="5m") as made:
        jobs = Existing(made)
        made.queue()
        for node, zone in (("node-0000", "a"), ("node-0001", "b")):
            made.patch(port.NODES, node, {"metadata": {"labels": {"zone": zone}}})
        made.faults.delay(30.0, when=faults.calls(verb="create", resource=port.PODS), times=1)
        jobs.create("work", parallelism=1, completions=1, pod={"nodeSelector": {"zone": "a"}}, run_for="10m")
        await made.rest("10s")
        edited = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}}
        jobs.patch("work", edited)
        await jobs.until_phase("work", "Running", within="10m")
        assert jobs.bound("work") == ["node-0001"]
        assert made.status(jobs.ledger("work"))["attempt"] == 1
