"""How much of a trace's deadlines any policy at all could meet, as an upper bound from a fluid relaxation.

Time is cut into bins, and a job's work is a fluid that may be poured into the bins between its submission
and its deadline, no faster than its whole gang would. A job counts by the part of its work that is done, and
a bin holds what the cluster's GPUs can do in it. Every real schedule of rigid gangs, preemptive or not and on
whatever topology, is such a pouring, so none can meet more; and the bound knows all arrivals in advance,
which no policy does. It is weak where the load is light (then it says 1.0) and bites in overload.

With y_jk the GPU time that job j gets in bin k, w_j = GPUs × (launch cost + run time), and v_j its weight:

    maximise   Σ_j v_j / w_j · Σ_k y_jk
    subject to Σ_k y_jk <= w_j,  Σ_j y_jk <= GPU time of bin k,
               0 <= y_jk <= GPUs_j × (overlap of bin and window)

A job that could not be done in its window even alone is left out beforehand. A bin that a window covers in
part clips that job's y, never the bin, so any width of bin gives an upper bound; a wider one is quicker and
weaker.
"""

from __future__ import annotations

import enum
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lstqueue.engine import model
from lstqueue.evaluate import workload

EXTRA = "pip install 'lstqueue[evaluate]', or .venv/bin/pip install -e '.[evaluate]' in a checkout"
"""What brings the solvers."""

METHOD = "highs-ipm"
"""Interior point: the simplex needed minutes where the optimum is 1.0 and most of the program degenerate."""
TOLERANCE = 1e-7
"""How far the solver may be off; the bound is raised by it, since it must not be below the truth."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class BoundError(RuntimeError):
    """No bound could be computed; the message says why and what to do."""


class Weight(enum.Enum):
    """What meeting a deadline counts."""

    JOBS = "jobs"
    GPU_HOURS = "gpu-hours"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Capacity:
    """`gpus` GPUs from the time `since` (ms) on, until the next step."""

    since: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound.

    Attributes:
        share: Of the total weight of all jobs with a deadline, 0 to 1; 1 where there are none.
        met: That weight: jobs, GPU-hours or value.
        total: The weight of all jobs with a deadline.
        jobs: How many these are.
        possible: How many of them could be done in their windows alone.
        variables: Size of the program that was solved.
    """

    share: float
    met: float
    total: float
    jobs: int
    possible: int
    variables: int


def dated(works: Sequence[workload.Work]) -> list[workload.Work]:
    """Return the jobs that count: those with a deadline and GPUs."""
    return [work for work in works if work.deadline is not None and work.gpus > 0]


def fluid(
    works: Sequence[workload.Work],
    capacity: int | Sequence[Capacity],
    *,
    weight: Weight = Weight.JOBS,
    bin_ms: int = model.HOUR,
    launch: int = 0,
) -> Bound:
    """Bound what can be met of `works`.

    Args:
        works: Any jobs; those without a deadline are passed over, as if they stood in nobody's way.
        capacity: GPUs of the cluster, always or by steps in time (none before the first).
        weight: What counts.
        bin_ms: Width of a bin in ms.
        launch: What every start costs before the gang works, in ms; it occupies its GPUs meanwhile.

    Raises:
        BoundError: The solver is not installed, or found no optimum.
    """
    steps = [Capacity(0, capacity)] if isinstance(capacity, int) else sorted(capacity, key=_since)
    widest = max((step.gpus for step in steps), default=0)
    counted = dated(works)
    total = math.fsum(weigh(work, weight) for work in counted)
    able = [work for work in counted if possible(work, launch) and work.gpus <= widest]
    if bin_ms < 1:
        raise ValueError(f"bin_ms is {bin_ms}; it must be 1 or more")
    if not able:
        return Bound(0.0 if counted else 1.0, 0.0, total, len(counted), 0, 0)
    pour = Pouring.cut(able, steps, bin_ms=bin_ms, launch=launch)
    weights = np.array([weigh(work, weight) for work in able], dtype=np.float64)
    met = min(_solve(pour, weights) * (1 + TOLERANCE), float(weights.sum()), total)
    return Bound(met / total, met, total, len(counted), len(able), len(pour.most))


def weigh(work: workload.Work, weight: Weight) -> float:
    """Return what meeting a job's deadline counts."""
    if weight is Weight.GPU_HOURS:
        return work.gpus * work.duration / model.HOUR
    return float(work.value) if weight is Weight.VALUE else 1.0


def possible(work: workload.Work, launch: int) -> bool:
    """Whether the job could be done in its window with the cluster to itself."""
    return work.deadline is not None and work.duration + launch <= work.deadline - work.submit


@dataclass(frozen=True, slots=True)
class Pouring:
    """The variables of the program, one for each job and bin its window overlaps; GPU time in GPU-hours.

    `job` and `bin` say whose and where, `most` is each one's upper limit. `need` is by job, `room` by bin.
    """

    job: Integers
    bin: Integers
    most: Floats
    need: Floats
    room: Floats

    @classmethod
    def cut(
        cls, works: Sequence[workload.Work], steps: Sequence[Capacity], *, bin_ms: int, launch: int
    ) -> Pouring:
        """Cut the windows of `works`, all with a deadline, into bins."""
        zero = min(work.submit for work in works)
        submit = np.array([work.submit - zero for work in works], dtype=np.int64)
        deadline = np.array([(work.deadline or work.submit) - zero for work in works], dtype=np.int64)
        gpus = np.array([work.gpus for work in works], dtype=np.int64)
        first, beyond = submit // bin_ms, -(-deadline // bin_ms)
        counts = beyond - first
        job = np.repeat(np.arange(len(works)), counts)
        ends = np.cumsum(counts)
        place = np.arange(len(job)) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
        overlap = np.minimum(deadline[job], (place + 1) * bin_ms) - np.maximum(submit[job], place * bin_ms)
        time = np.array([work.duration + launch for work in works], dtype=np.int64)
        used, index = np.unique(place, return_inverse=True)
        return cls(
            job,
            index.astype(np.int64),
            gpus[job] * overlap / model.HOUR,
            gpus * time / model.HOUR,
            _rooms(steps, zero + used * bin_ms, bin_ms),
        )


def _rooms(steps: Sequence[Capacity], begins: Integers, bin_ms: int) -> Floats:
    """GPU-hours of the bins that begin at `begins`."""
    rooms = np.zeros(len(begins), dtype=np.float64)
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        until = begins + bin_ms if after is None else np.minimum(begins + bin_ms, after.since)
        rooms += step.gpus * np.maximum(0, until - np.maximum(begins, step.since)) / model.HOUR
    return rooms


def _solve(pour: Pouring, weights: Floats) -> float:
    """The optimum of the program."""
    optimize, sparse = solver("scipy.optimize"), solver("scipy.sparse")
    jobs, bins, variables = len(pour.need), len(pour.room), len(pour.most)
    rows = np.concatenate([pour.job, jobs + pour.bin])
    columns = np.concatenate([np.arange(variables), np.arange(variables)])
    matrix = sparse.csr_array((np.ones(2 * variables), (rows, columns)), shape=(jobs + bins, variables))
    solved = optimize.linprog(
        -(weights / pour.need)[pour.job],
        A_ub=matrix,
        b_ub=np.concatenate([pour.need, pour.room]),
        bounds=np.column_stack([np.zeros(variables), pour.most]),
        method=METHOD,
    )
    if solved.status != 0:
        raise BoundError(f"the solver stopped: {solved.message}; try wider bins")
    return float(-solved.fun)


def solver(module: str) -> Any:
    """Import a module of a solver; they are large and only bounds need them.

    Raises:
        BoundError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        what = f"bounds need {module.partition('.')[0]}, which cannot be imported ({error}); {EXTRA}"
        raise BoundError(what) from error


def require() -> None:
    """Find out, before hours of replays, whether the solver of the fluid bound is there.

    Raises:
        BoundError: It is not installed.
    """
    solver("scipy.optimize")


def _since(step: Capacity) -> int:
    return step.since
