"""The operator dies in the middle of a preemption, of kill -9, and it, or another, brings it to its end."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import documented_role
import pytest
import stack
from dying_operator import Point
from operator_process import Process
from scenes import Scene, claimed, watched
from test_preemption import HOUR, INLINE, LABELLED, end, submit

from lstqueue.kube import port

Object = dict[str, Any]
Start = Callable[..., Process]

STATUS = "patch deadlinejobs/status"
TAKEN_OVER_WITHIN_S = 30.0


@pytest.fixture
def start(control_plane: stack.ControlPlane, tmp_path: pathlib.Path) -> Iterator[Start]:
    """Starts operators under the documented role, and ends those that still run."""
    begun: list[Process] = []
    role = documented_role.kubeconfig(control_plane)

    def start_one(*options: str, dies_after: Sequence[Point] = ()) -> Process:
        log = tmp_path / f"operator-{len(begun)}.log"
        begun.append(Process(role, log, "--writes-per-second=0", *options, dies_after=dies_after))
        return begun[-1]

    yield start_one
    for process in begun:
        process.kill()
    assert [line for process in begun for line in process.refused()] == []


def phase(name: str) -> str:
    return f'"phase":"{name}"'


def points(victim: str) -> list[Point]:
    """The writes of a preemption, in their order. A job of users begins its name with `job-` in our kind."""
    holder, urgent = ("job-holder", "urgent") if victim == LABELLED else ("holder", "job-urgent")
    return [
        Point(STATUS, urgent, phase("Claiming")),
        Point(STATUS, holder, phase("Suspending")),
        Point("patch jobs", "holder", '"suspend":true'),
        Point(STATUS, holder, phase("Pending")),
        Point(STATUS, urgent, phase("Admitted")),
        Point("create jobs", "urgent")
        if victim == LABELLED
        else Point("patch jobs", "urgent", '"suspend":false'),
        Point("patch pods", "urgent", '"schedulingGates"'),
    ]


async def assert_ends_well(told: Scene) -> None:
    """One claim was written, one admission each made of it, and both come to their ends."""
    await told.until_phase("urgent", "Running")
    claims = [raw for raw in told.record.of("DeadlineJob") if raw.get("status", {}).get("claim")]
    assert len({raw["metadata"]["uid"] for raw in claims}) == 1
    assert told.nodes("urgent") == claimed(claims[-1]["status"]["claim"])
    assert told.phases("urgent") == ["Claiming", "Admitted", "Running"]
    assert told.phase("holder") == "Pending"
    assert [run["reason"] for run in told.status("holder")["runs"]] == ["Preempted"]
    await end(told, "urgent")
    await told.until_phase("holder", "Running")
    await end(told, "holder")
    assert told.status("urgent")["attempt"] == 1
    assert told.status("holder")["attempt"] == 2
    for name in ("urgent", "holder"):
        assert [job["status"].get("failed", 0) for job in told.children(name)] == [0]
        assert len([raw for raw in told.newest("DeadlineJob") if name in raw["metadata"]["name"]]) == 1


@pytest.mark.parametrize(("victim", "urgent", "step"), [(LABELLED, INLINE, 1), (INLINE, LABELLED, 2)])
async def test_it_goes_on_after_each_of_its_writes(
    api: port.KubeApi, namespace: str, queue: str, start: Start, victim: str, urgent: str, step: int
) -> None:
    async with watched(api, namespace) as told:
        chosen = ahead = points(victim)[::step]
        running, deaths = start(dies_after=ahead), 0
        await submit(told, victim, "holder", 3, estimate="3h")
        await told.until_phase("holder", "Running")
        await submit(told, urgent, "urgent", 2, **HOUR)
        while ahead:
            ahead = ahead[await running.until_killed() + 1 :]
            deaths += 1
            running = start(dies_after=ahead)
        # The victim is told that it waits and the other that it is admitted in no order.
        assert deaths >= len(chosen) - 1
        await assert_ends_well(told)


async def test_a_follower_takes_over_from_a_leader_that_died_and_admits_nothing_twice(
    api: port.KubeApi, namespace: str, queue: str, start: Start
) -> None:
    place = documented_role.NAMESPACE
    election = ("--leader-elect", f"--lease-namespace={place}", f"--lease-name={namespace}")
    # Nobody's, as a leader leaves it that stops: without it the first one would wait for one that may live.
    await api.create(port.LEASES, place, {"metadata": {"name": namespace}, "spec": {"holderIdentity": ""}})
    async with watched(api, namespace) as told:
        leader = start(*election, dies_after=points(LABELLED)[1:2])

        async def leads() -> bool:
            lease = await api.get(port.LEASES, place, namespace)
            return bool(lease["spec"].get("holderIdentity"))

        await told.until(leads, "the first one leads")
        follower = start(*election)
        await submit(told, LABELLED, "holder", 3, estimate="3h")
        await told.until_phase("holder", "Running")
        await submit(told, INLINE, "urgent", 2, **HOUR)
        await leader.until_killed()
        await told.until_phase("holder", "Suspending")
        assert told.phase("urgent") == "Claiming"
        await told.until_phase("urgent", "Running", within_s=TAKEN_OVER_WITHIN_S)
        assert follower.alive
        await assert_ends_well(told)
