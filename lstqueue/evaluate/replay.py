"""A trace through the engine: arrivals, passes, and what becomes of them, on a virtual clock.

The clock jumps to whatever comes next: a submission, something that happens in the world, or the time at
which a plan wants to be made anew. What happens at one instant is one pass, and passes are at least
`pass_every` apart, as the operator's are; nothing else decides anything, and there is no other way to decide
than `engine.decide`.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lstqueue.engine import decide, history, kept, memory, model
from lstqueue.evaluate import estimates, lives, workload, world

Decider = Callable[[model.Snapshot, int, model.Config, memory.Memory], model.Plan]

_KEPT = frozenset((model.Code.RESERVED, model.Code.HEAD_OF_LINE, model.Code.CLAIMING, model.Code.BACKING_OFF))
"""Codes of those who wait for other reasons than that they fit nowhere."""
PATIENCE = 62 * 24 * model.HOUR
"""Virtual time in which nothing but passes happened, so that nothing will: windows recur sooner."""
TOLD_EVERY = 200
"""Passes between two reports of progress."""
_YOUNG = 50_000
"""Containers after which the garbage collector looks for cycles; a pass leaves a handful. At Python's
own 700 a tenth of the CPU goes into looking."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is: jobs `done` of `jobs`, virtual time gone by in ms, GPUs that gangs hold."""

    done: int
    jobs: int
    virtual: int
    busy: int


@dataclass(slots=True)
class Outcome:
    """What became of a replay: everybody's life in the order of the trace, the clock's first and last ms.

    `counted` are the first and last ms of submissions that count. Between them, in GPU × ms: `held_loaded` by
    gangs, `partial_loaded` by incomplete ones, `idle_wanted` by nobody while somebody waited, of which
    `idle_kept` were kept for others and `idle_out` out of service; `held` is of the whole time. `stuck` says
    that jobs are left for which nothing will ever happen.
    """

    lives: list[lives.Life]
    began: int
    ended: int
    last_submit: int
    passes: int
    held_loaded: int
    idle_wanted: int
    stuck: bool
    idle_kept: int = 0
    idle_out: int = 0
    partial_loaded: int = 0
    held: int = 0
    counted: tuple[int, int] = (0, 1 << 62)


class Replay:
    """One replay, to be run once."""

    def __init__(
        self,
        load: workload.Workload,
        place: world.World,
        estimator: estimates.Estimator,
        *,
        config: model.Config,
        pass_every: int = 1000,
        counted: tuple[int, int] | None = None,
        given_up: frozenset[str] = frozenset(),
    ) -> None:
        self._works, self._world, self._estimator = load.works, place, estimator
        self._config, self._every = config, pass_every
        self._memory = memory.Memory()
        self._forecast_at, self._changed = 0, True
        self._lives: list[lives.Life] = []
        self._like: dict[str, dict[str, lives.Life]] = {}  # the unfinished, by what they have in common
        self._width = len(str(len(load.works)))
        self._began = load.works[0].submit if load.works else workload.EPOCH
        self._last_submit = load.works[-1].submit if load.works else self._began
        self._given_up = given_up
        self._counted = counted or (self._began, self._last_submit)
        self._keeps, self._idle_kept, self._idle_out = False, 0, 0
        self._due: int | None = None
        self._last_pass = self._began - pass_every
        self._moved = self._began
        self._passes = self._held = self._loaded = self._idle = self._partial = 0

    @property
    def counted(self) -> tuple[int, int]:
        """The first and last ms (since the epoch) of submissions that count."""
        return self._counted

    def run(
        self,
        *,
        told: Callable[[Progress], None] = lambda _: None,
        decided: Callable[[model.Snapshot, model.Plan], None] = lambda _s, _p: None,
        decider: Decider = decide.decide,
    ) -> Outcome:
        """Replay to the end: every job is completed, or nothing can happen any more.

        Args:
            told: Called now and then with the progress.
            decided: Called with every snapshot and the plan made of it, before it is carried out.
            decider: `decide`, or something around it that calls it.
        """
        with _seldom_collected():
            return self._run(told, decided, decider)

    def _run(
        self,
        told: Callable[[Progress], None],
        decided: Callable[[model.Snapshot, model.Plan], None],
        decider: Decider,
    ) -> Outcome:
        now, place = self._began, self._world
        while (at := self._next()) is not None:
            self._count(now, at)
            now = at
            self._take_in(now)
            if self._due is None or self._due > now:
                continue
            snapshot = place.snapshot(forecast_at=self._forecast_at, changed=self._changed)
            plan = decider(snapshot, now, self._config, self._memory)
            decided(snapshot, plan)
            self._carry_out(plan, now)
            if self._passes % TOLD_EVERY == 0:
                told(self._progress(now))
        told(self._progress(now))
        return Outcome(
            lives=self._lives,
            began=self._began,
            ended=now,
            last_submit=self._last_submit,
            passes=self._passes,
            held_loaded=self._loaded,
            idle_wanted=self._idle,
            stuck=bool(place.jobs),
            idle_kept=self._idle_kept,
            idle_out=self._idle_out,
            partial_loaded=self._partial,
            held=self._held,
            counted=self._counted,
        )

    def _next(self) -> int | None:
        """When the next thing happens (ms since the epoch), None: nothing will, or nobody is left."""
        arrived = len(self._lives)
        if arrived == len(self._works) and not self._world.jobs:
            return None
        coming = self._known_at(arrived) if arrived < len(self._works) else None
        if coming is None and self._world.next_at is None and self._last_pass > self._moved + PATIENCE:
            return None
        times = [time for time in (coming, self._world.next_at, self._due) if time is not None]
        if times and (mishap := self._world.next_mishap) is not None:
            times.append(mishap)  # alone it would bring nothing but the next one
        return min(times, default=None)

    def _known_at(self, index: int) -> int:
        return self._works[index].submit + self._world.costs.lag

    def _count(self, now: int, at: int) -> None:
        """Sum up what the GPUs did from `now` to `at`, as far as submissions counted then."""
        place, (since, until) = self._world, self._counted
        loaded = min(max(at, since), until) - min(max(now, since), until)
        self._held += place.busy * (at - now)
        self._loaded += place.busy * loaded
        self._partial += place.partial * loaded
        if place.waiting:
            idle = place.gpus - place.busy
            out = min(place.out, idle)
            self._idle += idle * loaded
            self._idle_out += out * loaded
            self._idle_kept += (idle - out) * loaded if self._keeps else 0

    def _take_in(self, now: int) -> None:
        """Let happen what is due, submissions included, and say when that wants a pass."""
        place = self._world
        rung = place.pass_time(now)
        while len(self._lives) < len(self._works) and self._known_at(len(self._lives)) <= now:
            index = len(self._lives)
            work = self._works[index]
            # Uids in the order of arrival, so that sorting by them costs next to nothing.
            uid = f"{index:0{self._width}d}"
            life = place.arrive(uid, work, self._estimator.ask(work), now)
            life.given_up = work.key in self._given_up
            self._lives.append(life)
            if (key := self._estimator.key(work)) is not None:
                self._like.setdefault(key, {})[uid] = life
            rung = True
        for life in place.take_completed():
            self._estimator.ended(life.work, life.work.duration)
            if (key := self._estimator.key(life.work)) is not None:
                self._ask_anew(key, life.uid)
        if rung:
            self._changed, self._moved = True, now
            soon = max(now, self._last_pass + self._every)
            self._due = soon if self._due is None else min(self._due, soon)

    def _ask_anew(self, key: str, ended: str) -> None:
        """Tell of the unfinished jobs that are like one that has ended what is expected of them now."""
        like = self._like[key]
        del like[ended]
        for life in like.values():
            told = self._estimator.ask(life.work)
            settled = history.settled(life.estimate, told) if told is not None else None
            if settled != life.estimate:
                life.estimate, life.seen = settled, None

    def _carry_out(self, plan: model.Plan, now: int) -> None:
        if plan.forecast:
            self._forecast_at, self._changed = now, False
        self._passes += 1
        known = plan.kept
        self._keeps = isinstance(known, kept.Kept) and not _KEPT.isdisjoint(known.codes.values())
        self._last_pass = now
        wakes = [] if plan.wake_at is None else [plan.wake_at]
        if plan.admit:
            self._changed = True
        if self._world.apply(plan, now):
            self._changed = True
            wakes.append(now)
        self._due = max(min(wakes), now + self._every) if wakes else None

    def _progress(self, now: int) -> Progress:
        done = len(self._lives) - len(self._world.jobs)
        return Progress(done, len(self._works), now - self._began, self._world.busy)


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Have the garbage collector look seldom, and not at the trace."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
