"""The digest of a replay: the same for the same replay, and another where jobs are told otherwise."""

from __future__ import annotations

from cases import replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import estimates, policies, workload

WORKS = (
    work("wide", gpus=8, runs=HOUR, due=5 * HOUR),
    work("next", gpus=8, at=MINUTE, runs=2 * HOUR, due=3 * HOUR + 4 * MINUTE),
    work("last", gpus=4, at=2 * MINUTE, runs=HOUR),
)
TOLD = {"told", "promised", "revoked"}


def moves(ran: replays.Ran) -> list[tuple[int, str, str]]:
    return [one for one in ran.log if one[1] not in TOLD]


def ran(works: tuple[workload.Work, ...] = WORKS, policy: str = "lst", **more: object) -> replays.Ran:
    return replays.run(works, policy=policies.named(policy), config=model.Config(**more))


def test_the_same_replay_has_the_same_digest() -> None:
    assert ran().digest == ran().digest


def test_other_verdicts_make_another_digest_though_the_moves_are_the_same() -> None:
    one, other = ran(), ran(forecast_depth=0)
    assert moves(one) == moves(other)
    assert one.digest != other.digest


def test_so_do_forecasts_that_end_elsewhere() -> None:
    works = [work("first", runs=HOUR, requested=HOUR), work("then", runs=HOUR, requested=HOUR)]
    found = [
        replays.run(works, estimator=estimates.User(model.Config(hi_factor=factor))) for factor in (1.5, 2.0)
    ]
    assert moves(found[0]) == moves(found[1])
    assert found[0].digest != found[1].digest


PROMISES = "lst-promises:promise_calm=1.0"


def test_promises_and_their_slots_are_in_the_digest() -> None:
    plain, promised = ran(policy="lst"), ran(policy=PROMISES)
    assert moves(plain) == moves(promised)
    assert [what for _, what, key in promised.log if key == "wide" and what == "promised"]
    assert plain.digest != promised.digest
    later = (*WORKS[:1], work("next", gpus=8, at=MINUTE, runs=2 * HOUR, due=3 * HOUR + 5 * MINUTE), WORKS[2])
    assert moves(ran(later, PROMISES)) == moves(promised)
    assert ran(later, PROMISES).digest != promised.digest
