"""Step 1, refresh: where each job stands against its deadline now.

A job is *late* when even its optimistic run time does not fit before the deadline. Hopelessness is judged on
lo, because judging it on the median gave up 3 to 12 of 100 deadlines under estimate errors; the price is a
few jobs that keep their rank although they will miss. One that fails to start again and again ranks with the
late, since each try keeps room from others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lstqueue.engine import estimate, model, slack

NEVER = 1 << 62
"""Later than any time; stands for no deadline and for an unknown run time as well."""
NO_SLACK = -(1 << 60)
"""Stands for the slack of a job without a deadline where those are columns; less than any."""


@dataclass(slots=True)
class Standing:
    """What refresh found out about one job.

    `left` is the run time that a start has before it, what is saved taken off. `slack` is D - (finish, if it
    started now or as it runs) with the expected run time, `slack_lo` with the optimistic one; None without a
    deadline or without an estimate. All in ms. Shared between passes: never written to.
    """

    job: model.Job
    left: model.Estimate | None
    finish: estimate.Finish | None
    slack: int | None
    slack_lo: int | None
    band: model.Band

    @property
    def hopeless(self) -> bool:
        """Even started now and at its fastest it would end after its deadline."""
        return self.slack_lo is not None and self.slack_lo < 0

    def given_up(self) -> Standing:
        """The same in band SHED."""
        return Standing(self.job, self.left, self.finish, self.slack, self.slack_lo, model.Band.SHED)


@dataclass(slots=True)
class Lasting:
    """A standing that time does not change between `at` and `until` (both in ms since the epoch).

    All that happens in between is that a job which waits finishes later and has less slack, by the time that
    passes. `wake` is the first time at which that makes a difference; NEVER: it makes none. Shared between
    passes: never written to (not frozen, since that makes tens of thousands of them three times as dear).
    """

    here: Standing
    at: int
    until: int
    wake: int
    placed: bool

    def holds(self, now: int) -> bool:
        """Whether `now` lies between."""
        return self.at <= now < self.until

    def seen(self, now: int) -> Standing:
        """The standing as `refresh` would find it at `now`."""
        here, by = self.here, now - self.at
        if self.placed or not by:
            return here
        finish = here.finish
        if finish is not None:
            finish = estimate.Finish(finish.lo + by, finish.mid + by, finish.hi + by)
        if here.slack is None or here.slack_lo is None:
            return Standing(here.job, here.left, finish, None, None, here.band)
        return Standing(here.job, here.left, finish, here.slack - by, here.slack_lo - by, here.band)


class Standings(Mapping[str, Standing]):
    """How everybody stands at one time, by uid; found out of whom that is asked, as of few in a long line."""

    __slots__ = ("_known", "_lasting", "_now")

    def __init__(self, lasting: Mapping[str, Lasting], now: int) -> None:
        self._lasting, self._now = lasting, now
        self._known: dict[str, Standing] = {}

    def __getitem__(self, uid: str) -> Standing:
        found = self._known.get(uid)
        if found is None:
            found = self._known[uid] = self._lasting[uid].seen(self._now)
        return found

    def __contains__(self, uid: object) -> bool:
        return uid in self._lasting

    def __iter__(self) -> Iterator[str]:
        return iter(self._lasting)

    def __len__(self) -> int:
        return len(self._lasting)

    def bases(self) -> Iterator[Standing]:
        """The same with the times of those who wait as they were at some time before."""
        return (self._known.get(uid, one.here) for uid, one in self._lasting.items())

    def give_up(self, uid: str) -> None:
        """Put a job into band SHED."""
        self._known[uid] = self[uid].given_up()


def lasting(job: model.Job, now: int, config: model.Config) -> Lasting:
    """Refresh one job, and say for how long that stands."""
    here = refresh(job, now, config)
    if estimate.is_placed(job):
        outrun = _outrun(job, now, config)
        return Lasting(here, now, outrun, outrun, placed=True)
    until = wake = _wake(here, now)
    drops = here.band is model.Band.DEADLINE and not job.keeps_band and config.switches.demotes_late
    if here.slack_lo is not None and drops:
        until = min(until, now + here.slack_lo - _needed(job, config) + 1)
    return Lasting(here, now, until, wake, placed=False)


def refresh(job: model.Job, now: int, config: model.Config) -> Standing:
    """Refresh the estimate, the slack and the band of one job.

    A late job comes back to the deadline band only with more than `late_hysteresis` of optimistic slack: that
    happens when its deadline or estimate is edited, never by time alone; a job that keeps its band was never
    gone. Without a deadline, or without an estimate to set against it, a job is in band REST, and so is one,
    whatever band it keeps, of which `failed_starts_most` starts have failed in a row.
    """
    finish, left = estimate.finish(job, now, config), estimate.remaining(job, config)
    if job.deadline is None or finish is None:
        return Standing(job, left, finish, None, None, model.Band.REST)
    slack_lo = job.deadline - finish.lo
    keeps = job.keeps_band or not config.switches.demotes_late
    timely = keeps or slack_lo >= _needed(job, config)
    # In no band does time alone change that: a start that succeeds does, or an edit.
    timely = timely and job.failed_starts < config.failed_starts_most
    band = model.Band.DEADLINE if timely else model.Band.REST
    return Standing(job, left, finish, job.deadline - finish.mid, slack_lo, band)


def is_best_effort(here: Standing, config: model.Config) -> bool:
    """Whether a job is best-effort work, which has a share of its queue."""
    return here.band is model.Band.REST and (here.slack is None or config.share_late)


def _needed(job: model.Job, config: model.Config) -> int:
    """The optimistic slack with which a job is in time; one that was late needs more to come back."""
    return config.late_hysteresis + 1 if job.published.band is model.Band.REST else 0


def _outrun(job: model.Job, now: int, config: model.Config) -> int:
    """When time alone changes what refresh says of a job that owns its room."""
    outrun = estimate.next_outrun(job, now, config)
    return NEVER if outrun is None else outrun


def _wake(here: Standing, now: int) -> int:
    """When time alone changes what refresh says of a job that waits, or lets it be tried again."""
    first, job = NEVER, here.job
    if job.not_before > now:
        first = job.not_before
    if here.slack is not None and (edge := slack.until_next(here.slack)) is not None:
        first = min(first, now + edge)
    if here.slack_lo is not None and here.slack_lo >= 0:
        first = min(first, now + here.slack_lo + 1)
    return first
