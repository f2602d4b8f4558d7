"""Labelled Jobs of one owner that nobody can read: none is begun, and what was begun alone is not lost."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import group

from lstqueue.kube import port


@cluster.virtual
async def test_a_job_that_ran_waits_for_its_sibling_to_go_and_is_not_rejected() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="1h") as made:
        jobs = Existing(made)
        made.queue(gpus=16)
        # A kind that exists, or the Jobs would be collected, and that nobody reads.
        flow = made.create(port.SERVICES, {"metadata": {"name": "flow"}, "spec": {"ports": [{"port": 80}]}})
        owner = {"apiVersion": "v1", "kind": "Service", "name": "flow", "controller": True}
        owner["uid"] = flow["metadata"]["uid"]
        jobs.create("first", owner=owner, run_for="3h", said={"estimated-duration": "3h"})
        await jobs.until_phase("first", "Running")
        await made.rest("1h")
        jobs.create("second", owner=owner, run_for="3h")
        await jobs.until_phase("second", "Rejected")
        assert jobs.phase("first") == "Running"
        made.submit("urgent", group("worker", 2, run_for="30m"), deadlineIn="45m", estimatedDuration="30m")
        await made.until_phase("urgent", "Succeeded", within="1h")
        assert jobs.phase("first") == "Pending"
        assert made.code(jobs.ledger("first")) == "SharedOwner"
        assert jobs.suspended("first")
        made.delete("second", port.JOBS)
        await jobs.until_phase("first", "Running", within="5m")
        await jobs.until_phase("first", "Succeeded", within="4h")
