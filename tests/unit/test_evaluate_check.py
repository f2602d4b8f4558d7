"""The second set of books of a replay: what it notices of moves that must not be."""

from __future__ import annotations

import dataclasses

import pytest

from cases import replays
from cases.replays import EPOCH, HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import check, inventory, lives, teams, world
from lstqueue.topology import model as topology

GPU = "nvidia.com/gpu"


def _books() -> check.Books:
    return check.Books(world.Shape(1, 8), replays.FREE)


def _placed(key: str, *, gpus: int = 8, queue: str = "", node: str = "node-0", **asks: int) -> lives.Life:
    """A gang whose first pod is on a node; it asks for `gpus`, and `asks` per pod."""
    made = work(key, gpus=gpus, due=HOUR * 9)
    shape = topology.PodShape(topology.resources({GPU: min(gpus, 8), topology.PODS: 1, **asks}))
    life = lives.Life(key, made, (model.Group("g", -(-gpus // 8), shape),), None)
    life.assigned, life.queue = (model.Assigned(0, "all", node, 0, 1),), queue
    life.starts_at = life.work.submit
    return life


def test_the_books_notice_an_overcommitted_node() -> None:
    books, first, second = _books(), _placed("a"), _placed("b")
    for life in (first, second):
        books.arrived(life, EPOCH)
        books.admitted(life, EPOCH)
    assert any("makes 16 GPUs used on node-0 of 8" in words for words in books.violations)


def test_the_books_notice_a_gang_in_part() -> None:
    books, life = _books(), _placed("a", gpus=16)
    books.arrived(life, EPOCH)
    books.admitted(life, EPOCH)
    assert any("is admitted in part: [1]" in words for words in books.violations)


def test_the_books_notice_who_is_suspended_for_nobody_and_who_ends_early() -> None:
    books, life = _books(), _placed("a")
    books.arrived(life, EPOCH)
    books.admitted(life, EPOCH)
    books.suspended(life, EPOCH + HOUR, model.Suspend("a", 1, model.Why.PREEMPTED, "b"), 0)
    books.released(life, EPOCH + HOUR)
    life.completed = EPOCH + 10 * MINUTE
    books.ended(life, EPOCH + HOUR)
    assert [words.split(" ", 1)[1] for words in books.violations] == [
        "job a is suspended for 'b'",
        f"job a did {10 * MINUTE} ms of {HOUR} ms",
    ]
    assert books.broken == 2


@pytest.mark.parametrize(("saves", "kept"), [(False, 0), (False, 45 * MINUTE), (True, 30 * MINUTE)])
def test_the_books_notice_a_run_that_keeps_more_or_less_than_it_saved(saves: bool, kept: int) -> None:
    costs = dataclasses.replace(replays.FREE, saves_on_suspend=saves)
    books, life = check.Books(world.Shape(1, 8), costs), _placed("a")
    books.arrived(life, EPOCH)
    books.admitted(life, EPOCH)
    life.state = model.State.RUNNING
    order = model.Suspend("a", 1, model.Why.QUEUE_DRAINED, "")
    books.suspended(life, EPOCH + 45 * MINUTE, order, kept)
    assert [words.split(" ", 1)[1] for words in books.violations] == [
        f"job a keeps {kept} ms of a run of {45 * MINUTE} ms"
    ]


def test_the_books_notice_a_start_on_a_node_out_of_service() -> None:
    books, life = _books(), _placed("a")
    books.arrived(life, EPOCH)
    books.serves("node-0", 0, EPOCH)
    books.admitted(life, EPOCH)
    assert any("makes 8 GPUs used on node-0 of 0" in words for words in books.violations)


def test_the_books_notice_a_job_known_before_it_was_submitted() -> None:
    books = _books()
    books.arrived(_placed("a"), EPOCH - 1)
    assert books.broken == 1


def test_the_books_notice_pods_that_ask_for_more_cpu_than_a_node_has() -> None:
    offers = ((topology.PODS, 3), ("cpu", 10_000))
    books = check.Books(world.Shape(1, 8, (inventory.Machine("node-0", 8, offers),)), replays.FREE)
    for key in ("a", "b", "c"):
        life = _placed(key, gpus=1, cpu=4_000)
        books.arrived(life, EPOCH)
        books.admitted(life, EPOCH)
    assert [words.split(" ", 1)[1] for words in books.violations] == [
        "job c makes 12000 cpu used on node-0 of 10000"
    ]
    books.released(life, EPOCH)
    books.admitted(_placed("c", gpus=1), EPOCH)
    assert books.broken == 1


TEAMS = (teams.Team("red", 8, limit=4), teams.Team("blue", 16))


@pytest.mark.parametrize(
    ("cohort", "gpus", "words"),
    [
        ("", (("red", 8), ("blue", 8)), ""),
        ("", (("red", 8), ("red", 1)), "makes 9 GPUs used of 8 of queue red"),
        ("ml", (("red", 8), ("red", 4)), ""),
        ("ml", (("red", 8), ("red", 5)), "makes 13 GPUs used of 12 of queue red"),
        ("ml", (("blue", 8), ("blue", 8), ("red", 4), ("blue", 4)), ""),
        ("ml", (("blue", 8), ("blue", 8), ("red", 8), ("red", 1)), "makes 25 GPUs used of 24 of cohort ml"),
    ],
)
def test_the_books_notice_more_than_a_quota_and_what_may_be_borrowed(
    cohort: str, gpus: tuple[tuple[str, int], ...], words: str
) -> None:
    books = check.Books(world.Shape(8, 8), replays.FREE, several=teams.Teams(TEAMS, cohort))
    for index, (queue, count) in enumerate(gpus):
        life = _placed(f"job-{index}", gpus=count, queue=queue, node=f"node-{index}")
        books.arrived(life, EPOCH)
        books.admitted(life, EPOCH)
    assert [one.split(" ", 3)[3] for one in books.violations] == ([words] if words else [])


SLOT = model.Slot((model.GroupPlacement("all", (("node-1", 1),)),), EPOCH + HOUR, EPOCH + 3 * HOUR, HOUR)


@pytest.mark.parametrize(
    ("slot", "after", "fine"),
    [
        (SLOT, HOUR, True),
        (SLOT, HOUR - 3 * MINUTE, True),  # others have three minutes to leave
        (SLOT, HOUR - 4 * MINUTE, False),
        (dataclasses.replace(SLOT, groups=(model.GroupPlacement("all", (("node-0", 1),)),)), HOUR, False),
        (dataclasses.replace(SLOT, finish=EPOCH + 10 * HOUR), HOUR, False),
        (None, HOUR, False),
    ],
)
def test_the_books_notice_who_leaves_for_a_slot_and_need_not(
    slot: model.Slot | None, after: int, fine: bool
) -> None:
    books, life = check.Books(world.Shape(2, 8), replays.FREE), _placed("a")
    life.slot = slot
    books.arrived(life, EPOCH)
    books.admitted(life, EPOCH)
    books.suspended(life, EPOCH + after, model.Suspend("a", 1, model.Why.PROMISED), 0)
    assert (books.broken == 0) is fine
