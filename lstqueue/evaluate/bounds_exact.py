"""What a few dozen jobs could reach at best, proved: an oracle for tests, not for whole traces.

`rigid` finds the best schedule without preemption by CP-SAT: every job an optional interval of fixed length,
all in one cumulative of the cluster's GPUs. It binds policies that never suspend, and only those. Times are
cut down to seconds, which keeps every order of starts and ends and so never makes a schedule impossible.

`preemptive` bounds every policy by a mixed-integer program (HiGHS). A job is met whole or not at all, and its
gang's run time is spread over the spans between all submissions and deadlines, in none longer than the span.
Beside the GPU time of each span it knows that wide gangs exclude each other: of those wider than 1/m of the
cluster, m - 1 run at once, so together they have m - 1 times the span. What remains open is whether the
pieces could be laid side by side, so it is a bound and no schedule.

Both count GPUs, not nodes: what does not fit together on nodes makes the truth lower still.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import model
from lstqueue.evaluate import bounds, workload

MOST = 400
"""Jobs beyond which no proof is to be hoped for."""
EFFORT = 60.0
"""Limit of `rigid` in the solver's own deterministic time, near seconds; the same on every machine."""
NODES = 20_000
"""Limit of `preemptive` in nodes of the search."""
SECOND = 1000


@dataclass(frozen=True, slots=True)
class Proof:
    """The best found and what cannot be exceeded: jobs, their value or GPU-hours, as was asked.

    Only for `rigid` is `met` what a schedule reaches.
    """

    met: float
    bound: float

    @property
    def closed(self) -> bool:
        """Whether nothing is left between them."""
        return self.bound - self.met < bounds.TOLERANCE * max(1.0, self.bound)


def rigid(
    works: Sequence[workload.Work],
    gpus: int,
    *,
    weight: bounds.Weight = bounds.Weight.JOBS,
    launch: int = 0,
    effort: float = EFFORT,
) -> Proof:
    """Schedule without preemption what is worth most.

    Args:
        works: Any jobs; those without a deadline are passed over.
        gpus: GPUs of the cluster.
        weight: What counts.
        launch: What a start costs in ms.
        effort: When to give up proving.

    Raises:
        BoundError: The solver is not installed, there are too many jobs, or it found nothing in time.
    """
    able = _able(works, gpus, launch)
    cp_model = bounds.solver("ortools.sat.python.cp_model")
    program = cp_model.CpModel()
    zero = min((work.submit for work in able), default=0)
    met, intervals = [], []
    for work in able:
        length = (work.duration + launch) // SECOND
        chosen = program.new_bool_var("")
        first, last = (work.submit - zero) // SECOND, (_due(work) - zero) // SECOND - length
        start = program.new_int_var(first, last, "")
        intervals.append(program.new_optional_fixed_size_interval_var(start, length, chosen, ""))
        met.append(chosen)
    program.add_cumulative(intervals, [work.gpus for work in able], gpus)
    worth = [bounds.weigh(work, weight) for work in able]
    program.maximize(sum(amount * chosen for amount, chosen in zip(worth, met, strict=True)))
    solver = cp_model.CpSolver()
    # One worker and the solver's own clock: the same figures every time.
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(program)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise bounds.BoundError(f"the solver found nothing ({solver.status_name(status)}); allow more effort")
    return _proof(solver.objective_value, solver.best_objective_bound, weight)


def preemptive(
    works: Sequence[workload.Work],
    gpus: int,
    *,
    weight: bounds.Weight = bounds.Weight.JOBS,
    launch: int = 0,
    nodes: int = NODES,
) -> Proof:
    """Bound what any policy can reach, preemptive or not.

    Args:
        works: Any jobs; those without a deadline are passed over.
        gpus: GPUs of the cluster.
        weight: What counts.
        launch: What the first start costs in ms.
        nodes: When to give up proving; the bound is valid all the same.

    Raises:
        BoundError: The solver is not installed, there are too many jobs, or it found nothing.
    """
    able = _able(works, gpus, launch)
    if not able:
        return Proof(0.0, 0.0)
    optimize, sparse = bounds.solver("scipy.optimize"), bounds.solver("scipy.sparse")
    program = _Program(len(able))
    for begin, end in _spans(able):
        program.span(able, begin, end, gpus=gpus)
    for index, work in enumerate(able):
        need = (work.duration + launch) / model.HOUR
        program.row([*program.pieces[index], index], [-1.0] * len(program.pieces[index]) + [need], 0.0)
    count = len(program.most)
    matrix = sparse.csr_array(
        (program.factors, (program.rows, program.columns)), shape=(len(program.limits), count)
    )
    worth = np.zeros(count)
    worth[: len(able)] = [bounds.weigh(work, weight) for work in able]
    solved = optimize.milp(
        -worth,
        constraints=optimize.LinearConstraint(matrix, -np.inf, np.array(program.limits)),
        bounds=optimize.Bounds(0.0, np.array(program.most)),
        integrality=np.arange(count) < len(able),
        options={"node_limit": nodes, "mip_rel_gap": 0.0},
    )
    if solved.x is None or solved.mip_dual_bound is None:
        raise bounds.BoundError(f"the solver found nothing: {solved.message}; allow more nodes")
    return _proof(-solved.fun, -solved.mip_dual_bound, weight)


class _Program:
    """The mixed-integer program as it grows: first one variable for each job, then its pieces in hours."""

    def __init__(self, jobs: int) -> None:
        self.most = [1.0] * jobs
        self.pieces: list[list[int]] = [[] for _ in range(jobs)]
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.factors: list[float] = []
        self.limits: list[float] = []

    def row(self, columns: Sequence[int], factors: Sequence[float], limit: float) -> None:
        """Add Σ factor × variable <= limit."""
        self.rows += [len(self.limits)] * len(columns)
        self.columns += columns
        self.factors += factors
        self.limits.append(limit)

    def span(self, works: Sequence[workload.Work], begin: int, end: int, *, gpus: int) -> None:
        """Add the pieces of all jobs that may run from `begin` to `end`, and what limits them together."""
        hours = (end - begin) / model.HOUR
        here = [index for index, work in enumerate(works) if work.submit <= begin and end <= _due(work)]
        widths = [works[index].gpus for index in here]
        columns = list(range(len(self.most), len(self.most) + len(here)))
        self.most += [hours] * len(here)
        for index, column in zip(here, columns, strict=True):
            self.pieces[index].append(column)
        if sum(widths) <= gpus:
            return  # all of them at once
        self.row(columns, [float(width) for width in widths], gpus * hours)
        for wide, at_once in _exclusions(widths, gpus):
            together = [column for column, width in zip(columns, widths, strict=True) if width >= wide]
            self.row(together, [1.0] * len(together), at_once * hours)


def _able(works: Sequence[workload.Work], gpus: int, launch: int) -> list[workload.Work]:
    """The jobs that could be met alone."""
    able = [work for work in bounds.dated(works) if bounds.possible(work, launch) and work.gpus <= gpus]
    if len(able) > MOST:
        raise bounds.BoundError(f"{len(able)} jobs are too many to prove, above {MOST}; take the fluid bound")
    return able


def _spans(works: Sequence[workload.Work]) -> Iterator[tuple[int, int]]:
    """The spans between all submissions and deadlines."""
    moments = {work.submit for work in works} | {_due(work) for work in works}
    return itertools.pairwise(sorted(moments))


def _exclusions(widths: Sequence[int], gpus: int) -> Iterator[tuple[int, int]]:
    """For each number that fits at once: the least width of which no more do, where more are there."""
    for at_once in sorted({gpus // width for width in widths}):
        wide = min(width for width in widths if gpus // width <= at_once)
        if sum(width >= wide for width in widths) > at_once:
            yield wide, at_once


def _proof(met: float, bound: float, weight: bounds.Weight) -> Proof:
    """The figures as they are meant; jobs and values are whole."""
    if weight is bounds.Weight.GPU_HOURS:
        return Proof(met, bound * (1 + bounds.TOLERANCE))
    return Proof(float(round(met)), float(int(bound + bounds.TOLERANCE * max(1.0, bound))))


def _due(work: workload.Work) -> int:
    if work.deadline is None:
        raise AssertionError("jobs without a deadline are passed over above")
    return work.deadline
