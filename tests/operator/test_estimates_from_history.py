"""What earlier runs of the same work say of the next: kept in a ConfigMap, told in verdicts."""

from __future__ import annotations

import json
from typing import Any

import cluster
import existing
import pytest
from manifests import group, own

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port
from lstqueue.operator import histories

MAPS = port.CONFIG_MAPS
STORED = "15s"
"""Within which ends are written."""


def submit(made: cluster.Cluster, name: str, *groups: dict[str, Any], **spec: Any) -> None:
    """Create a DeadlineJob that may be like others."""
    body = own("DeadlineJob", name, {"queue": cluster.QUEUE, "groups": list(groups), **spec}, alike=True)
    made.create(port.DEADLINE_JOBS, body)


def stored(made: cluster.Cluster) -> dict[str, Any]:
    """The entries of the ConfigMap, read; {} where there is none."""
    for raw in made.store.list(MAPS):
        if raw["metadata"]["name"] == histories.NAME:
            return {key: json.loads(text) for key, text in raw["data"].items()}
    return {}


def key_of(made: cluster.Cluster, name: str) -> str:
    return str(made.status(name)["historyKey"])


def writes(made: cluster.Cluster) -> int:
    """How often somebody has written a ConfigMap."""
    return sum(call.resource == MAPS and faults.writes(call) for call in made.calls.seen)


async def ended(made: cluster.Cluster, name: str, *, run_for: str = "1h", **spec: Any) -> None:
    """Have a job run to its end, and its run time stored."""
    submit(made, name, group(run_for=run_for), **spec)
    await made.until_phase(name, "Succeeded", within="2d")
    await made.rest(STORED)


@cluster.virtual
async def test_the_second_of_its_kind_is_judged_though_nobody_gave_an_estimate() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        submit(made, "first", group(run_for="1h"), deadlineIn="3h")
        await made.until_phase("first", "Running")
        assert made.level("first") == "UNKNOWN"
        submit(made, "second", group(run_for="1h"), deadlineIn="5h")
        await made.until_phase("first", "Succeeded", within="2h")
        await made.until_phase("second", "Running")
        assert made.level("second") == "LIKELY"
        told = made.status("second")["estimate"]
        assert (told["lo"], told["mid"], told["hi"], told["source"]) == ("15m", "1h", "1h30m", "History")
        await made.rest(STORED)
        assert stored(made)[key_of(made, "second")]["runs"] == [3_600_000]


@cluster.virtual
async def test_a_restart_keeps_the_history_even_when_its_jobs_are_gone() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await ended(made, "first")
        made.delete("first")
        await made.restart()
        submit(made, "second", group(run_for="1h"), deadlineIn="3h")
        await made.until_phase("second", "Running")
        assert made.status("second")["estimate"]["source"] == "History"


@cluster.virtual
@pytest.mark.parametrize("before_the_write", [True, False])
async def test_a_crash_around_the_write_neither_loses_nor_doubles_a_run(before_the_write: bool) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        submit(made, "first", group(run_for="1h"))
        await made.until_phase("first", "Succeeded", within="2h")
        if not before_the_write:
            await made.until(lambda: stored(made), "it is stored")
        await made.restart()
        await made.rest(STORED)
        assert stored(made)[key_of(made, "first")]["runs"] == [3_600_000]


@cluster.virtual
async def test_ends_are_written_together() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        for name in ("a", "b", "c"):
            submit(made, name, group(run_for="1h"))
        await made.until_all("Succeeded", "a", "b", "c", within="2h")
        await made.rest(STORED)
        assert writes(made) == 1
        assert len(stored(made)[key_of(made, "a")]["seen"]) == 3


@cluster.virtual
async def test_without_permission_it_is_remembered_until_the_operator_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster.run(nodes=1) as made:
        made.calls.slack = 60  # reading it is tried again and again
        made.faults.fail(403, "Forbidden", when=faults.calls(resource=MAPS), times=None)
        await made.restart()
        made.queue()
        await ended(made, "first", run_for="5m")
        submit(made, "second", group(run_for="5m"), deadlineIn="3h")
        await made.until_phase("second", "Running")
        assert made.status("second")["estimate"]["source"] == "History"
        assert "are not stored, and forgotten when the operator ends" in caplog.text
        made.calm()
        await made.restart()
        await made.until(lambda: stored(made), "the run is learnt from its DeadlineJob", within="1m")


@cluster.virtual
async def test_somebody_elses_write_is_kept_beside_ours() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await ended(made, "first")
        key, other = key_of(made, "first"), "0123456789abcdef"
        theirs = {"runs": [5000], "misses": [], "seen": ["1000/0123abcd"]}
        submit(made, "second", group(run_for="2h"))
        await made.until_phase("second", "Succeeded", within="3h")
        made.patch(MAPS, histories.NAME, {"data": {other: json.dumps(theirs), "note": '"mine"'}})
        await made.rest("1m")
        assert stored(made)[key]["runs"] == [3_600_000, 7_200_000]
        assert (stored(made)[other], stored(made)["note"]) == (theirs, "mine")


@cluster.virtual
@pytest.mark.parametrize(
    "text", ["", "[", "7", '{"runs": ["x", -1, true]}', '{"runs": [1e999]}', "x" * 200_000]
)
async def test_an_entry_that_nobody_can_read_counts_as_absent(text: str) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await ended(made, "first")
        key = key_of(made, "first")
        made.patch(MAPS, histories.NAME, {"data": {key: text, "misses": text}})
        await made.rest("1m")
        submit(made, "second", group(run_for="1h"), deadlineIn="3h")
        await made.until_phase("second", "Running")
        assert "estimate" not in made.status("second")
        await made.until_phase("second", "Succeeded", within="2h")
        await made.rest(STORED)
        assert stored(made)[key]["runs"] == [3_600_000]


@cluster.virtual
async def test_deleting_it_forgets() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await ended(made, "first")
        made.delete(histories.NAME, MAPS)
        await made.rest("1s")
        submit(made, "second", group(run_for="1h"), deadlineIn="3h")
        await made.until_phase("second", "Running")
        assert "estimate" not in made.status("second")
        await made.until_phase("second", "Succeeded", within="2h")
        await made.rest(STORED)
        assert len(stored(made)[key_of(made, "second")]["seen"]) == 1


@cluster.virtual
async def test_what_a_suspension_lost_is_no_run_time() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        submit(made, "job", group(run_for="1h"), checkpoint={"interval": "10m"})
        await made.until_phase("job", "Running")
        await made.rest("25m")
        made.edit("job", active=False)
        await made.until_phase("job", "Pending")
        made.edit("job", active=True)
        await made.until_phase("job", "Succeeded", within="3h")
        await made.rest(STORED)
        # The simulated pods begin anew, so that the second run is whole.
        assert stored(made)[key_of(made, "job")]["runs"] == [(20 + 60) * 60_000]


@cluster.virtual
async def test_failed_runs_and_foreign_work_teach_nothing() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        submit(made, "broken", group(fail_after="1h", exit_code="1"), backoffLimit=0)
        await made.until_phase("broken", "Failed", within="2h")
        await made.rest(STORED)
        assert stored(made) == {}


@cluster.virtual
async def test_a_labelled_job_learns_from_the_one_before_it_after_both_are_gone() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        jobs = existing.Existing(made)
        jobs.create("night-1", run_for="1h", pod={"restartPolicy": "Never"})
        ledger = await _ledger_of(made, "night-1")
        await made.until_phase(ledger, "Succeeded", within="2h")
        made.delete("night-1", port.JOBS)
        await made.restart()
        await made.rest(STORED)
        jobs.create("night-2", run_for="1h", said={"deadline-in": "3h"})
        again = await _ledger_of(made, "night-2")
        await made.until_phase(again, "Running")
        assert made.status(again)["estimate"]["source"] == "History"
        assert made.status(again)["historyKey"] == made.status(ledger)["historyKey"]


async def _ledger_of(made: cluster.Cluster, job: str) -> str:
    def found() -> list[str]:
        own = [raw["metadata"]["name"] for raw in made.store.list(port.DEADLINE_JOBS)]
        return [name for name in own if name.startswith(f"job-{job}-")]

    await made.until(found, f"{job} has a DeadlineJob")
    return found()[0]


@cluster.virtual
async def test_a_job_that_asks_to_is_like_no_other() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await ended(made, "first")
        body = {
            "metadata": {"name": "second", "labels": {names.LABEL_HISTORY: ""}},
            "spec": {"queue": cluster.QUEUE, "groups": [group(run_for="1h")], "deadlineIn": "3h"},
        }
        made.create(port.DEADLINE_JOBS, {"apiVersion": names.API_VERSION, "kind": "DeadlineJob", **body})
        await made.until_phase("second", "Running")
        assert "estimate" not in made.status("second")
        assert "historyKey" not in made.status("second")


@cluster.virtual
async def test_max_run_time_bounds_what_is_expected() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        submit(made, "job", group(run_for="1h"), estimatedDuration="2h", maxRunTime="150m", deadlineIn="1d")
        await made.until_phase("job", "Running")
        told = made.status("job")["estimate"]
        assert (told["mid"], told["hi"], told["source"]) == ("2h", "2h30m", "User")
