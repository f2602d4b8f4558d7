"""Step 5 where a promise has a claim refused: what is tried after that, and that it leaves no trace."""

from __future__ import annotations

import dataclasses

import pytest

from cases import rivals, teams
from cases.rivals import HOUR, MINUTE, NOW, runs, waits
from lstqueue.engine import decide, model, preempt

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
SOON = 12 * MINUTE


def promised(uid: str = "o", start: int = SOON, **more: object) -> model.Job:
    """One that cannot come yet, with a slot on n0 before which nobody else is out of there again."""
    place = model.GroupPlacement("p", (("n0", 1),))
    slot = model.Slot((place,), NOW + start, NOW + start + 2 * HOUR, HOUR)
    owner = rivals.job(uid, mid=HOUR, grace=30_000, deadline=NOW + start + 3 * HOUR)
    return dataclasses.replace(owner, slot=slot, not_before=NOW + start - MINUTE, **more)


def queue(*windows: model.Window) -> model.Queue:
    pool = model.Pool("p", nominal=((rivals.GPU, 16),))
    return dataclasses.replace(rivals.QUEUE, pools=(pool,), windows=windows)


def refused(uid: str = "j1", **more: object) -> model.Job:
    """A job at its last moment whose only victim is where the slot is."""
    return waits(uid, slack=16 * MINUTE, avoid=("n1",), **more)


def victims() -> tuple[model.Job, model.Job]:
    return runs("v", "n0", grace=30_000, mid=HOUR), runs("u", "n1", grace=30_000, mid=HOUR)


def test_who_is_refused_takes_nothing_from_a_window() -> None:
    half = queue(model.Window(NOW + HOUR, NOW + 9 * HOUR, 500_000))
    other = waits("j2", slack=18 * MINUTE, avoid=("n0",))
    world = rivals.world(*victims(), promised(), refused(), other, nodes=2, queue=half)
    plan = decide.decide(world, NOW, CONFIG)
    assert rivals.victims(plan, "j1") is None
    assert rivals.victims(plan, "j2") == ["u"]


def test_who_is_refused_is_looked_at_again_when_it_presses() -> None:
    world = rivals.world(*victims(), promised(), refused(), nodes=2, queue=queue())
    plan = decide.decide(world, NOW, CONFIG)
    assert plan.claim == ()
    assert plan.wake_at is not None
    assert plan.wake_at <= NOW + 16 * MINUTE - CONFIG.pressing


def test_who_may_not_take_back_there_has_another_way_at_its_last_moment() -> None:
    lender, borrower = teams.team("a", 16), teams.team("b", 0)
    borrowed = runs("v", "n0", queue="b", grace=30_000, saves_on_suspend=False)
    own = runs("u", "n1", queue="a", grace=30_000)
    owner = waits("j", slack=16 * MINUTE, queue="a")
    world = teams.world(borrowed, own, promised(queue="a"), owner, queues=(lender, borrower))
    plan = decide.decide(world, NOW, CONFIG)
    assert rivals.victims(plan, "j") == ["u"]


def test_victims_are_sought_where_a_window_leaves_the_quota() -> None:
    """Of two pools the first has the cheaper victim, and a window that is to come keeps it free."""
    pools = tuple(
        model.Pool(name, selector=(("pool", name),), nominal=((rivals.GPU, amount),))
        for name, amount in (("p", 8), ("r", 16))
    )
    window = model.Window(NOW + HOUR, NOW + 9 * HOUR, 500_000)  # leaves 4 of p, and 8 of r
    both = dataclasses.replace(rivals.QUEUE, pools=pools, windows=(window,))
    cheap = runs("v", "n0", mid=HOUR)
    dear = runs("u", "n1", mid=HOUR, saves_on_suspend=False, assigned=(model.Assigned(0, "r", "n1", 0, 1),))
    bare = rivals.world(cheap, dear, waits("j", slack=16 * MINUTE), nodes=2, queue=both)
    labels = [(("pool", "p"),), (("pool", "r"),)]
    nodes = [dataclasses.replace(node, labels=of) for node, of in zip(bare.nodes, labels, strict=True)]
    world = dataclasses.replace(bare, nodes=tuple(nodes))
    assert rivals.victims(rivals.judged(world)) == ["u"]
    assert rivals.victims(rivals.judged(dataclasses.replace(world, queues=(no_window(both),)))) == ["v"]


def no_window(other: model.Queue) -> model.Queue:
    return dataclasses.replace(other, windows=())


def test_who_is_bound_by_room_kept_for_others_has_nothing_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is suspended for it, so nobody needs to know what leaves."""
    monkeypatch.delattr(preempt, "_soon")
    ending = dataclasses.replace(runs("e", "n1"), state=model.State.ENDING)
    bound = waits("j", slack=16 * MINUTE, preemptible=False)
    world = rivals.world(promised(), ending, bound, nodes=2, queue=queue())
    plan = decide.decide(world, NOW, CONFIG)
    assert teams.code(plan, "j") is model.Code.RESERVED
