"""The witness that knows the whole trace: whom it gives up, and that the engine follows."""

import pytest

from cases import replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.evaluate import foreknowledge


def test_nobody_is_given_up_where_all_can_be_met() -> None:
    works = [work(f"j{index}", at=index * HOUR, runs=50 * MINUTE, due=70 * MINUTE) for index in range(5)]
    assert foreknowledge.given_up(works, 8) == frozenset()


def test_of_too_much_the_largest_is_given_up_before_it_is_known_to_be() -> None:
    works = [
        work("large", runs=10 * HOUR, due=12 * HOUR),
        work("b", at=HOUR, runs=3 * HOUR, due=10 * HOUR),
        work("c", at=2 * HOUR, runs=3 * HOUR, due=10 * HOUR),
    ]
    assert foreknowledge.given_up(works, 8) == {"large"}
    assert foreknowledge.given_up(works[:2], 16) == frozenset()


def test_value_outweighs_work() -> None:
    works = [
        work("a", runs=2 * HOUR, due=2 * HOUR + 20 * MINUTE, value=9),
        work("b", runs=HOUR, due=2 * HOUR),
    ]
    assert foreknowledge.given_up(works, 8) == {"b"}


def test_a_job_whose_run_time_does_not_fit_its_window_is_given_up() -> None:
    assert foreknowledge.given_up([work("a", runs=2 * HOUR, due=HOUR)], 80) == {"a"}
    assert foreknowledge.given_up([work("a", runs=HOUR, due=HOUR)], 80, launch=MINUTE) == {"a"}


def test_who_is_given_up_takes_nothing_from_others_and_may_still_be_in_time() -> None:
    works = [
        work("large", runs=10 * HOUR, due=12 * HOUR),
        work("b", at=HOUR, runs=3 * HOUR, due=10 * HOUR),
        work("c", at=2 * HOUR, runs=3 * HOUR, due=10 * HOUR),
    ]
    ran = replays.run(works, given_up=foreknowledge.given_up(works, 8))
    met = {life.work.key for life in ran.outcome.lives if (life.completed or 0) <= (life.work.deadline or 0)}
    assert met == {"b", "c"}
    alone = replays.run(works[:1], given_up=frozenset({"large"}))
    assert alone.done("large") == 10 * HOUR


@pytest.mark.parametrize("gpus", [8, 16])
def test_what_is_kept_never_asks_for_more_than_there_is(gpus: int) -> None:
    works = [
        work(f"j{i}", at=(i * 37 % 90) * MINUTE, runs=(20 + i * 53 % 200) * MINUTE,
             due=(20 + i * 53 % 200) * MINUTE * (11 + i % 9) // 10, gpus=(1, 4, 8)[i % 3])
        for i in range(40)
    ]  # fmt: skip
    kept = [one for one in works if one.key not in foreknowledge.given_up(works, gpus)]
    assert kept
    for begin in {one.submit for one in kept}:
        for end in {one.deadline or 0 for one in kept}:
            need = sum(
                one.gpus * one.duration for one in kept if one.submit >= begin and (one.deadline or 0) <= end
            )
            assert need <= gpus * max(end - begin, 0)
