"""What users are told about their deadlines, and that it follows what they and the cluster do."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.api import times


async def judged(made: cluster.Cluster, name: str, level: str, *, within: str = "10m") -> None:
    await made.until(lambda: made.level(name) == level, f"{name} is told {level}", within=within)


@cluster.virtual
async def test_each_level_as_the_line_before_it_grows() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="4h"), estimatedDuration="4h", importance=5)
        await made.until_phase("holder", "Running")
        hour = {"estimatedDuration": "1h"}
        made.submit("early", group(run_for="1h"), deadlineIn="10m", **hour)
        made.submit("between", group(run_for="1h"), deadlineIn="4h30m", **hour)
        made.submit("close", group(run_for="1h"), deadlineIn="7h", **hour)
        made.submit("far", group(run_for="1h"), deadlineIn="2d", **hour)
        await judged(made, "early", "IMPOSSIBLE")
        await judged(made, "between", "UNLIKELY")
        await judged(made, "close", "AT_RISK")
        await judged(made, "far", "LIKELY")
        for name, risk in (("early", True), ("between", True), ("close", True), ("far", False)):
            assert made.holds(name, "DeadlineAtRisk") is risk, name
        verdict = made.status("far")["verdict"]
        assert times.parse(verdict["forecastStart"]["earliest"]) > made.now()
        assert times.parse(verdict["earliestFeasibleDeadline"]) > made.now()


@cluster.virtual
async def test_without_deadline_or_without_estimate_there_is_nothing_to_judge() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="1h"))
        await made.until_phase("holder", "Running")
        made.submit("no-deadline", group(run_for="10m"), estimatedDuration="10m")
        made.submit("no-estimate", group(run_for="10m"), deadlineIn="2d")
        await judged(made, "no-deadline", "UNKNOWN")
        await judged(made, "no-estimate", "UNKNOWN")
        await made.until_all("Succeeded", "holder", "no-deadline", "no-estimate", within="3h")


@cluster.virtual
async def test_the_queue_supplies_an_estimate_to_those_who_gave_none() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(defaults={"estimatedDuration": "2h"})
        made.submit("job", group(run_for="10m"), deadlineIn="1d")
        await made.until_phase("job", "Running")
        assert made.level("job") == "LIKELY"
        assert made.status("job")["estimate"] == {
            "lo": "30m",
            "mid": "2h",
            "hi": "3h",
            "source": "QueueDefault",
        }


@cluster.virtual
async def test_a_deadline_that_cannot_be_met_is_told_at_once_with_one_that_could() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("rushed", group(run_for="3h"), deadlineIn="30m", estimatedDuration="3h")
        await judged(made, "rushed", "IMPOSSIBLE", within="1m")
        feasible = times.parse(made.status("rushed")["verdict"]["earliestFeasibleDeadline"])
        assert feasible == pytest.approx(made.now() + 4.5 * 3_600_000, abs=60_000)
        await made.until_phase("rushed", "Running", within="1m")


@cluster.virtual
async def test_the_missed_deadline_is_noted_at_the_deadline_while_it_waits_and_while_it_runs() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        began = made.now()
        made.submit("runs", group(run_for="3h"), deadlineIn="2h", estimatedDuration="1h")
        await made.until_phase("runs", "Running")
        made.submit("waits", group(run_for="10m"), deadlineIn="1h", estimatedDuration="10m")
        for name, hours in (("waits", 1), ("runs", 2)):
            await made.until(
                lambda name=name: made.holds(name, "DeadlineMissed"), f"{name} is told", within="3h"
            )
            assert made.now() - began == pytest.approx(hours * 3_600_000, abs=2_000)
            assert made.condition(name, "DeadlineMissed")["reason"] == "DeadlineMissed"
        assert made.phase("runs") == "Running"
        await made.until_all("Succeeded", "runs", "waits", within="3h")
        assert made.holds("runs", "DeadlineMissed")
        assert made.holds("waits", "DeadlineMissed")


@cluster.virtual
async def test_an_extended_deadline_renews_the_verdict_and_the_place_in_the_line() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(preemption={"withinQueue": "Never"})
        made.submit("holder", group(run_for="5h"), estimatedDuration="5h")
        await made.until_phase("holder", "Running")
        made.submit("job", group(run_for="1h"), deadlineIn="3h", estimatedDuration="1h")
        made.submit("other", group(run_for="1h"), deadlineIn="1d", estimatedDuration="1h")
        await judged(made, "job", "UNLIKELY")
        await made.until(lambda: made.status("job").get("late") is True, "it is late", within="4h")
        made.edit("job", deadlineIn="20h")
        await judged(made, "job", "LIKELY", within="2m")
        assert made.status("job")["late"] is False
        assert made.status("job")["deadline"] == times.format(
            times.parse(made.job("job")["metadata"]["creationTimestamp"]) + 20 * 3_600_000
        )
        assert not made.holds("job", "DeadlineMissed")
        await made.until_all("Succeeded", "job", "other", within="10h")
        assert made.finished_at("job") < made.finished_at("other")


@cluster.virtual
async def test_a_missed_deadline_that_is_extended_is_missed_no_more() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="2h"), deadlineIn="1h", estimatedDuration="30m")
        await made.until(lambda: made.holds("job", "DeadlineMissed"), "it is missed", within="2h")
        made.edit("job", deadlineIn="5h")
        await made.until(lambda: not made.holds("job", "DeadlineMissed"), "it is open again", within="2m")
        await made.until_phase("job", "Succeeded", within="3h")
        assert not made.holds("job", "DeadlineMissed")


@cluster.virtual
async def test_a_new_estimate_and_a_new_importance_are_heeded_at_once() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="2h"), estimatedDuration="2h")
        await made.until_phase("holder", "Running")
        made.submit("job", group(run_for="1h"), deadlineIn="8h", estimatedDuration="1h")
        made.submit("rival", group(run_for="1h"), deadlineIn="6h", estimatedDuration="1h")
        await judged(made, "job", "LIKELY")
        made.edit("job", estimatedDuration="10h")
        await judged(made, "job", "UNLIKELY", within="2m")
        assert made.status("job")["estimate"]["mid"] == "10h"
        made.edit("job", estimatedDuration="1h", importance=3)
        await judged(made, "job", "LIKELY", within="2m")
        await made.until_all("Succeeded", "job", "rival", within="6h")
        assert made.finished_at("job") < made.finished_at("rival")


@cluster.virtual
async def test_edits_of_a_running_job_change_its_verdict_and_nothing_else() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="3h"), deadlineIn="9h", estimatedDuration="3h")
        await made.until_phase("job", "Running")
        await judged(made, "job", "LIKELY")
        started = made.status("job")["startTime"]
        made.edit("job", deadlineIn="2h")
        await judged(made, "job", "UNLIKELY", within="2m")
        assert made.holds("job", "DeadlineAtRisk")
        made.edit("job", deadlineIn="9h", importance=7)
        await judged(made, "job", "LIKELY", within="2m")
        await made.until_phase("job", "Succeeded", within="4h")
        assert made.status("job")["startTime"] == started
        assert made.status("job")["attempt"] == 1
        assert made.status("job")["observedGeneration"] == 3


@cluster.virtual
async def test_the_verdict_of_a_run_that_outlasts_its_estimate_gets_worse() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("slow", group(run_for="7h"), deadlineIn="5h", estimatedDuration="1h")
        await made.until_phase("slow", "Running")
        assert made.level("slow") == "LIKELY"
        await made.until(lambda: made.holds("slow", "DeadlineAtRisk"), "the risk is told", within="4h")
        assert not made.holds("slow", "DeadlineMissed")
        await made.until_phase("slow", "Succeeded", within="8h")


@cluster.virtual
async def test_forecasts_are_not_rewritten_while_nothing_happens() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="2d"), estimatedDuration="2d")
        await made.until_phase("holder", "Running")
        for number in range(5):
            made.submit(f"waits-{number}", group(run_for="1h"), deadlineIn="9d", estimatedDuration="1h")
        await made.rest("10m")
        before = made.calls.writes()
        await made.rest("10h")
        assert made.calls.writes() == before
