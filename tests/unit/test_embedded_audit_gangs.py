"""The audit's rules about the pods of a gang: gates, places, time, orphans; breaches and what is none."""

import asyncio

import pytest

from cases import worlds
from cases.gangs import Scene
from lstqueue.kube import port

MINUTE = 60


# Gates


@worlds.virtual
async def test_ungating_before_all_pods_exist_is_found() -> None:
    scene = Scene()
    gang = scene.gang(replicas=4, gpus=1)
    gang.admit({"n0": "0-3"})
    gang.create(0, 1, 3)
    gang.ungate(0)
    assert scene.found() == ["WHOLE_GANG"]
    assert "was ungated while 3 of 4 pods existed; rank 2 did not" in scene.words()


@worlds.virtual
async def test_a_pod_that_leaves_does_not_count_as_there() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.delete(1)
    gang.ungate(0)
    assert scene.found() == ["WHOLE_GANG"]


@worlds.virtual
async def test_members_that_succeeded_need_no_pod_when_the_gang_comes_back() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.end("Succeeded", 0)
    gang.suspend("FailedStart", admission=None)
    gang.remove(1)
    gang.status("Pending")
    gang.admit({"n1": "0-1"})
    gang.create(1)
    gang.ungate(1)
    gang.bind({1: "n1"})
    gang.status("Running")
    assert scene.found() == []


@pytest.mark.parametrize("phase", ["Pending", "Suspending", "Running"])
@worlds.virtual
async def test_ungating_outside_the_phase_admitted_is_found(phase: str) -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.status(phase)
    gang.ungate(0)
    assert scene.found() == ["WHOLE_GANG"]
    assert f"while phase is {phase}" in scene.words()


@worlds.virtual
async def test_ungating_for_another_attempt_or_rank_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.ungate(0, stamp=1)
    assert "was stamped rank 1 and is 0" in scene.words()
    gang.ungate(1, attempt=7)
    assert "was ungated for attempt 7, restart 0" in scene.words()
    assert set(scene.found()) == {"WHOLE_GANG"}


@worlds.virtual
async def test_a_pod_of_an_earlier_restart_is_not_ungated() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.restarts = 1
    gang.status("Admitted")
    gang.ungate(0)
    assert "WHOLE_GANG" in scene.found()


# Places


@worlds.virtual
async def test_a_rank_bound_elsewhere_than_admitted_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0", "n1": "1"})
    gang.create(0, 1)
    gang.ungate(0, 1)
    gang.bind({0: "n1"})
    assert scene.found() == ["PLACE"]
    assert "rank 0, is bound to n1 instead of n0" in scene.words()


@worlds.virtual
async def test_a_pod_bound_without_an_admission_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.status("Pending")
    gang.create(0, 1)
    gang.ungate(0)
    gang.bind({0: "n0"})
    assert "PLACE" in scene.found()
    assert "no admission of attempt 0 places it" in scene.words()


@worlds.virtual
async def test_a_rank_bound_twice_is_found_unless_the_first_is_on_a_dead_node() -> None:
    scene = Scene(nodes=3)
    for name, dead in (("alive", False), ("dead", True)):
        gang = scene.gang(name, replicas=1)
        gang.run({"n0": "0"})
        if dead:
            scene.break_node("n0")
        gang.suspend("FailedStart", admission=None)
        gang.status("Pending")
        gang.admit({"n1": "0"})
        gang.start()
        twice = "rank 0 is bound twice" in "\n".join(
            item.message for item in scene.audit.violations if name in item.object
        )
        assert twice is not dead


# Time


@worlds.virtual
async def test_a_gang_may_be_bound_in_part_within_its_bind_timeout_and_no_longer() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    await asyncio.sleep(10 * MINUTE)
    gang.ungate(0, 1)
    gang.bind({0: "n0"})
    await asyncio.sleep(2 * MINUTE + 55)
    assert scene.found() == []
    await asyncio.sleep(10)
    assert scene.found() == ["WHOLE_GANG"]
    assert "still Admitted after bindTimeout (120 s), 1 of 2 members bound or done" in scene.words()
    await asyncio.sleep(86_400)
    assert scene.found() == ["WHOLE_GANG"]


@worlds.virtual
async def test_a_gang_that_does_not_become_ready_in_time_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    await asyncio.sleep(30 * MINUTE + 55)
    assert scene.found() == []
    await asyncio.sleep(10)
    assert "still Admitted after gangReadyTimeout (1800 s), 0 of 2" in scene.words()


@worlds.virtual
async def test_a_gang_that_gives_up_in_time_is_no_breach() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.ungate(0, 1)
    gang.bind({0: "n0"})
    await asyncio.sleep(2 * MINUTE + 5)
    gang.suspend("FailedStart", admission=None)
    gang.delete(0, 1)
    await asyncio.sleep(10 * MINUTE)
    gang.remove(0)
    gang.status("Pending")
    await asyncio.sleep(86_400)
    assert scene.found() == []


@worlds.virtual
async def test_the_bind_timeout_of_one_start_does_not_count_for_the_next() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    await asyncio.sleep(3600)
    gang.end("Failed", 0, 1)
    gang.suspend("GangFailed")
    gang.restarts = 1
    gang.status("Admitted")
    await asyncio.sleep(10 * MINUTE)
    gang.start()
    assert scene.found() == []


@worlds.virtual
async def test_a_running_gang_that_lost_a_member_must_react() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    await asyncio.sleep(3600)
    gang.end("Failed", 1)
    await asyncio.sleep(55)
    assert scene.found() == []
    await asyncio.sleep(10)
    assert "still Running with 1 of 2 members bound or done" in scene.words()


@worlds.virtual
async def test_members_may_succeed_one_after_the_other() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.end("Succeeded", 1)
    await asyncio.sleep(86_400)
    assert scene.found() == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Suspending"])
@worlds.virtual
async def test_pods_must_be_told_to_leave_when_the_gang_stops(phase: str) -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.status(phase, admission=None)
    gang.delete(0)
    await asyncio.sleep(65)
    assert scene.found() == ["WHOLE_GANG"]
    assert f"1 pods of 2 stay bound in phase {phase}" in scene.words()


# Orphans


@worlds.virtual
async def test_a_pod_that_outlives_its_deadline_job_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    scene.store.delete(port.DEADLINE_JOBS, worlds.NAMESPACE, "job")
    gang.remove(0)
    await asyncio.sleep(55)
    assert scene.found() == []
    await asyncio.sleep(10)
    assert scene.found() == ["ORPHAN"]
    assert gang.pods[1] in scene.words()


@worlds.virtual
async def test_a_pod_of_a_deadline_job_that_never_was_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.uid = "nobody"
    gang.create(0)
    await asyncio.sleep(65)
    assert scene.found() == ["ORPHAN"]


@worlds.virtual
async def test_other_peoples_pods_are_no_concern() -> None:
    scene = Scene()
    scene.foreign("theirs", "n0", gpus=8)
    scene.store.delete(port.PODS, worlds.NAMESPACE, "theirs")
    await asyncio.sleep(86_400)
    assert scene.found() == []
