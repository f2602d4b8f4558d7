"""Means over seeds, and differences of policies that met the same seeds."""

import random

import pytest

from lstqueue.evaluate import paired


def test_what_a_seed_does_to_both_is_no_doubt_about_their_difference():
    theirs = [0.5, 0.9, 0.7, 0.2]
    ours = [value + change for value, change in zip(theirs, [0.010, 0.011, 0.009, 0.010], strict=True)]
    found = paired.difference(ours, theirs)
    assert found is not None
    assert found.mean == pytest.approx(0.010)
    assert found.half == pytest.approx(3.1825 * 0.000816497 / 2, rel=1e-4)
    assert found.sure
    alone = paired.interval(ours)
    assert alone.half > 0.3


def test_one_seed_says_nothing_about_how_sure_it_is():
    found = paired.interval([0.5])
    assert (found.mean, found.half, found.sure) == (0.5, None, False)


def test_a_seed_without_a_figure_leaves_no_difference():
    assert paired.difference([None, 1.0], [1.0, 1.0]) is None
    with pytest.raises(ValueError, match="zip"):
        paired.difference([1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="values is empty"):
        paired.interval([])


def test_the_interval_is_students():
    stats = pytest.importorskip("scipy.stats", reason="the extra `evaluate` brings it")
    for degrees, t in enumerate(paired.T, start=1):
        exact = stats.t.ppf(0.975, degrees)
        assert exact <= t < exact + 2e-4
    draw = random.Random(1)
    values = [draw.gauss(0, 1) for _ in range(200)]
    assert paired.interval(values).half >= stats.sem(values) * stats.t.ppf(0.975, 199)
