"""The audit's rules about a DeadlineJob's status: phases, attempts, admissions; breaches and what is none."""

import pytest

from cases import worlds
from cases.gangs import Scene


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (["Pending", "Rejected"], True),
        (["Rejected"], True),
        (["Pending", "Running"], False),
        (["Pending", "Suspending"], False),
        (["Rejected", "Pending"], False),
        (["Pending", "Failed", "Pending"], False),
    ],
)
@worlds.virtual
async def test_phases_move_along_allowed_edges_only(path: list[str], allowed: bool) -> None:
    scene = Scene()
    gang = scene.gang()
    for phase in path:
        gang.status(phase)
    assert ("PHASE" not in scene.found()) is allowed
    if not allowed:
        assert f"phase went from {path[-2]} to {path[-1]}" in scene.words()


@worlds.virtual
async def test_an_end_is_an_end() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.end("Succeeded", 0, 1)
    gang.status("Succeeded")
    gang.admit({"n0": "0-1"})
    assert "phase went from Succeeded to Admitted" in scene.words()


@worlds.virtual
async def test_each_admission_has_the_next_attempt() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.status("Pending")
    gang.admit({"n0": "0-1"}, attempt=0)
    assert "attempt went from 0 to 0, not to 1" in scene.words()
    other = scene.gang("other")
    other.admit({"n1": "0-1"})
    other.admit({"n1": "0-1"})
    assert "attempt went from 1 to 2, not to 1" in scene.words()
    other.attempt = 0
    other.status("Admitted")
    assert "attempt went from 2 to 0, not to 2" in scene.words()


@worlds.virtual
async def test_restarts_do_not_go_back() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.restarts = 2
    gang.status("Pending")
    gang.restarts = 1
    gang.status("Pending")
    assert scene.found() == ["PHASE"]


@worlds.virtual
async def test_an_admission_does_not_move_while_it_holds_capacity() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.admit({"n1": "0-1"}, attempt=1)
    assert scene.found() == ["PHASE"]
    assert "was changed while it held capacity" in scene.words()


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        ({"n0": "0"}, "1 of 2 ranks are placed"),
        ({"n0": "0-2"}, "3 of 2 ranks are placed"),
        ({"n0": "0-1", "n1": "1"}, "rank 1 is placed 2 times"),
    ],
)
@worlds.virtual
async def test_an_admission_places_every_rank_once(placement: dict[str, str], words: str) -> None:
    scene = Scene()
    scene.gang().admit(placement)
    assert words in scene.words()


@worlds.virtual
async def test_running_without_an_admission_is_found() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.status("Running", admission=None)
    assert "phase is Running without an admission" in scene.words()


@worlds.virtual
async def test_a_gang_is_not_pending_or_admitted_again_while_its_pods_are_there() -> None:
    for name, phase in (("waits", "Pending"), ("again", "Admitted")):
        scene = Scene()
        gang = scene.gang(name)
        gang.run({"n0": "0-1"})
        gang.suspend("GangFailed")
        gang.delete(0, 1)
        gang.restarts = 1
        gang.status(phase)
        assert "WHOLE_GANG" in scene.found()
        assert f"became {phase} while 2 pods were still there" in scene.words()


@worlds.virtual
async def test_pods_on_a_dead_node_block_nobody() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    scene.break_node("n0")
    gang.suspend("GangDisrupted", admission=None)
    gang.delete(0, 1)
    gang.status("Pending")
    gang.admit({"n1": "0-1"})
    assert scene.found() == []


@worlds.virtual
async def test_an_admission_is_rolled_back_only_while_no_pod_is_released() -> None:
    scene = Scene()
    gang = scene.gang()
    gang.admit({"n0": "0-1"})
    gang.create(0, 1)
    gang.status("Pending", admission=None)
    assert scene.found() == []
    gang.admit({"n0": "0-1"})
    gang.ungate(0)
    gang.status("Pending", admission=None)
    assert scene.found() == ["WHOLE_GANG"]
    assert "rolled back to Pending with 1 pods released" in scene.words()


@worlds.virtual
async def test_a_status_that_cannot_be_read_is_a_breach_and_stops_nobody() -> None:
    scene = Scene()
    scene.gang("odd").admit({"n0": "0-1-2"})
    assert scene.found() == ["UNREADABLE"]
    scene.gang("next").run({"n1": "0-1"})
    assert scene.found() == ["UNREADABLE"]
