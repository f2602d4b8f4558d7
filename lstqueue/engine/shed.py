"""Step 2, second half: shed, the choice of those given up so that the others of an overload hold.

Without it an overload spreads: everybody starts too late, and many end late who need not. The rule is that of
Moore and Hodgson, per limit: walk the deadlines upwards, and where more is asked than may be, give up
whoever asks for most per value; on one machine that gives up as few as possible. Width counts by its root
only (`Config.shed_width`): by area, wide gangs of which few are too many would be the first to go. A job is
given up for now, not for good: every pass decides anew, but a job that was given up counts double, in the
sums and in the choice, so it comes back only once there is clearly room. Without that, jobs flip whenever
the load hovers at the edge.

The jobs of a sweep are given up together, since a part of them is of no use. A sweep that is alone in a sum
is not: nobody would gain by it.

Given up means band SHED: after all of band DEADLINE, without the rank its importance gave it. It still starts
where room is left.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lstqueue.engine import fit, model, overload, words
from lstqueue.engine.gangs import PPM
from lstqueue.engine.overload import MARGIN, Floats, Limit, Load
from lstqueue.topology.table import Mask

_FINE = PPM * PPM
"""Keys are per value, in integers: quotients by two values up to a million differ by more than 1 / _FINE."""


@dataclass(frozen=True, slots=True)
class Given:
    """Why a job is given up: until `deadline`, `jobs` of them ask `asked` of a limit, more than `allowed`.

    `offered` is all of the limit until then, `own` what the job itself asks; all four in resource units × ms,
    weighted. `twice` says that it counted double, `led` that it goes because another of its sweep does.
    """

    limit: Limit
    deadline: int
    jobs: int
    asked: int
    allowed: int
    offered: int
    own: int
    twice: bool
    led: bool = False


@dataclass(slots=True)
class Shedding:
    """Who is given up (by uid), when time alone can change that, how many sets of nodes were `merged`."""

    given: dict[str, Given] = field(default_factory=dict)
    wake: int | None = None
    merged: int = 0


def step(scene: overload.Scene) -> Shedding:
    """Find who is given up and put them into band SHED."""
    if not scene.config.shedding or not scene.gangs:
        return Shedding()  # where nobody waits nobody needs to give way
    load = overload.measure(scene)
    tested = _test(load, scene.config)
    if tested is not None and tested.exceeded:
        never = _never(scene, load)
        if never:
            load = overload.measure(scene, never)
            tested = _test(load, scene.config)
    if tested is None:
        return Shedding()
    if not tested.exceeded:
        return Shedding({}, tested.quiet_until(scene.wake), load.merged)
    own = {queue.name: _nominal(queue) for queue in scene.queues.values() if queue.account != queue.name}
    given = _Walk(load, tested.exceeded, scene.config, own).run()
    for uid in given:
        scene.standings.give_up(uid)
    # Sums, shares and protected jobs all move with time while there is too much: look at every step.
    return Shedding(given, load.tick + scene.config.shed_step, load.merged)


def _nominal(queue: model.Queue) -> dict[str, int]:
    """What a queue has of each resource, in all of its pools."""
    found: dict[str, int] = {}
    for pool in queue.pools:
        for name, amount in pool.nominal:
            found[name] = found.get(name, 0) + amount
    return found


def sentence(given: Given, job: model.Job, now: int) -> str:
    """Why a job is given up, with the figures, and what would help."""
    limit = given.limit
    resource = limit.resource
    where = words.count(limit.nodes, "matching node")
    if limit.queue:
        kind, _, cohort = limit.queue.partition("/")
        where = f'quota of cohort "{cohort}"' if cohort else f'quota of queue "{kind}"'
    percent = 100 * given.allowed // given.offered if given.offered else 0
    counted = ", which counts double until it is back" if given.twice else ""
    until = words.duration(max(given.deadline - now, 0))
    more = words.field("spec.value", labelled=job.labelled)
    own = (
        f'it goes with the others of its sweep "{job.sweep.partition("/")[2]}"'
        if given.led
        else "it is the largest of them by run time, value and, less so, width:"
        f" {_hours(resource, given.own)} hours at value {job.value}{counted}"
    )
    return (
        f"It is given up for now: {words.count(given.jobs, 'job')} due within {until} ask for"
        f" {_hours(resource, given.asked)} hours, and {words.quantity(resource, given.allowed // model.HOUR)}"
        f" can be counted on ({percent} % of its {where}); {own}. It runs while room is left;"
        f" a higher {more}, a smaller gang or a later deadline helps."
    )


def _hours(resource: str, amount: int) -> str:
    return words.amount(resource, -(-amount // model.HOUR))


def _never(scene: overload.Scene, load: Load) -> frozenset[str]:
    """Counted jobs that wait and could not fit even if nothing else ran: they take nothing from anybody."""
    found: list[str] = []
    known: dict[int, bool] = {}  # by gang: there are few
    for job in load.asks.jobs:
        gang = scene.gangs.get(job.uid)
        if gang is None:
            continue
        never = known.get(id(gang))
        if never is None:
            never = known[id(gang)] = scene.possible.code(gang) in fit.NEVER_FITS
        if never:
            found.append(job.uid)
    return frozenset(found)


class _Tested:
    """The pre-test: all limits at all deadlines at once. `exceeded` are the limits that may be exceeded.

    `work` is what is asked per limit until each deadline, margin included.
    """

    def __init__(self, load: Load, config: model.Config) -> None:
        self.load, self.config = load, config
        spans, asks = load.asks.deadlines - load.tick, load.asks
        self.spans, self._demand = spans, load.demand[:, load.profiles]
        left = np.minimum(asks.left, spans) * asks.weight
        self.work: Floats = (self._demand * left).cumsum(axis=1) * MARGIN
        offers = np.array([limit.rate for limit in load.limits], dtype=np.float64)[:, None] * spans
        for row, limit in enumerate(load.limits):
            if limit.ends:
                offers[row] -= limit.ends.held_for(load.tick, spans)
        allowed = np.maximum(offers, 0) * (overload.share_ppm(spans, config) / PPM)
        self.exceeded: list[int] = np.flatnonzero(self._over(allowed).any(axis=1)).tolist()

    def _over(self, allowed: Floats) -> Mask:
        """Where more is asked than is allowed, by two jobs at least of which one could be given up."""
        over: Mask = self.work > allowed
        return over & self._counts if over.any() else over

    @functools.cached_property
    def _counts(self) -> Mask:
        """Where there are two jobs, and one of them could be given up."""
        asks = self._demand > 0
        some = np.logical_or.accumulate(asks & self.load.asks.could, axis=1)
        several: Mask = (asks.cumsum(axis=1) >= 2) & some
        return several

    def quiet_until(self, latest: int) -> int | None:
        """The first step at which a limit could be exceeded, should none of the work be done until then.

        One after `latest` (ms since the epoch) if that is earlier: the pass looks again then in any case.

        Work does get done, so nothing happens before it; the pass then looks again. What is asked is held
        still, the share of the offer that may be asked falls with time, so bisection finds the step.
        """
        asks = self._demand > 0
        if not ((asks.sum(axis=1) >= 2) & (asks & self.load.asks.could).any(axis=1)).any():
            return None
        one = self.config.shed_step
        low, high = 0, int(self.spans[-1]) // one + 1  # by then every deadline is over
        high = min(high, (latest - self.load.tick) // one + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._exceeded_in(middle * one) else (middle, high)
        return self.load.tick + high * one

    def _exceeded_in(self, ms: int) -> bool:
        left = np.maximum(self.spans - ms, 0)
        # Work that cannot be suspended is taken to stay, so that offers only shrink.
        rates = [max(limit.rate - limit.ends.total, 0) for limit in self.load.limits]
        offers = np.array(rates, dtype=np.float64)[:, None] * left
        allowed = offers * (overload.share_ppm(left, self.config) / PPM)
        return bool(self._over(allowed).any())


def _test(load: Load, config: model.Config) -> _Tested | None:
    """Compare everything that is asked with what may be; None when nobody is or could be asked."""
    return _Tested(load, config) if load.limits else None


Entry = tuple[int, int]
"""(-what a job asks per value, width by its root, its turn among equals): the least is given up first."""


@dataclass(slots=True)
class _Sum:
    """What unshed jobs with deadlines up to the walk's ask of one limit, and the largest of them.

    `sweeps` are how many of each sweep are among them.

    `fresh` are (amount, index) of those who may be given up and are not in the heap yet: most limits never
    need it. `of_queue` is what each queue of a cohort asks for of `asked`. Each such queue has a heap of its
    own, since who may be given up before others is a matter of queues; all other jobs share one.
    """

    limit: Limit
    asked: int = 0
    jobs: int = 0
    of_queue: Counter[str] = field(default_factory=Counter)
    sweeps: Counter[str] = field(default_factory=Counter)
    fresh: list[tuple[int, int]] = field(default_factory=list)
    heaps: dict[str, list[Entry]] = field(default_factory=dict)  # "" for those of no cohort

    @property
    def shared(self) -> bool:
        """Whether somebody could be given up for another."""
        return self.jobs > 1 and self.jobs > max(self.sweeps.values(), default=0)


class _Walk:
    """The walk up the deadlines, in integers. Giving up only lowers sums, so no step back is needed.

    Everybody is in as many sums as limits bound the gang, so what is done per sum is kept to an addition, a
    comparison and an append.
    """

    def __init__(
        self,
        load: Load,
        exceeded: list[int],
        config: model.Config,
        own: Mapping[str, Mapping[str, int]],
    ) -> None:
        """Take who asks for what; `own` is the nominal quota of queues that lend, by resource."""
        self._tick, self._jobs, asks, self._own = load.tick, load.asks.jobs, load.asks, own
        self._width = config.shed_width
        self._widths: dict[int, int] = {}
        self._sums = [_Sum(load.limits[row]) for row in exceeded]
        spans = asks.deadlines - load.tick
        self._spans: list[int] = spans.tolist()
        self._shares: list[int] = overload.share_ppm(spans, config).tolist()
        self._times: list[int] = (np.minimum(asks.left, spans) * asks.weight).tolist()
        self._whole: list[int] = (asks.left * asks.weight).tolist()
        self._weight: list[int] = asks.weight.tolist()
        self._may: list[bool] = asks.may.tolist()
        columns = load.demand[exceeded].T.tolist()
        amounts = [[(number, amount) for number, amount in enumerate(one) if amount] for one in columns]
        self._asks = [amounts[profile] for profile in load.profiles.tolist()]
        # Of equals those who wait go first, then the newest, then the last by uid.
        order = np.lexsort((-asks.ages(), -asks.submits, asks.placed))
        self._in_turn: list[int] = order.tolist()
        self._turns: list[int] = order.argsort().tolist()
        self._given: dict[int, Given] = {}
        self._reached = 0
        self._sweeps: dict[str, list[int]] = {}
        for index, job in enumerate(self._jobs):
            if job.sweep and self._may[index]:
                self._sweeps.setdefault(job.sweep, []).append(index)

    def run(self) -> dict[str, Given]:
        """Walk to the last deadline; those given up by uid."""
        spans, sums, first = self._spans, self._sums, 0
        while first < len(spans):
            span = spans[first]
            last, touched = first, self._asks[first]
            while last < len(spans) and spans[last] == span:
                if last not in self._given:
                    self._add(last)
                last += 1
            self._reached = last
            if last - first > 1:
                touched = sorted({number: 0 for asks in self._asks[first:last] for number, _ in asks}.items())
            share, until = self._shares[first], self._tick + span
            for number, _ in touched:  # with nothing added, a later deadline only allows more
                total = sums[number]
                limit = total.limit
                offered = limit.offers(self._tick, until) if limit.ends else limit.rate * span
                if total.asked * PPM > share * offered:
                    self._settle(total, until, share, offered)
            first = last
        return {self._jobs[index].uid: given for index, given in self._given.items()}

    def _add(self, index: int) -> None:
        time, may, sums = self._times[index], self._may[index], self._sums
        sweep, queue = self._jobs[index].sweep, self._jobs[index].queue
        for number, amount in self._asks[index]:
            total = sums[number]
            total.asked += amount * time
            total.jobs += 1
            if queue in self._own:
                total.of_queue[queue] += amount * time
            if sweep:
                total.sweeps[sweep] += 1
            if may:
                total.fresh.append((amount, index))

    def _rank(self, total: _Sum) -> None:
        """Put those who came since into the heap."""
        for amount, index in total.fresh:
            if index not in self._given:
                per_value = self._wide(amount) * self._whole[index] * _FINE // self._jobs[index].value
                queue = self._jobs[index].queue
                heap = total.heaps.setdefault(queue if queue in self._own else "", [])
                heapq.heappush(heap, (-per_value, self._turns[index]))
        total.fresh.clear()

    def _wide(self, amount: int) -> int:
        """How much width counts: by its root, since a wide gang that was given up hardly finds room again."""
        if self._width == 1:
            return amount
        known = self._widths.get(amount)
        if known is None:
            known = self._widths[amount] = round(PPM * math.pow(amount, self._width))
        return known

    def _settle(self, total: _Sum, deadline: int, share: int, offered: int) -> None:
        """Give up the largest until the sum fits, or is of one job alone, or of nobody to give up."""
        allowed = share * offered // PPM
        self._rank(total)
        while total.shared and total.asked * PPM > share * offered:
            index = self._next(total, share * (deadline - self._tick))
            if index is None:
                return
            time = self._times[index]
            own = next(amount for number, amount in self._asks[index] if self._sums[number] is total) * time
            given = Given(
                total.limit, deadline, total.jobs, total.asked, allowed, offered, own, self._weight[index] > 1
            )
            self._give_up(index, given)
            for other in self._sweeps.get(self._jobs[index].sweep, ()):
                if other not in self._given:
                    self._give_up(other, replace(given, led=True))

    def _next(self, total: _Sum, part: int) -> int | None:
        """Who is to be given up next: the largest, of entitled queues only when nobody else is left."""
        best: tuple[bool, Entry, str] | None = None
        for queue, heap in total.heaps.items():
            while heap and self._in_turn[heap[0][1]] in self._given:
                heapq.heappop(heap)  # for another limit, and taken off this sum then
            if heap:
                one = self._is_entitled(total, queue, part), heap[0], queue
                best = one if best is None else min(best, one)
        if best is None:
            return None
        return self._in_turn[heapq.heappop(total.heaps[best[2]])[1]]

    def _is_entitled(self, total: _Sum, queue: str, part: int) -> bool:
        """Whether a queue asks for no more than may be asked of its own nominal quota.

        So nobody is given up for what other queues of the cohort ask for, while one of theirs can be.
        """
        if queue not in self._own:
            return False
        return total.of_queue[queue] * PPM <= self._own[queue].get(total.limit.resource, 0) * part

    def _give_up(self, index: int, given: Given) -> None:
        self._given[index] = given
        if index >= self._reached:
            return  # it does not come into the sums
        time, sweep, queue = self._times[index], self._jobs[index].sweep, self._jobs[index].queue
        for number, amount in self._asks[index]:
            total = self._sums[number]
            total.asked -= amount * time
            total.jobs -= 1
            if queue in self._own:
                total.of_queue[queue] -= amount * time
            if sweep:
                total.sweeps[sweep] -= 1
