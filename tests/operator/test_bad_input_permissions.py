"""An operator that may not do one thing says which, where it is looked for, and does the rest."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import cluster
import pytest
from existing import Existing
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

SINGLE, PAIR, LABELLED = "single", "pair", "train"
ALL = frozenset({SINGLE, PAIR, LABELLED})


@dataclass(frozen=True, slots=True)
class Row:
    """`held` are the jobs that need the verb. The refusal is in the status of each, or else in the log."""

    verb: str
    resource: port.Resource
    held: frozenset[str] = frozenset()
    subresource: str = ""
    told: bool = True


ROWS = {
    "list quotas": Row("list", port.RESOURCE_QUOTAS),
    "list cron jobs": Row("list", port.CRON_JOBS),
    "list pods": Row("list", port.PODS, ALL, told=False),
    "list jobs": Row("list", port.JOBS, ALL, told=False),
    "list nodes": Row("list", port.NODES, ALL, told=False),
    "dry-run pods": Row("create", port.PODS, ALL),
    "create jobs": Row("create", port.JOBS, frozenset({SINGLE, PAIR})),
    "create services": Row("create", port.SERVICES, frozenset({PAIR})),
    "patch pods": Row("patch", port.PODS, ALL),
    "patch jobs": Row("patch", port.JOBS, frozenset({LABELLED})),
    "create ledgers": Row("create", port.DEADLINE_JOBS, frozenset({LABELLED}), told=False),
    "write statuses": Row("patch", port.DEADLINE_JOBS, ALL, "status", told=False),
    "write statuses of queues": Row("patch", port.GPU_QUEUES, subresource="status"),
    "create events": Row("create", port.EVENTS),
}


@pytest.mark.parametrize("title", ROWS)
def test_a_missing_permission_is_named_and_stops_nobody_who_does_not_need_it(
    title: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = ROWS[title]
    kind = row.resource.plural
    refusal = f'{kind} is forbidden: User "lstqueue" cannot {row.verb} resource "{kind}" in API group'

    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=5, start=False, slack=400, reaction="2h") as made:
            jobs = Existing(made)
            needs = faults.calls(verb=row.verb, resource=row.resource, subresource=row.subresource)
            made.faults.fail(403, "Forbidden", message=refusal, when=needs, times=None)
            await made.start()
            made.queue()
            made.submit(SINGLE, group(run_for="10m"))
            made.submit(PAIR, group("worker", 2, run_for="10m"))
            jobs.create(LABELLED, run_for="10m")
            await made.rest("40m")
            for name in sorted(ALL):
                ledger = jobs.ledger(name) if name == LABELLED else name
                assert (made.phase(ledger) == "Succeeded") == (name not in row.held), name
                if name in row.held and row.told:
                    assert refusal in str(made.status(ledger)), name
            assert refusal in caplog.text or (row.told and row.held)
            made.calm()
            await made.until_all("Succeeded", SINGLE, PAIR, within="3h")
            await jobs.until_phase(LABELLED, "Succeeded", within="3h")

    with caplog.at_level(logging.WARNING, logger="lstqueue"):
        scenario()
