"""The predictor of run times, whatever has run: in order, bounded, calibrated where work repeats."""

from __future__ import annotations

import random

import hypothesis
from hypothesis import strategies

from lstqueue.engine import history, model

CONFIG = model.Config()
HOUR = model.HOUR
RUN = strategies.integers(1, 10_000 * HOUR)
KEY = strategies.sampled_from(["a", "b"])
ASKED = strategies.builds(history.Asked, strategies.none() | RUN, strategies.none() | RUN)


@hypothesis.given(strategies.lists(strategies.tuples(KEY, ASKED, RUN), max_size=30), KEY, ASKED)
@hypothesis.settings(max_examples=50)
def test_quantiles_are_in_order_and_within_the_limit(
    ran: list[tuple[str, history.Asked, int]], key: str, asked: history.Asked
) -> None:
    book = history.Book()
    for of, said, run in ran:
        book.learn(of, said, run)
    told = book.predict(key, asked, CONFIG)
    runs = [run for of, _, run in ran if of == key][-2:]
    if told is None:
        assert not runs
        assert asked.figure is None
        return
    known = told.estimate
    assert 1 <= known.lo <= known.mid <= known.hi
    if asked.limit is not None:
        assert known.hi <= asked.limit
    if runs:
        assert told.source is history.Source.HISTORY
        said = [figure for figure in (asked.figure, asked.limit) if figure is not None]
        assert known.mid == min([sum(runs) // len(runs), *said])


@hypothesis.given(strategies.integers(0, 1000), strategies.floats(0, 1.5))
@hypothesis.settings(max_examples=10)
def test_most_runs_of_work_that_repeats_lie_between_lo_and_hi(seed: int, sigma: float) -> None:
    draw, book, inside = random.Random(seed), history.Book(), 0
    for number in range(300):
        run = max(1, int(HOUR * draw.lognormvariate(0, sigma)))
        told = book.predict("a", history.Asked(), CONFIG)
        if number >= 100 and told is not None:
            inside += told.estimate.lo <= run <= told.estimate.hi
        book.learn("a", history.Asked(), run)
    assert inside / 200 > 0.8


@hypothesis.given(strategies.lists(RUN, min_size=1, max_size=60), RUN)
@hypothesis.settings(max_examples=5)
def test_what_is_kept_is_bounded(ran: list[int], figure: int) -> None:
    book = history.Book()
    for number in range(600):
        book.learn("a", history.Asked(figure), ran[number % len(ran)])
    past = book.pasts["a"]
    assert (len(past.runs), len(past.misses)) == (history.RUNS, history.OWN_MOST)
    assert all(len(misses) <= history.ALL_MOST for misses in book.misses.values())
    assert all(0 <= miss <= history.WILDEST for misses in book.misses.values() for miss in misses)


def estimates(lo: int, mid: int, hi: int) -> model.Estimate:
    return model.Estimate(lo, mid, hi)


def test_a_prediction_that_hardly_moves_stands() -> None:
    old = estimates(50, 100, 200)
    assert history.settled(old, estimates(52, 105, 190)) is old
    assert history.settled(old, estimates(50, 115, 200)) == estimates(50, 115, 200)
    assert history.settled(None, old) is old
