"""What a replay comes to: deadlines, waits, losses and use of the GPUs, from the lives of its jobs.

Ratios are between 0 and 1, times in seconds. A job that never completed has missed its deadline and counts in
no wait or completion time beyond its first start. Nothing here depends on wall time; `command` adds that.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.engine import model
from lstqueue.evaluate import lives, replay, world
from lstqueue.topology import slowdown

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Least GPUs of each class of widths."""
TIGHTNESS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Limits of classes of tightness: time from submission to deadline over run time."""
WIDE = 16
"""GPUs from which a gang counts as wide."""
FORECAST_LEAST = 5 * model.MINUTE
"""By how much an end may at least be off a forecast that was kept."""
BOUNDED = 60_000
"""Run time in ms below which slowdown counts a job as that long, as in Feitelson's bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and quantiles of a figure; None of nothing."""

    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Class:
    """Jobs of a kind that have a deadline, and those that made it."""

    deadline_jobs: int
    met: int
    deadline_ratio: float | None


@dataclass(frozen=True, slots=True)
class Queue:
    """One of several queues; `gave_back` counts suspensions of its jobs for those of other queues."""

    jobs: int
    deadline_jobs: int
    met: int
    deadline_ratio: float | None
    gpu_hours: float
    wait_mean_s: float | None
    gave_back: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of a replay.

    Attributes:
        jobs: All that were submitted while submissions counted; `completed` those that ended.
        jobs_not_counted: Those submitted before or after that; they took part, and are in no other figure.
        load: GPU time that the jobs need, over that of all GPUs while submissions counted.
        deadline_jobs: Of them those with a deadline, `met` those that made it.
        deadline_ratio: met / deadline_jobs.
        feasible_jobs: Deadline jobs whose run time fits between submission and deadline.
        feasible_ratio: met / feasible_jobs.
        gpu_hour_ratio: Deadline jobs met, weighted by GPUs × run time.
        wide_jobs: Deadline jobs of 16 GPUs and more, `wide_met` those that made it.
        disruptions: Runs that a mishap of a node ended.
        preemptions: Suspensions for others; `preemptions_per_job` over all jobs.
        rollback_gpu_share: GPU time done again, over the useful one.
        restart_gpu_share: GPU time of starts after a suspension or mishap, over the useful one.
        lost_gpu_share: Both together.
        best_effort_jct_mean_s: Mean from submission to completion of jobs without a deadline.
        best_effort_fruitless_most: The most suspensions in a row of such a job that saved nothing.
        useful_gpu_share: Useful GPU time, of the time that GPUs were held for it.
        forecast_kept_share: Of jobs that were forecast an end, those that ended within that, give or take 5
            minutes or a tenth of the time since the submission.
        forecast_error_s: By how much the others ended before or after it.
        by_width: Deadline jobs, met and ratio, by GPUs of the gang.
        by_tightness: The same by time from submission to deadline over run time.
        wait_s: From submission to the first start.
        jct_s: From submission to completion.
        slowdown: Bounded slowdown, completion time over run time of at least a minute.
        tardiness_s: By how much late jobs were late, over those with a deadline that completed after it.
        gpu_allocation: GPUs held over all, from the first to the last submission.
        partial_gpu_hours: GPU-hours in that time held by pods of gangs that were not complete;
            `partial_gpu_share` of all GPUs. Only policies without gangs have any.
        idle_wanted_share: GPUs idle while somebody waited, over all, in the same time.
        idle_out_share: Of these parts that of nodes out of service.
        idle_kept_share: That of times when somebody waited for whom or from whom room was kept: by claims and
            reservations, or by an order in which nobody passes.
        idle_fragment_share: The rest: whoever waited fitted nowhere.
        verdicts: By level of the first verdict, how many then met and missed their deadline.
        promised: Deadline jobs that were promised theirs; `promised_ratio` of all of them.
        promises_broken: Promises taken back, and those of jobs that were late all the same.
        promises_broken_by: The same by cause.
        place_slowdown: Over jobs of several pods that completed, run time in their last place over that in
            the best, of replays with an interconnect; None of others.
        by_queue: Figures of each queue, where there are several.
    """

    jobs: int
    jobs_not_counted: int
    load: float | None
    completed: int
    deadline_jobs: int
    met: int
    deadline_ratio: float | None
    feasible_jobs: int
    feasible_ratio: float | None
    gpu_hour_ratio: float | None
    wide_jobs: int
    wide_met: int
    disruptions: int
    preemptions: int
    preemptions_per_job: float
    rollback_gpu_share: float
    restart_gpu_share: float
    lost_gpu_share: float
    useful_gpu_share: float | None
    best_effort_jct_mean_s: float | None
    best_effort_fruitless_most: int
    wait_s: Spread
    jct_s: Spread
    slowdown: Spread
    tardiness_s: Spread
    gpu_allocation: float | None
    partial_gpu_hours: float
    partial_gpu_share: float | None
    idle_wanted_share: float | None
    idle_out_share: float | None
    idle_kept_share: float | None
    idle_fragment_share: float | None
    forecast_kept_share: float | None
    forecast_error_s: Spread
    by_width: dict[str, Class]
    by_tightness: dict[str, Class]
    verdicts: dict[str, dict[str, int]]
    promised: int
    promised_ratio: float | None
    promises_broken: int
    promises_broken_by: dict[str, int]
    place_slowdown: Spread
    by_queue: dict[str, Queue]


def of(outcome: replay.Outcome, shape: world.Shape, *, queues: Sequence[str] = ()) -> Figures:
    """Work a replay out; `queues` are those of its file, with or without a job."""
    since, until = outcome.counted
    everybody = [life for life in outcome.lives if since <= life.work.submit <= until]
    dated = [life for life in everybody if life.work.deadline is not None]
    free = [life for life in everybody if life.work.deadline is None]
    done = [life for life in everybody if life.completed is not None]
    starts = [life.first_start - life.work.submit for life in everybody if life.first_start is not None]
    capacity = shape.gpus * (min(until, outcome.last_submit) - max(since, outcome.began))
    return Figures(
        jobs=len(everybody),
        jobs_not_counted=len(outcome.lives) - len(everybody),
        load=_ratio(_gpu_ms(everybody, _duration), capacity),
        completed=len(done),
        useful_gpu_share=_ratio(_useful(outcome.lives), outcome.held),
        best_effort_fruitless_most=max((life.fruitless for life in free), default=0),
        best_effort_jct_mean_s=_mean([_jct(life) / 1000 for life in free if life.completed is not None]),
        wait_s=spread([wait / 1000 for wait in starts]),
        jct_s=spread([_jct(life) / 1000 for life in done]),
        slowdown=spread([_jct(life) / max(life.work.duration, BOUNDED) for life in done]),
        place_slowdown=spread(
            [life.slowdown / slowdown.PPM for life in done if life.locality is not model.ANYWHERE]
        ),
        by_queue=_queues(everybody, queues),
        **_deadlines(dated),
        **_promises(dated),
        **_told(dated, done),
        **_losses(everybody),
        **_use(outcome, capacity),
    )


def _deadlines(dated: Sequence[lives.Life]) -> dict[str, Any]:
    """What came of the deadlines, by the fields of `Figures`."""
    met = [life for life in dated if in_time(life)]
    feasible = [life for life in dated if _feasible(life)]
    wide = [life for life in dated if life.work.gpus >= WIDE]
    late = [_late(life) for life in dated if life.completed is not None and not in_time(life)]
    return {
        "deadline_jobs": len(dated),
        "met": len(met),
        "deadline_ratio": _ratio(len(met), len(dated)),
        "feasible_jobs": len(feasible),
        "feasible_ratio": _ratio(len(met), len(feasible)),
        "gpu_hour_ratio": _ratio(_gpu_ms(met, _duration), _gpu_ms(dated, _duration)),
        "wide_jobs": len(wide),
        "wide_met": sum(1 for life in wide if in_time(life)),
        "tardiness_s": spread([ms / 1000 for ms in late]),
        "by_width": _classes(dated, lambda life: width_name(life.work.gpus)),
        "by_tightness": _classes(dated, _tightness),
    }


def _promises(dated: Sequence[lives.Life]) -> dict[str, Any]:
    """What was promised and kept, by the fields of `Figures`."""
    promised = [life for life in dated if life.promised]
    broken = Counter(cause for life in promised if (cause := _broken(life)) is not None)
    return {
        "promised": len(promised),
        "promised_ratio": _ratio(len(promised), len(dated)),
        "promises_broken": broken.total(),
        "promises_broken_by": dict(sorted(broken.items())),
    }


def _told(dated: Sequence[lives.Life], done: Sequence[lives.Life]) -> dict[str, Any]:
    """What jobs were told at first and what came of that, by the fields of `Figures`."""
    off = [_off(life, life.first_finish) for life in done if life.first_finish is not None]
    return {
        "verdicts": _verdicts(dated),
        "forecast_kept_share": _ratio(off.count(0), len(off)),
        "forecast_error_s": spread([ms / 1000 for ms in off if ms]),
    }


def _losses(everybody: Sequence[lives.Life]) -> dict[str, Any]:
    """Runs that were cut and what that cost, by the fields of `Figures`."""
    useful = _useful(everybody)
    rollback = _gpu_ms(everybody, lambda life: life.lost)
    restart = _gpu_ms(everybody, lambda life: life.restoring)
    preemptions = sum(life.preempted for life in everybody)
    return {
        "disruptions": sum(life.struck for life in everybody),
        "preemptions": preemptions,
        "preemptions_per_job": _ratio(preemptions, len(everybody)) or 0.0,
        "rollback_gpu_share": _ratio(rollback, useful) or 0.0,
        "restart_gpu_share": _ratio(restart, useful) or 0.0,
        "lost_gpu_share": _ratio(rollback + restart, useful) or 0.0,
    }


def _use(outcome: replay.Outcome, capacity: int) -> dict[str, Any]:
    """What GPUs did while submissions counted (`capacity` in GPU-ms), by the fields of `Figures`."""
    return {
        "gpu_allocation": _ratio(outcome.held_loaded, capacity),
        "partial_gpu_hours": outcome.partial_loaded / model.HOUR,
        "partial_gpu_share": _ratio(outcome.partial_loaded, capacity),
        "idle_wanted_share": _ratio(outcome.idle_wanted, capacity),
        "idle_out_share": _ratio(outcome.idle_out, capacity),
        "idle_kept_share": _ratio(outcome.idle_kept, capacity),
        "idle_fragment_share": _ratio(outcome.idle_wanted - outcome.idle_out - outcome.idle_kept, capacity),
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _queues(everybody: Sequence[lives.Life], names: Sequence[str]) -> dict[str, Queue]:
    found: dict[str, Queue] = {}
    for name in names:
        own = [life for life in everybody if life.queue == name]
        dated = [life for life in own if life.work.deadline is not None]
        met = sum(1 for life in dated if in_time(life))
        starts = [life.first_start - life.work.submit for life in own if life.first_start is not None]
        found[name] = Queue(
            jobs=len(own),
            deadline_jobs=len(dated),
            met=met,
            deadline_ratio=_ratio(met, len(dated)),
            gpu_hours=_useful(own) / model.HOUR,
            wait_mean_s=_mean([wait / 1000 for wait in starts]),
            gave_back=sum(life.gave_back for life in own),
        )
    return found


def in_time(life: lives.Life) -> bool:
    """Whether a job with a deadline made it."""
    deadline = life.work.deadline
    return deadline is not None and life.completed is not None and life.completed <= deadline


def spread(values: Sequence[float]) -> Spread:
    """Mean and quantiles; a quantile is the smallest value that so many are not above."""
    if not values:
        return Spread()
    ranked = sorted(values)

    def at(share: float) -> float:
        return ranked[max(0, math.ceil(share * len(ranked)) - 1)]

    return Spread(math.fsum(ranked) / len(ranked), at(0.5), at(0.95), at(0.99), ranked[-1])


def _verdicts(dated: Iterable[lives.Life]) -> dict[str, dict[str, int]]:
    found = {level.value: {"met": 0, "missed": 0} for level in model.Level}
    for life in dated:
        if life.first_level is not None:
            found[life.first_level.value]["met" if in_time(life) else "missed"] += 1
    return {level: counts for level, counts in found.items() if any(counts.values())}


def width_name(gpus: int) -> str:
    """The class of a width, in words."""
    place = bisect.bisect_right(WIDTHS, gpus) - 1
    if place < 0:
        return "0"
    low = WIDTHS[place]
    if place + 1 == len(WIDTHS):
        return f"{low}+"
    high = WIDTHS[place + 1] - 1
    return f"{low}" if low == high else f"{low}-{high}"


def _tightness(life: lives.Life) -> str:
    work = life.work
    assert work.deadline is not None
    place = bisect.bisect_right(TIGHTNESS, (work.deadline - work.submit) / work.duration)
    if not place:
        return f"below {TIGHTNESS[0]:g}"
    low = f"{TIGHTNESS[place - 1]:g}"
    return f"{low}+" if place == len(TIGHTNESS) else f"{low}-{TIGHTNESS[place]:g}"


def _classes(dated: Iterable[lives.Life], kind: Callable[[lives.Life], str]) -> dict[str, Class]:
    """Deadline jobs by a kind, in the order of the numbers that the kinds begin with."""
    all_, met = Counter[str](), Counter[str]()
    for life in dated:
        name = kind(life)
        all_[name] += 1
        met[name] += in_time(life)
    names = sorted(all_, key=_least)
    return {name: Class(all_[name], met[name], _ratio(met[name], all_[name])) for name in names}


def _least(name: str) -> float:
    return 0.0 if name.startswith("below") else float(name.rstrip("+").partition("-")[0])


def _off(life: lives.Life, told: tuple[int, int]) -> int:
    """How far (ms) an end is outside of what was forecast; 0 where that is little enough not to be told.

    As a status is not written anew for less: 5 minutes, or a tenth of the time since the submission.
    """
    assert life.completed is not None
    off = max(told[0] - life.completed, life.completed - told[1])
    return off if off > max(FORECAST_LEAST, (life.completed - life.work.submit) // 10) else 0


def _useful(some: Iterable[lives.Life]) -> int:
    return _gpu_ms(some, lambda life: life.saved if life.completed is None else life.work.duration)


def _broken(life: lives.Life) -> str | None:
    """Why a promise was not kept; None when it was."""
    if life.broken is not None:
        return life.broken.value
    return None if in_time(life) else "late"


def _feasible(life: lives.Life) -> bool:
    work = life.work
    return work.deadline is not None and work.submit + work.duration <= work.deadline


def _jct(life: lives.Life) -> int:
    assert life.completed is not None
    return life.completed - life.work.submit


def _late(life: lives.Life) -> int:
    assert life.completed is not None
    assert life.work.deadline is not None
    return life.completed - life.work.deadline


def _duration(life: lives.Life) -> int:
    return life.work.duration


def _gpu_ms(some: Iterable[lives.Life], time: Callable[[lives.Life], int]) -> int:
    return sum(life.work.gpus * time(life) for life in some)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
