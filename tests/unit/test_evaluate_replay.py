"""A replay as a whole: its passes, its end, and that the same inputs give the same events."""

import itertools
import subprocess
import sys
from collections.abc import Mapping

import pytest

from cases import effort, replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.engine import decide, memory, model
from lstqueue.evaluate import digest, estimates, lives, replay, workload, world


def _some(count: int = 30) -> list[workload.Work]:
    """Jobs of many widths that want more than there is."""
    widths = (1, 2, 4, 8, 12, 16)
    return [
        work(
            f"j{i}",
            gpus=widths[i * 7 % 6],
            at=i * 4 * MINUTE,
            runs=(20 + i * 37 % 90) * MINUTE,
            due=None if i % 5 == 4 else (40 + i * 53 % 200) * MINUTE,
        )
        for i in range(count)
    ]


def test_everybody_completes_and_no_invariant_breaks_in_an_overload() -> None:
    ran = replays.run(_some(), nodes=2)
    assert all(life.completed is not None for life in ran.outcome.lives)
    assert any(life.preempted for life in ran.outcome.lives)
    assert ran.books.checks > 150
    assert not ran.outcome.stuck


def test_with_delays_as_a_cluster_has_them_nothing_breaks_either() -> None:
    ran = replays.run(_some(), nodes=2, costs=lives.Costs())
    assert all(life.completed is not None for life in ran.outcome.lives)


def test_what_happens_at_one_instant_is_one_pass() -> None:
    together = replays.run([work(f"j{i}", gpus=1) for i in range(8)])
    apart = replays.run([work(f"j{i}", gpus=1, at=i * MINUTE) for i in range(8)])
    assert together.outcome.passes <= 4
    assert apart.outcome.passes >= 16


def test_passes_keep_their_distance() -> None:
    times: list[int] = []

    def decider(snapshot: model.Snapshot, now: int, config: model.Config, known: memory.Memory) -> model.Plan:
        times.append(now)
        return decide.decide(snapshot, now, config, known)

    place = world.World(world.Shape(2, 8), replays.FREE, model.Queue("q"), log=digest.Log())
    load = workload.Workload("made up", workload.ordered(_some()))
    replay.Replay(load, place, estimates.Exact(), config=model.Config(), pass_every=10 * MINUTE).run(
        decider=decider
    )
    assert min(later - time for time, later in itertools.pairwise(times)) >= 10 * MINUTE


def test_estimators_are_asked_at_submission_and_told_of_every_end() -> None:
    told: list[tuple[str, str]] = []

    class Notes(estimates.Exact):
        def ask(self, work: workload.Work) -> model.Estimate | None:
            told.append(("ask", work.key))
            return super().ask(work)

        def ended(self, work: workload.Work, ran_ms: int) -> None:
            assert ran_ms == work.duration
            told.append(("ended", work.key))

    place = world.World(world.Shape(1, 8), replays.FREE, model.Queue("q"), log=digest.Log())
    load = workload.Workload("made up", (work("a", runs=MINUTE), work("b", at=HOUR)))
    replay.Replay(load, place, Notes(), config=model.Config()).run()
    assert told == [("ask", "a"), ("ended", "a"), ("ask", "b"), ("ended", "b")]


def test_the_same_replay_has_the_same_digest_and_another_another() -> None:
    first = replays.run(_some(), nodes=2, audit=False)
    assert replays.run(_some(), nodes=2, audit=False).digest == first.digest
    assert replays.run(_some(), nodes=3, audit=False).digest != first.digest


@pytest.mark.parametrize("order", effort.sample(model.Order, quick=2))
def test_every_order_brings_all_jobs_to_their_end(order: model.Order) -> None:
    ran = replays.run(_some(), nodes=2, config=model.Config(order=order))
    assert all(life.completed is not None for life in ran.outcome.lives)


@pytest.mark.slow
def test_no_hash_seed_shows_in_the_digest() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import importlib\n"
        "made = importlib.import_module('unit.test_evaluate_replay')\n"
        "print(made.replays.run(made._some(), nodes=2, audit=False).digest)\n"
    )
    paths = [path for path in sys.path if path]
    found = {_printed(program, paths, {"PYTHONHASHSEED": seed}) for seed in ("0", "1", "77")}
    assert len(found) == 1


def _printed(program: str, paths: list[str], environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-c", program, *paths]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
