"""The history of a namespace as its ConfigMap has it: bounded, lenient, and nothing learnt twice."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lstqueue.engine import history, model
from lstqueue.operator import histories

HOUR = model.HOUR
KEY = "0123456789abcdef"
CONFIG = model.Config()


def run(number: int, *, key: str = KEY, end: int | None = None, ran: int = HOUR) -> histories.Run:
    return histories.Run(f"uid-{number}", key, end or 1000 + number, ran, None)


def shelf(*runs: histories.Run, stored: dict[str, str] | None = None) -> histories.Shelf:
    """A history in which these have ended, on top of what is stored."""
    made = histories.Shelf(stored=stored or {})
    made.rebuild()
    for one in runs:
        if made.learns(one):
            made.waiting[one.uid] = one
            made.learn(one)
    return made


def patched(made: histories.Shelf) -> dict[str, str]:
    """What is stored after it was written."""
    known = histories.Histories(lambda uids: None)
    known.shelves["team"] = made
    _, changed = known.patch("team")
    after = {**made.stored, **changed}
    return {key: text for key, text in after.items() if text is not None}


def learnt(made: histories.Shelf, key: str = KEY) -> tuple[int, ...]:
    return made.book.pasts.get(key, history.NOTHING).runs


def test_what_was_written_is_read_alike() -> None:
    before = shelf(run(1), run(2, ran=2 * HOUR), run(3, ran=3 * HOUR))
    after = shelf(stored=patched(before))
    assert (after.book.pasts, after.book.misses, after.seen) == (
        before.book.pasts,
        before.book.misses | {history.Source.USER: ()},
        before.seen,
    )
    assert patched(after) == patched(before)


def test_an_end_that_is_seen_again_is_not_learnt_again() -> None:
    stored = patched(shelf(run(1), run(2, ran=2 * HOUR)))
    again = shelf(run(1), run(2, ran=2 * HOUR), run(3, ran=3 * HOUR), stored=stored)
    assert learnt(again) == (2 * HOUR, 3 * HOUR)
    assert list(again.waiting) == ["uid-3"]


def test_an_end_that_comes_after_many_later_ones_is_left_out() -> None:
    made = shelf(*(run(number) for number in range(10, 10 + histories.SEEN)))
    assert made.learns(run(11, end=5000))
    assert not made.learns(run(1))


@hypothesis.given(strategies.permutations(list(range(8))), strategies.integers(0, 8))
@hypothesis.settings(max_examples=20)
def test_whatever_was_written_before_a_crash_each_end_counts_once(order: list[int], written: int) -> None:
    stored = patched(shelf(*(run(number) for number in order[:written])))
    after = shelf(*(run(number) for number in range(8)), stored=stored)
    assert len(after.seen[KEY]) == 8
    assert len(after.book.misses[history.Source.HISTORY]) == 7


def test_it_is_bounded_and_forgets_those_who_ended_first() -> None:
    made = shelf(*(run(number, key=f"{number:016x}") for number in range(histories.KEYS + 50)))
    assert len(made.seen) == len(made.book.pasts) == histories.KEYS
    assert not learnt(made, f"{49:016x}")
    assert learnt(made, f"{50:016x}")
    # One that had to go is not learnt anew from a job that is still there.
    assert not made.learns(run(3, key=f"{3:016x}"))


def test_the_largest_there_can_be_fits_into_a_config_map() -> None:
    made = shelf()
    for number in range(histories.KEYS):
        key = f"{number:016x}"
        ends = tuple((10**15 - 1, f"{index:08x}") for index in range(histories.SEEN))
        misses = (history.WILDEST,) * history.OWN_MOST
        made.seen[key], made.book.pasts[key] = ends, history.Past((histories.LONGEST_RUN,) * 2, misses)
    made.book.misses = {source: (history.WILDEST,) * history.ALL_MOST for source in history.Source}
    stored = patched(made)
    assert sum(len(key) + len(text) for key, text in stored.items()) < 300 * 1024
    assert all(len(text) < histories.LONGEST for text in stored.values())


def test_what_somebody_else_put_there_stays() -> None:
    theirs = {"note": "mine", "0123": "[", "f" * 16: "broken"}
    assert theirs.items() <= patched(shelf(run(1), stored=theirs)).items()


JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
    max_leaves=6,
)


@hypothesis.given(
    strategies.text()
    | JSON.map(json.dumps)
    | strategies.fixed_dictionaries({"runs": JSON, "seen": JSON}).map(json.dumps)
)
@hypothesis.settings(max_examples=25)
def test_whatever_stands_there_is_read_or_left_out(text: str) -> None:
    made = shelf(run(1), stored={KEY: text, histories.MISSES: text})
    told = made.book.predict(KEY, history.Asked(), CONFIG)
    assert told is not None
    assert 1 <= told.estimate.lo <= told.estimate.mid <= told.estimate.hi


@pytest.mark.parametrize("data", [None, [], "x", {"a": 7}])
def test_a_config_map_of_any_form_is_taken_in(data: Any) -> None:
    known = histories.Histories(lambda uids: None)
    raw = {"metadata": {"name": histories.NAME, "namespace": "team", "uid": "u", "resourceVersion": "5"}}
    known.apply("ADDED", {**raw, "data": data})
    assert known.unwritten() == []
