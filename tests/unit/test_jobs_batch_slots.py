"""Which pod of an existing Job gets which place of an admission, and which places are still needed."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from cases import batch_jobs
from lstqueue.jobs import batch, slots

GANG = batch_jobs.job(parallelism=3, completions=3)
LOOSE = batch_jobs.job(parallelism=3, completions=3, indexed=False)
BAG = batch_jobs.job(parallelism=3, completions=9, indexed=False)


def slotted(pod):
    """As the cache keeps pods without ranks of their own: their place is the slot they were given."""
    return dataclasses.replace(pod, index=pod.slot)


def let_in(job, pods, places=3):
    view = batch.unit(job)
    booked = slots.book(view, pods, places, attempt=1)
    return booked, [(place, pod.name) for place, pod in slots.next_in(view, booked)]


def test_an_indexed_gang_goes_when_all_its_ranks_are_there():
    pods = [batch_jobs.pod(GANG, f"i{index}", index=index) for index in (2, 0)]
    booked, go = let_in(GANG, pods)
    assert (booked.lacking, go) == (1, [])
    _, go = let_in(GANG, [*pods, batch_jobs.pod(GANG, "i1", index=1)])
    assert go == [(0, "sweep-i0"), (1, "sweep-i1"), (2, "sweep-i2")]


def test_ranks_that_are_through_are_not_waited_for_and_stay_gated_if_made_anew():
    job = batch_jobs.job(parallelism=3, completions=3, status={"completedIndexes": "1"})
    pods = [batch_jobs.pod(job, f"i{index}", index=index) for index in (0, 1, 2)]
    _, go = let_in(job, pods)
    assert [place for place, _ in go] == [0, 2]


def test_a_gang_without_indexes_is_ranked_by_creation():
    pods = [slotted(batch_jobs.pod(LOOSE, name, age=age)) for name, age in (("a", 1), ("b", 9), ("c", 5))]
    _, none = let_in(LOOSE, pods[:2])
    assert none == []
    _, go = let_in(LOOSE, pods)
    assert go == [(0, "sweep-b"), (1, "sweep-c"), (2, "sweep-a")]


def test_a_replacement_takes_the_place_of_the_member_that_failed():
    pods = [
        slotted(batch_jobs.pod(LOOSE, "a", gated=False, slot=0, node="n1", phase="Running")),
        slotted(batch_jobs.pod(LOOSE, "b", gated=False, slot=1, node="n1", phase="Failed")),
        slotted(batch_jobs.pod(LOOSE, "c", gated=False, slot=2, node="n2", phase="Running")),
        slotted(batch_jobs.pod(LOOSE, "d")),
    ]
    _, go = let_in(LOOSE, pods)
    assert go == [(1, "sweep-d")]


def test_the_pods_of_a_bag_go_as_they_come_while_slots_last():
    pods = [slotted(batch_jobs.pod(BAG, "a", age=2))]
    booked, go = let_in(BAG, pods)
    assert (booked.lacking, go) == (2, [(0, "sweep-a")])
    pods = [
        slotted(batch_jobs.pod(BAG, "a", gated=False, slot=0, node="n1", phase="Succeeded")),
        slotted(batch_jobs.pod(BAG, "b", gated=False, slot=1, node="n1", phase="Running")),
        slotted(batch_jobs.pod(BAG, "c", gated=False, slot=2, node="n2", phase="Running")),
        slotted(batch_jobs.pod(BAG, "d", age=1)),
        slotted(batch_jobs.pod(BAG, "e")),
    ]
    _, go = let_in(BAG, pods)
    assert go == [(0, "sweep-d")]


def test_slots_that_no_completion_is_left_for_are_given_up_from_above():
    job = batch_jobs.job(parallelism=3, completions=9, indexed=False, status={"succeeded": 7})
    running = slotted(batch_jobs.pod(job, "a", gated=False, slot=1, node="n1", phase="Running"))
    booked, _ = let_in(job, [running])
    assert (booked.done, booked.free, booked.lacking) == (frozenset({2}), [0], 1)


def test_a_job_without_completions_replaces_nobody_after_a_success():
    job = batch_jobs.job(parallelism=3, completions=None, indexed=False, status={"succeeded": 1})
    running = slotted(batch_jobs.pod(job, "a", gated=False, slot=1, node="n1", phase="Running"))
    booked, _ = let_in(job, [running])
    assert booked.done == {0, 2}
    assert not slots.movable(batch.unit(job), frozenset())


def test_only_what_can_come_back_is_moved():
    assert slots.movable(batch.unit(GANG), frozenset())
    through = batch_jobs.job(parallelism=3, completions=3, status={"completedIndexes": "1"})
    assert not slots.movable(batch.unit(through), frozenset())
    begun = batch_jobs.job(parallelism=3, completions=9, indexed=False, status={"succeeded": 7})
    assert slots.movable(batch.unit(begun), frozenset())


PHASES = st.sampled_from(["gated", "Running", "Succeeded"])


@given(
    width=st.integers(1, 6),
    left=st.integers(0, 9),
    pods=st.lists(st.tuples(st.integers(0, 7), PHASES), max_size=9),
)
def test_no_place_is_given_twice_and_none_beyond_the_admission(width, left, pods):
    job = batch_jobs.job(parallelism=width, completions=20, indexed=False, status={"succeeded": 20 - left})
    made = [
        slotted(
            batch_jobs.pod(job, f"p{number}")
            if what == "gated"
            else batch_jobs.pod(job, f"p{number}", gated=False, slot=slot, node="n1", phase=what)
        )
        for number, (slot, what) in enumerate(pods)
    ]
    booked, _ = let_in(job, made, places=width)
    go = slots.next_in(batch.unit(job), booked)
    places = [place for place, _ in go]
    assert len(set(places)) == len(places)
    assert all(0 <= place < width and place not in booked.taken for place in places)
    assert len(places) + len(booked.taken) <= max(min(width, left), len(booked.taken))


def test_a_book_is_kept_until_something_of_it_changes():
    view, pods = batch.unit(BAG), [slotted(batch_jobs.pod(BAG, name)) for name in "abc"]
    books = slots.Books()
    first = books.book(view, pods, 3, attempt=1)
    assert books.book(view, list(pods), 3, attempt=1) is first
    assert len(first.waiting) == 3
    pods[1] = slotted(batch_jobs.pod(BAG, "b", gated=False, slot=0, node="n1"))
    assert list(books.book(view, pods, 3, attempt=1).taken) == [0]
    assert books.book(view, pods, 2, attempt=1).places == 2
    assert books.book(view, pods, 2, attempt=2).taken == {}
    fewer = batch.unit(batch_jobs.job(parallelism=3, completions=9, indexed=False, status={"succeeded": 8}))
    assert books.book(fewer, pods[:1], 3, attempt=1).done == {1, 2}
