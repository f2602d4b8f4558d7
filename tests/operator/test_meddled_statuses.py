"""Statuses that somebody edits: whatever the schema takes ends no operator, and makes no flood of writes."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import Existing
from manifests import group

from lstqueue.kube import port
from lstqueue.operator import snapshots

Object = dict[str, Any]
ODD_TIMES = ("2026-01-01t00:00:00z", "2026-01-01T00:00:00+99:99", "0000-01-01T00:00:00Z")


def edit(made: cluster.Cluster, name: str, status: Object) -> None:
    made.store.patch(port.DEADLINE_JOBS, "default", name, {"status": status}, subresource="status")


def odd(text: str) -> dict[str, Object]:
    condition = {"type": "Foo", "status": "True", "reason": "X", "message": "", "lastTransitionTime": text}
    return {
        "start": {"startTime": text},
        "conditions": {"conditions": [condition]},
        "backoff": {"backoff": {"until": text, "count": 1}},
        "run": {"runs": [{"start": text, "end": text, "reason": "Preempted"}]},
        "verdict": {"verdict": {"level": "LIKELY", "forecastStart": {"earliest": text, "latest": text}}},
    }


@cluster.virtual
async def test_a_run_without_an_end_ends_no_operator() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue()
        made.submit("gang", group(run_for="2h"))
        await made.until_phase("gang", "Running")
        edit(made, "gang", {"runs": [{"start": "2026-01-01T00:00:00Z", "reason": "Preempted"}]})
        await made.rest("1m")
        await made.restart()
        await made.until_phase("gang", "Succeeded", within="3h")
        assert not made.operator.cache.guard.counts


@pytest.mark.parametrize("what", list(odd("")))
@pytest.mark.parametrize("text", ODD_TIMES)
def test_a_time_that_only_the_api_server_takes_counts_as_absent(what: str, text: str) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=2, slack=100) as made:
            made.queue()
            made.submit("gang", group(run_for="2h"), deadlineIn="9h")
            await made.until_phase("gang", "Running")
            edit(made, "gang", odd(text)[what])
            await made.rest("1m")
            await made.restart()
            await made.until_phase("gang", "Succeeded", within="3h")
            assert not made.operator.cache.guard.counts

    cluster.alone(scenario)


@pytest.mark.parametrize("text", ODD_TIMES)
def test_such_a_time_in_a_condition_of_a_queue_is_forgotten(text: str) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=2, slack=100) as made:
            made.queue()
            conditions = {"status": {"conditions": odd(text)["conditions"]["conditions"]}}
            made.store.patch(port.GPU_QUEUES, None, "research", conditions, subresource="status")
            made.submit("gang", group(run_for="1m"))
            await made.until_phase("gang", "Succeeded", within="1h")

    cluster.alone(scenario)


@pytest.mark.parametrize("restarts", [10**9, 2**53, 2**63 - 1])
def test_a_counter_of_many_digits_makes_no_flood_of_writes(restarts: int) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=2, slack=100) as made:
            made.queue(stopPolicy="Hold")
            made.submit("gang", group(run_for="1h"))
            await made.rest("1m")
            edit(made, "gang", {"restarts": restarts})
            made.patch_queue(stopPolicy="None")
            await made.rest("2m")
            assert made.phase("gang") == "Running"
            assert made.calls.writes() < 100
            if restarts >= 2**53:
                # What audits statuses has no such rule, and would call the labels wrong.
                made.world.audit.violations.clear()

    cluster.alone(scenario)


@cluster.virtual
async def test_an_own_job_whose_attempt_has_many_digits_makes_no_flood_of_writes() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue()
        jobs = Existing(made)
        jobs.create("own", run_for="1h")
        await jobs.until_phase("own", "Running")
        edit(made, jobs.ledger("own"), {"attempt": 10**9})
        await made.rest("5m")
        assert made.calls.writes() < 100
        # The edit itself is a breach: an attempt that nobody was admitted for.
        made.world.audit.violations.clear()


@cluster.virtual
async def test_a_job_that_nothing_can_be_made_of_is_held_back_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_ever = snapshots.engine_job

    def fails(record: Any, *rest: Any) -> Any:
        if record.ledger.name == "odd":
            raise KeyError("end")
        return as_ever(record, *rest)

    monkeypatch.setattr(snapshots, "engine_job", fails)
    async with cluster.run(nodes=2, slack=100) as made:
        made.defects = True
        made.queue()
        made.submit("odd", group(run_for="1m"))
        made.submit("sound", group(run_for="1m"))
        await made.until_phase("sound", "Succeeded", within="1h")
        await made.until(lambda: made.code("odd") == "Unreadable", "its user is told")
        assert "KeyError" in made.status("odd")["pending"]["message"]
        assert made.operator.cache.guard.counts["DeadlineJob"]
        assert b'left_aside{kind="DeadlineJob"}' not in made.operator.metrics.render()
        made.operator.metrics.count_unreadable(made.operator.cache.guard.counts)
        assert b'left_aside{kind="DeadlineJob"}' in made.operator.metrics.render()
