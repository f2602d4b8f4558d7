"""Whether a gang waits for a better domain or takes what there is: by slack, forecast and its user."""

from __future__ import annotations

import dataclasses

import pytest

from cases import interconnects
from cases.interconnects import HOUR, MINUTE, NOW
from lstqueue.engine import decide, model

CONFIG = model.Config(forecast_depth=0, shedding=False, reserve_most=0)
SHARE = 300_000


def seen(frees_in: int | None, **more: object) -> model.Snapshot:
    """Two leaf groups of three nodes; two jobs of n0 and n1 leave one node too few in each.

    The one on n0 ends in `frees_in` ms, as far as anybody knows.
    """
    found = interconnects.fabric(1, 2, 3)
    busy = []
    for number, left in ((0, frees_in), (1, 100 * HOUR)):
        runs = None if left is None else model.Estimate(*[HOUR + left] * 3)
        one = interconnects.job(number, 1, deadline=None, estimate=runs, preemptible=False)
        part = (model.Assigned(0, "p", f"n{number}", 1, 0),)
        busy.append(
            dataclasses.replace(one, state=model.State.RUNNING, since=NOW - HOUR, attempt=1, assigned=part)
        )
    asked = model.Locality(preferred="leafgroup", communication=SHARE)
    asked = dataclasses.replace(asked, **more.pop("asked", {}))
    wide = interconnects.job(9, 3, locality=asked, **more)
    nodes = [interconnects.node(name, used=8 * (name in ("n0", "n1"))) for name in found.nodes]
    return interconnects.snapshot(found, [*busy, wide], nodes)


def slow(times: float) -> dict[str, object]:
    """An estimate that a bad place would stretch by some hours: it runs ten on the best."""
    runs = int(10 * HOUR * times)
    return {"estimate": model.Estimate(runs, runs, runs), "deadline": NOW + 40 * HOUR}


def admitted(plan: model.Plan) -> bool:
    return any(one.uid == "u009" for one in plan.admit)


def test_it_waits_for_a_domain_in_which_it_is_sooner_done() -> None:
    plan = decide.decide(seen(5 * MINUTE, **slow(1)), NOW, CONFIG)
    assert not admitted(plan)
    update = next(one for one in plan.updates if one.uid == "u009")
    assert update.code is model.Code.TOPOLOGY
    assert update.message == (
        "It would fit now, but not in one leafgroup; one is expected to have room in 5m, and its slack allows"
        " it to wait for that."
    )


def test_it_takes_what_there_is_when_waiting_takes_longer_than_it_gains() -> None:
    plan = decide.decide(seen(9 * HOUR, **slow(1)), NOW, CONFIG)
    assert admitted(plan)
    (made,) = plan.admit
    assert made.slowdown > 1_000_000
    assert made.topology.startswith("block b0, 4 hops, ring ")


@pytest.mark.parametrize("frees_in", [None, 31 * HOUR])
def test_it_does_not_wait_for_what_nobody_foresees_or_its_deadline_forbids(frees_in: int | None) -> None:
    assert admitted(decide.decide(seen(frees_in, **slow(1)), NOW, CONFIG))


def test_a_tight_deadline_has_it_start_now_and_one_that_only_the_better_place_meets_has_it_wait() -> None:
    tight = {**slow(1), "deadline": NOW + 12 * HOUR}
    assert admitted(decide.decide(seen(2 * HOUR, **tight), NOW, CONFIG))  # done at 11.. now, at 12 h there
    only = {**slow(1), "deadline": NOW + 10 * HOUR + 40 * MINUTE}
    assert not admitted(decide.decide(seen(5 * MINUTE, **only), NOW, CONFIG))


def test_without_a_share_of_communication_it_waits_only_as_long_as_its_user_says() -> None:
    silent = {"communication": 0}
    assert admitted(decide.decide(seen(5 * MINUTE, asked=silent, **slow(1)), NOW, CONFIG))
    patient = {"communication": 0, "max_wait": HOUR}
    waits = decide.decide(seen(5 * MINUTE, asked=patient, **slow(1)), NOW, CONFIG)
    assert not admitted(waits)
    assert waits.wake_at is not None
    assert waits.wake_at <= NOW - 91 + HOUR
    assert admitted(decide.decide(seen(5 * MINUTE, asked=patient, **slow(1)), NOW + HOUR, CONFIG))
    assert admitted(decide.decide(seen(2 * HOUR, asked=patient, **slow(1)), NOW, CONFIG))


def test_a_running_job_ends_as_much_later_as_its_place_is_slower() -> None:
    one = dataclasses.replace(
        interconnects.job(0, 1, estimate=model.Estimate(*[2 * HOUR] * 3)),
        state=model.State.RUNNING,
        since=NOW,
        assigned=(model.Assigned(0, "p", "n0", 1, 0),),
        slowdown=1_500_000,
        published=model.Published(band=model.Band.DEADLINE),
    )
    found = interconnects.fabric(1, 1, 1)
    plan = decide.decide(interconnects.snapshot(found, [one]), NOW, CONFIG)
    verdict = plan.updates[0].verdict
    assert verdict is not None
    assert verdict.finish == (NOW + 3 * HOUR, NOW + 3 * HOUR)
