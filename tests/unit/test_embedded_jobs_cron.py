"""CronJobs in virtual time: when Jobs are made, how many run beside each other, and which are kept."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from cases import worlds
from lstqueue.embedded import metadata, schedules
from lstqueue.embedded.world import World
from lstqueue.kube import port


def cron(world: World, schedule: str, *, run_for: str = "30s", **spec: Any) -> None:
    template = worlds.job("unused", 1, annotations={"sim/run-for": run_for})["spec"]
    body = {
        "metadata": {"name": "cron"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": template}, **spec},
    }
    world.store.create(port.CRON_JOBS, worlds.NAMESPACE, body)


def status(world: World) -> port.Object:
    found: port.Object = world.store.get(port.CRON_JOBS, worlds.NAMESPACE, "cron")["status"]
    return found


def jobs(world: World) -> list[port.Object]:
    return list(world.store.list(port.JOBS))


@worlds.virtual
async def test_a_night_job_starts_at_its_local_time_and_three_are_kept() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        cron(world, "0 6 * * *", timeZone="Europe/Berlin")
        await asyncio.sleep(5 * 86_400 + 10)
        born = [job["metadata"]["creationTimestamp"] for job in jobs(world)]
        assert born == [f"2026-01-0{day}T05:00:00Z" for day in (3, 4, 5)]
        last = jobs(world)[-1]
        minutes = metadata.parse_timestamp("2026-01-05T05:00:00Z") // 60_000
        assert last["metadata"]["name"] == f"cron-{minutes}"
        assert last["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-05T06:00:00+01:00"
        }
        assert status(world)["lastScheduleTime"] == "2026-01-05T05:00:00Z"
        assert status(world)["lastSuccessfulTime"] == "2026-01-05T05:00:31Z"
        assert "active" not in status(world)


@pytest.mark.parametrize(
    ("policy", "running", "made"), [("Allow", 3, 4), ("Forbid", 1, 2), ("Replace", 1, 4)]
)
def test_jobs_that_outlast_their_interval(policy: str, running: int, made: int) -> None:
    @worlds.virtual
    async def run() -> None:
        async with World(serve=False) as world:
            world.add_nodes(1)
            names: set[str] = set()
            world.store.subscribe(
                lambda event: (
                    names.add(event.object["metadata"]["name"]) if event.resource == port.JOBS else None
                )
            )
            cron(world, "*/10 * * * *", run_for="25m", concurrencyPolicy=policy)
            await asyncio.sleep(40 * 60 + 5)
            unfinished = [job for job in jobs(world) if "completionTime" not in job["status"]]
            assert len(unfinished) == running
            assert len(status(world)["active"]) == running
            assert len(names) == made

    run()


@worlds.virtual
async def test_a_resumed_cron_job_makes_one_job_and_none_past_its_starting_deadline() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        cron(world, "0 * * * *", suspend=True)
        await asyncio.sleep(5 * 3600 + 60)
        assert jobs(world) == []
        world.store.patch(
            port.CRON_JOBS,
            worlds.NAMESPACE,
            "cron",
            {"spec": {"suspend": False, "startingDeadlineSeconds": 30}},
        )
        await asyncio.sleep(60)
        assert jobs(world) == []
        world.store.patch(
            port.CRON_JOBS, worlds.NAMESPACE, "cron", {"spec": {"startingDeadlineSeconds": 300}}
        )
        await asyncio.sleep(60)
        assert [job["metadata"]["creationTimestamp"] for job in jobs(world)] == ["2026-01-01T05:02:00Z"]


@worlds.virtual
async def test_deleting_a_cron_job_takes_its_jobs_and_pods_along() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        cron(world, "@hourly", run_for="5h")
        await asyncio.sleep(2 * 3600 + 60)
        assert len(worlds.all_pods(world.store)) == 2
        world.store.delete(port.CRON_JOBS, worlds.NAMESPACE, "cron")
        await asyncio.sleep(10)
        assert jobs(world) == []
        assert worlds.all_pods(world.store) == []


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["03-30T00:30", "03-31T00:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["10-25T00:30", "10-25T01:30", "10-26T01:30"]),
        ("0 0 13 * fri", "UTC", "2026-02-01T00:00", ["02-06T00:00", "02-13T00:00", "02-20T00:00"]),
        ("0 0 13 * *", "UTC", "2026-02-01T00:00", ["02-13T00:00", "03-13T00:00"]),
        ("*/20 9-10 * * mon-fri", "UTC", "2026-02-06T10:30", ["02-06T10:40", "02-09T09:00", "02-09T09:20"]),
        ("@every 90m", "UTC", "2026-02-06T10:30", ["02-06T12:00", "02-06T13:30"]),
        ("0 0 31 2 *", "UTC", "2026-02-01T00:00", []),
        ("0 0 29 feb *", "UTC", "2026-02-01T00:00", ["02-29T00:00"]),
    ],
)
def test_when_schedules_are_due(schedule: str, zone: str, after: str, expected: list[str]) -> None:
    parsed = schedules.parse(schedule)
    at: int | None = metadata.parse_timestamp(f"{after}:00Z")
    found = []
    for _ in expected or [""]:
        assert at is not None
        at = parsed.next(at, zone)
        if at is not None:
            found.append(datetime.fromtimestamp(at / 1000, UTC).strftime("%m-%dT%H:%M"))
    assert found == expected
