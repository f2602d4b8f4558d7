"""Whatever label and annotations of a Job say, its user is told on that Job, and nobody else is held up."""

from __future__ import annotations

import cluster
import pytest
from existing import Existing
from manifests import pool

from cases import bad_input_jobs
from lstqueue.kube import port

ROWS = {
    **{f"annotations: {name}": row for name, row in bad_input_jobs.ANNOTATIONS.items()},
    **{f"places: {name}": row for name, row in bad_input_jobs.PLACES.items()},
    **{f"harmless: {name}": row for name, row in bad_input_jobs.HARMLESS.items()},
}


@pytest.mark.parametrize("title", ROWS)
def test_what_cannot_be_used_is_told_on_the_job(title: str) -> None:
    row = ROWS[title]

    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=4, slack=20) as made:
            jobs = Existing(made)
            made.queue(**{"pools": [pool("all")], **row.queue})
            made.queue("other")
            made.create(port.PRIORITY_CLASSES, {"metadata": {"name": "pushy"}, "value": 1000})
            jobs.create(row.name, **{"run_for": "1m", **row.given})
            jobs.create("healthy", queue="other", run_for="10m")
            words = await jobs.until_told(row.name, row.event)
            for part in row.says:
                assert part in words
            assert len(words) <= 1024
            await jobs.until_phase("healthy", "Succeeded")
            assert made.status(jobs.ledger("healthy"))["attempt"] == 1
            assert jobs.phase(row.name) == row.phase
            if row.phase != "Succeeded":
                assert jobs.suspended(row.name)
                assert jobs.pods(row.name) == []

    scenario()
