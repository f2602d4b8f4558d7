"""FEASIBLE does not stand beside what makes it untrue: such a promise is in doubt, or lost with its cause."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, invariants, memory, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True)
START, HI = NOW + 5 * HOUR, 2 * HOUR
FINISH = START + CONFIG.slot_grace + CONFIG.launch_margin + HI
FEASIBLE = model.Verdict(model.Level.FEASIBLE, "Promised.")
TOLD = model.Published(model.Band.DEADLINE, model.Code.NO_ROOM, FEASIBLE, "<12h")


def owner(*, start: int = START, **more: Any) -> model.Job:
    """A job that waits, was promised two hours of a node from `start` on, and was told so."""
    slot = model.Slot((model.GroupPlacement("p", (("n0", 1),)),), start, start + FINISH - START, HI)
    return rivals.waits("j", **({"deadline": slot.finish, "slot": slot, "published": TOLD} | more))


def decided(snapshot: model.Snapshot, now: int = NOW, kept: memory.Memory | None = None) -> model.Plan:
    plan = decide.decide(snapshot, now, CONFIG, kept)
    assert invariants.of_plan(snapshot, plan) == ()
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def world(job: model.Job, **more: Any) -> model.Snapshot:
    """The node is somebody's until the slot, who can be told to leave."""
    queue = dataclasses.replace(rivals.QUEUE, **more)
    return rivals.world(job, rivals.runs("v", mid=30 * HOUR, grace=MINUTE), queue=queue)


def told(plan: model.Plan) -> model.Verdict | None:
    return next((one.verdict for one in plan.updates if one.uid == "j"), None)


def level(plan: model.Plan) -> model.Level | None:
    verdict = told(plan)
    return None if verdict is None else verdict.level


def lost(plan: model.Plan) -> list[tuple[model.Cause, str]]:
    return [(one.cause, one.why) for one in plan.revoke]


def test_what_can_be_had_stays_promised() -> None:
    plan = decided(world(owner()))
    assert (level(plan), lost(plan)) == (model.Level.FEASIBLE, [])


def test_the_forecast_of_what_is_promised_ends_by_the_deadline() -> None:
    waiting, in_line = owner(), owner(slot=None)
    assert waiting.deadline is not None
    unpromised = told(decide.decide(world(in_line), NOW, dataclasses.replace(CONFIG, promising=False)))
    promised = told(decided(world(waiting)))
    assert unpromised is not None
    assert unpromised.finish is not None
    assert unpromised.finish[1] > waiting.deadline
    assert promised is not None
    assert promised.finish is not None
    assert promised.start is not None
    assert promised.finish[1] == waiting.deadline
    assert promised.start[1] <= waiting.deadline - HI
    assert promised.start[0] <= promised.start[1]


@pytest.mark.parametrize(
    ("edit", "cause", "why"),
    [
        (
            {"pools": (model.Pool("p", nominal=((rivals.GPU, 7),)),)},
            model.Cause.EDIT, "The quota of its queue is smaller than it is.",
        ),
        (
            {"pools": (model.Pool("p", nominal=(("cpu", 9),)),)},
            model.Cause.EDIT, "Its queue lists no more what it asks for.",
        ),
        (
            {"pools": (dataclasses.replace(rivals.POOL, selector=(("zone", "a"),)),)},
            model.Cause.CAPACITY, "No nodes are left that could ever hold it.",
        ),
    ],
    ids=["quota", "resource", "nodes"],
)  # fmt: skip
def test_a_promise_of_what_can_never_fit_any_more_is_lost_at_once(
    edit: dict[str, Any], cause: model.Cause, why: str
) -> None:
    plan = decided(world(owner(), **edit))
    assert lost(plan) == [(cause, why)]
    assert level(plan) is model.Level.IMPOSSIBLE


def test_a_promise_whose_queue_is_gone_is_lost_at_once() -> None:
    plan = decided(dataclasses.replace(world(owner()), queues=()))
    assert [cause for cause, _ in lost(plan)] == [model.Cause.EDIT]
    assert level(plan) is model.Level.UNKNOWN


CLOSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"held": True}),
    ({}, {"drained": True}),
    ({}, {"observed": True}),
    ({}, {"max_importance": -1}),
    ({"state": model.State.HELD_BACK, "held_back": "is paused."}, {}),
]


@pytest.mark.parametrize(
    ("job", "queue"), CLOSED, ids=["held", "drained", "observed", "importance", "paused"]
)
def test_one_that_may_not_start_is_at_risk_until_it_may_and_loses_its_promise_when_its_slot_begins(
    job: dict[str, Any], queue: dict[str, Any]
) -> None:
    plan = decided(world(owner(**job), **queue))
    assert (level(plan), lost(plan)) == (model.Level.AT_RISK, [])
    update = next(one for one in plan.updates if one.uid == "j")
    said = model.Published(update.band, update.code, update.verdict, update.slack)
    assert level(decided(world(owner(published=said)))) is model.Level.FEASIBLE
    again = decided(world(owner(**job, published=said), **queue))
    assert [one for one in again.updates if one.uid == "j"] == []
    begun = decided(world(owner(**job, start=NOW - CONFIG.slot_grace - 1), **queue))
    assert [cause for cause, _ in lost(begun)] == [model.Cause.EDIT]
    assert level(begun) is not model.Level.FEASIBLE


def test_nobody_has_to_leave_a_slot_for_one_that_may_not_start() -> None:
    for job, queue in CLOSED:
        plan = decided(world(owner(**job, start=NOW + MINUTE), **queue))
        assert plan.claim == ()


def test_a_slot_that_could_not_be_had_as_things_are_is_in_doubt_until_its_time_comes() -> None:
    stays = rivals.runs("v", mid=30 * HOUR, preemptible=False)
    snapshot, kept = rivals.world(owner(), stays), memory.Memory()
    plan = decided(snapshot, kept=kept)
    assert lost(plan) == []
    verdict = told(plan)
    assert verdict is not None
    assert verdict.level is model.Level.AT_RISK
    assert verdict.reason == (
        "It loses its promise unless this changes by the time of its slot:"
        " There is not room for its slot any more."
    )
    said = dataclasses.replace(TOLD, verdict=verdict)
    doubted = rivals.world(owner(published=said), stays)
    assert told(decided(doubted, kept=kept)) is None
    assert level(decided(world(owner(published=said)), kept=kept)) is model.Level.FEASIBLE
    due = START - CONFIG.slot_grace - rivals.waits().grace
    late = decided(doubted, due, kept)
    assert [cause for cause, _ in lost(late)] == [model.Cause.CAPACITY]
    verdict = told(late)
    assert verdict is not None
    assert "promise" not in verdict.reason
