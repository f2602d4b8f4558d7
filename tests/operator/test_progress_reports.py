"""What jobs say of their own progress: believed where it can be, told where it cannot."""

from __future__ import annotations

import cluster
import existing
import pytest
from manifests import group

from lstqueue.api import durations, names
from lstqueue.embedded import faults
from lstqueue.kube import port

PROGRESS = names.ANNOTATION_PROGRESS


def report(made: cluster.Cluster, name: str, text: str, kind: port.Resource = port.DEADLINE_JOBS) -> None:
    made.patch(kind, name, {"metadata": {"annotations": {PROGRESS: text}}})


def mid(made: cluster.Cluster, name: str) -> float:
    """The expected run time in hours."""
    return durations.parse(made.status(name)["estimate"]["mid"]) / 3_600_000


async def running(made: cluster.Cluster, name: str = "job", **spec: object) -> None:
    made.queue()
    made.submit(name, group(run_for="10h"), **{"estimatedDuration": "4h", "deadlineIn": "7h", **spec})
    await made.until_phase(name, "Running")


@cluster.virtual
@pytest.mark.parametrize("kind", [port.DEADLINE_JOBS, port.JOBS])
async def test_a_slow_job_is_known_to_be_late_before_its_figure_is_outrun(kind: port.Resource) -> None:
    async with cluster.run(nodes=1) as made:
        await running(made)
        assert made.level("job") == "LIKELY"
        name = "job" if kind == port.DEADLINE_JOBS else "job-worker-0"
        for number in (1, 2, 3):
            await made.rest("1h")
            report(made, name, f"0.{number}", kind)
        await made.rest("1m")
        assert made.status("job")["estimate"]["source"] == "Progress"
        assert 9 < mid(made, "job") < 11
        assert made.level("job") in ("UNLIKELY", "IMPOSSIBLE")


@cluster.virtual
async def test_a_labelled_job_reports_on_itself() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        jobs = existing.Existing(made)
        jobs.create("train", run_for="10h", said={"estimated-duration": "4h", "deadline-in": "1d"})
        await made.until(lambda: jobs.job("train")["status"].get("ready") == 2, "it runs")
        await made.rest("1h")
        report(made, "train", "0.1", port.JOBS)
        await made.rest("10m")
        ledger = next(iter(made.store.list(port.DEADLINE_JOBS)))["metadata"]["name"]
        assert made.status(ledger)["estimate"]["source"] == "Progress"
        assert 7 < mid(made, ledger) < 10
        assert not [raw for raw in made.store.list(port.EVENTS) if raw["reason"] == "UnknownAnnotation"]


@cluster.virtual
@pytest.mark.parametrize("text", ["nan", "1.5", "-1", "half", "x" * 3000])
async def test_what_is_no_share_is_told_once_and_ignored(text: str) -> None:
    async with cluster.run(nodes=1) as made:
        await running(made)
        await made.rest("1h")
        report(made, "job", text)
        await made.rest("1h")
        made.edit("job", value=2)
        await made.rest("1h")
        told = [raw for raw in made.store.list(port.EVENTS) if raw["reason"] == "BadProgress"]
        assert len(told) == 1
        assert told[0]["type"] == "Warning"
        assert made.status("job")["estimate"]["source"] == "User"


@cluster.virtual
async def test_reports_as_expected_cost_no_writes() -> None:
    async with cluster.run(nodes=1) as made:
        await running(made, estimatedDuration="10h", deadlineIn="2d")
        await made.rest("30m")
        report(made, "job", "0.05")
        await made.rest("10m")
        before = len([call for call in made.calls.seen if faults.writes(call)])
        for minute in range(1, 61):
            await made.rest("1m")
            report(made, "job", f"{(40 + minute) / 600:.4f}")
        after = len([call for call in made.calls.seen if faults.writes(call)])
        assert after - before <= 3


@cluster.virtual
async def test_a_restart_believes_what_progress_had_said() -> None:
    async with cluster.run(nodes=1) as made:
        await running(made, deadlineIn="1d")
        await made.rest("1h")
        report(made, "job", "0.1")
        await made.rest("10m")
        told = made.status("job")["estimate"]
        assert told["source"] == "Progress"
        await made.restart()
        await made.rest("10m")
        assert made.status("job")["estimate"] == told
        report(made, "job", "0.2")
        await made.rest("10m")
        assert made.status("job")["estimate"]["source"] == "Progress"


@cluster.virtual
async def test_a_stale_report_of_a_copied_manifest_begins_nothing() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        spec = {"queue": cluster.QUEUE, "groups": [group(run_for="2h")], "estimatedDuration": "2h"}
        meta = {"name": "job", "annotations": {PROGRESS: "1.0"}}
        body = {"apiVersion": names.API_VERSION, "kind": "DeadlineJob", "metadata": meta, "spec": spec}
        made.create(port.DEADLINE_JOBS, body)
        await made.until_phase("job", "Running")
        await made.rest("1h")
        assert made.status("job")["estimate"]["source"] == "User"
