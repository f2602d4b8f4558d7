"""What the demo says: an introduction, what happened, the table at the end, and the same figures as JSON."""

from __future__ import annotations

import dataclasses
import pathlib
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich import console, table

from lstqueue.demo import mix, outcome, scenario, story

NAMES = {"lst": "least slack first", "fifo": "first come first"}
SHOWN = 10
"""How many broken invariants are printed in full."""


def introduce(terminal: console.Console, asks: Sequence[mix.Ask], *, nodes: int, left_out: int) -> None:
    """Say what is about to happen, and how many jobs are `left_out` because they are too wide."""
    size = f"[bold]{_counted(nodes, 'virtual node')} × {scenario.GPUS_PER_NODE} GPUs[/]"
    kinds = Counter(ask.kind for ask in asks)
    free = sum(ask.deadline is None for ask in asks)
    saving = sum(ask.saves is not None for ask in asks)
    terminal.print(
        f"[bold]{_counted(len(asks), 'job')}[/] of a real GPU cluster, gangs of up to "
        f"{max(ask.job.gpus for ask in asks)} GPUs, on {size}: "
        f"{_counted(kinds[mix.Kind.INLINE], 'DeadlineJob')}, "
        f"{_counted(kinds[mix.Kind.JOB], 'labelled Job')}, "
        f"{_counted(kinds[mix.Kind.BAG], 'nightly bag')} due at {mix.MORNING} {mix.ZONE}. "
        f"{free} without a deadline, the others' is submission + 1.1 to 3.0 × run time; {saving} save "
        "checkpoints. On the way a node is lost and the operator is killed.",
        highlight=False,
    )
    terminal.print(
        "The real operator works over a real HTTP API; only the cluster is simulated, on a clock that jumps. "
        "First come first is strict: nobody overtakes, nobody is suspended for another.",
        highlight=False,
    )
    if left_out:
        gpus, verb = nodes * scenario.GPUS_PER_NODE, "is" if left_out == 1 else "are"
        terminal.print(
            f"{_counted(left_out, 'job')} wider than {gpus} GPUs {verb} left out.", highlight=False
        )
    terminal.print()


def recorded(terminal: console.Console, told: outcome.Recorded, path: pathlib.Path | None) -> None:
    """Say how many jobs the trace has that was written, and how many it lacks and why."""
    terminal.print(f"{path}: {_counted(told.written, 'job')} recorded.", highlight=False, markup=False)
    if told.waiting:
        terminal.print(f"{_counted(told.waiting, 'job')} had not ended.", highlight=False)
    for reason, count in sorted(told.left_out.items()):
        terminal.print(f"{_counted(count, 'job')} left out: {reason}.", highlight=False, markup=False)


def conclude(terminal: console.Console, outcomes: list[outcome.Outcome]) -> None:
    """Print what happened, the table, and what was broken."""
    best, baseline = outcomes[0], outcomes[-1]
    if best.story:
        terminal.print(f"\nOn the way, {NAMES[best.order]} (times are virtual, UTC):", highlight=False)
    for line in best.story:
        when, _, what = line.partition("  ")
        hang = " " * (len(when) + 4)
        lines = textwrap.wrap(what, terminal.width, initial_indent=f"  {when}  ", subsequent_indent=hang)
        terminal.print("\n".join(lines), highlight=False, markup=False)
    shown = table.Table(title="The same jobs, the same cluster, the same operator")
    shown.add_column("")
    for one in outcomes:
        shown.add_column(NAMES[one.order], justify="right")
    for name, values in _rows(outcomes):
        shown.add_row(name, *values)
    terminal.print()
    terminal.print(shown)
    for one in outcomes:
        for violation in one.violations[:SHOWN]:
            terminal.print(f"[red]broken[/] ({NAMES[one.order]}): {violation}", markup=True)
    met, dated = best.results.met, best.results.with_deadline
    terminal.print(
        f"{met} of {dated} deadlines met instead of {baseline.results.met}. "
        f"{sum(one.checks for one in outcomes):,} invariant checks, "
        f"{sum(len(one.violations) for one in outcomes)} violated.",
        highlight=False,
    )


def figures(outcomes: list[outcome.Outcome], wall: float) -> dict[str, Any]:
    """Return the figures scripts rely on; times in seconds, `wall_s` of both runs together.

    Those at the top are of least slack first, except `met_fifo`, and `checks` and `violations`, which are of
    both runs. `runs` has all of each by its order: see `outcome.Outcome` and, flat beside it, `Results`.
    """
    best, baseline = outcomes[0], outcomes[-1]
    return {
        "jobs": best.jobs,
        "with_deadline": best.results.with_deadline,
        "met": best.results.met,
        "met_fifo": baseline.results.met,
        "suspensions": best.suspensions,
        "preemptions": best.preemptions,
        "nodes_lost": best.nodes_lost,
        "restarts": best.restarts,
        "checks": sum(one.checks for one in outcomes),
        "violations": sum(len(one.violations) for one in outcomes),
        "wall_s": round(wall, 2),
        "virtual_s": round(best.virtual_s, 1),
        "runs": {one.order: _whole(one) for one in outcomes},
    }


def _whole(one: outcome.Outcome) -> dict[str, Any]:
    found = dataclasses.asdict(one)
    results = found.pop("results")
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in {**found, **results}.items()
    }


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _rows(outcomes: list[outcome.Outcome]) -> list[tuple[str, list[str]]]:
    results = [one.results for one in outcomes]
    rows = [
        (
            "deadlines met",
            [f"[bold]{r.met}[/] of {r.with_deadline} ({_share(r.met, r.with_deadline)})" for r in results],
        ),
        ("the same by GPU hours", [_share(r.met_gpu_hours, r.gpu_hours) for r in results]),
        ("mean wait with a deadline", [story.span(int(r.wait_s * 1000)) for r in results]),
        ("mean wait without", [story.span(int(r.wait_best_effort_s * 1000)) for r in results]),
        ("GPU use while jobs arrived", [f"{one.gpu_use:.0%}" for one in outcomes]),
        ("suspended for another job", [str(one.preemptions) for one in outcomes]),
        ("suspended for a lost node", [str(one.suspensions_node_lost) for one in outcomes]),
        ("GPU hours done again", [f"{r.lost_gpu_hours:,.0f}" for r in results]),
        ("nodes lost", [str(one.nodes_lost) for one in outcomes]),
        ("operators killed", [str(one.restarts) for one in outcomes]),
        ("virtual time", [f"{one.virtual_s / 86_400:.1f} days" for one in outcomes]),
        ("wall time", [f"{one.wall_s:.1f} s" for one in outcomes]),
        ("invariant checks", [f"{one.checks:,}" for one in outcomes]),
        ("invariants violated", [str(len(one.violations)) for one in outcomes]),
    ]
    if any(r.failed or r.unfinished for r in results):
        rows.append(("[red]jobs that failed[/]", [str(r.failed) for r in results]))
        rows.append(("[red]jobs that never ended[/]", [str(r.unfinished) for r in results]))
    return rows


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"
