"""What the demo says: an introduction, the table at the end, and the same figures as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import console, table

from lstqueue.demo import play, scenario, trace

NAMES = {"lst": "least slack first", "fifo": "first come first"}
SHOWN = 10
"""How many broken invariants are printed in full."""


def introduce(
    terminal: console.Console, jobs: Sequence[trace.TraceJob], *, nodes: int, left_out: int
) -> None:
    """Say what is about to happen, and how many jobs are `left_out` because they are too wide."""
    size = f"[bold]{_counted(nodes, 'virtual node')} × {scenario.GPUS_PER_NODE} GPUs[/]"
    terminal.print(
        f"[bold]{_counted(len(jobs), 'job')}[/] of a real GPU cluster, gangs of up to "
        f"{max(job.gpus for job in jobs)} GPUs, on {size}. "
        "The real operator admits them over a real HTTP API; only the cluster is simulated, on a clock that "
        "jumps. Each deadline is its job's submission + 1.1 to 3.0 × its run time.",
        highlight=False,
    )
    if left_out:
        gpus, verb = nodes * scenario.GPUS_PER_NODE, "is" if left_out == 1 else "are"
        terminal.print(
            f"{_counted(left_out, 'job')} wider than {gpus} GPUs {verb} left out.", highlight=False
        )
    terminal.print()


def conclude(terminal: console.Console, outcomes: list[play.Outcome]) -> None:
    """Print the table, and what was broken."""
    shown = table.Table(title="The same jobs, the same cluster, the same operator")
    shown.add_column("")
    for outcome in outcomes:
        shown.add_column(NAMES[outcome.order], justify="right")
    for name, values in _rows(outcomes):
        shown.add_row(name, *values)
    terminal.print()
    terminal.print(shown)
    for outcome in outcomes:
        for violation in outcome.violations[:SHOWN]:
            terminal.print(f"[red]broken[/] ({NAMES[outcome.order]}): {violation}", markup=True)
    best, baseline = outcomes[0], outcomes[-1]
    terminal.print(
        f"{best.met} of {best.jobs} deadlines met instead of {baseline.met}. "
        f"{sum(outcome.checks for outcome in outcomes):,} invariant checks, "
        f"{sum(len(outcome.violations) for outcome in outcomes)} violated.",
        highlight=False,
    )


def figures(outcomes: list[play.Outcome], wall: float) -> dict[str, Any]:
    """Return the figures scripts rely on; times in seconds, `wall_s` of both runs together."""
    best, baseline = outcomes[0], outcomes[-1]
    return {
        "jobs": best.jobs,
        "met": best.met,
        "met_fifo": baseline.met,
        "suspensions": best.suspensions,
        "checks": sum(outcome.checks for outcome in outcomes),
        "violations": sum(len(outcome.violations) for outcome in outcomes),
        "wall_s": round(wall, 2),
        "virtual_s": round(best.virtual_s, 1),
    }


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _rows(outcomes: list[play.Outcome]) -> list[tuple[str, list[str]]]:
    return [
        ("deadlines met", [f"[bold]{o.met}[/] of {o.jobs} ({o.met / o.jobs:.0%})" for o in outcomes]),
        ("the same by GPU hours", [f"{o.met_gpu_hours / o.gpu_hours:.0%}" for o in outcomes]),
        ("GPU use while jobs arrived", [f"{o.gpu_use:.0%}" for o in outcomes]),
        ("suspensions", [str(o.suspensions) for o in outcomes]),
        ("virtual time", [f"{o.virtual_s / 86_400:.1f} days" for o in outcomes]),
        ("wall time", [f"{o.wall_s:.1f} s" for o in outcomes]),
        ("invariant checks", [f"{o.checks:,}" for o in outcomes]),
        ("invariants violated", [str(len(o.violations)) for o in outcomes]),
    ]
