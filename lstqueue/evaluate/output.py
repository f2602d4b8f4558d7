"""What an evaluation says: a line at the start, a table at the end, the same figures as JSON for scripts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import console, table

from lstqueue.evaluate import figures, policies, workload, world

DIGITS = 6
"""Decimals of ratios and times in the JSON."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was replayed."""

    policy: str
    trace: str
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """All that is known of one replay; times in seconds. `latency_s`, `wall_s` and `cpu_s` are real."""

    options: Asked
    seen: figures.Figures
    dropped: Mapping[str, int]
    latency_s: figures.Spread
    passes: int
    checks: int
    broken: int
    wall_s: float
    cpu_s: float
    virtual_s: float
    peak_rss_mib: float
    digest: str
    stuck: bool
    bound: float | None = None


def introduce(
    terminal: console.Console,
    load: workload.Workload,
    shape: world.Shape,
    policy: policies.Policy,
    *,
    mind: str | None,
) -> None:
    """Say what is about to be replayed, what of the trace is not, and what to `mind` about it."""
    dated = sum(1 for work in load.works if work.deadline is not None)
    terminal.print(
        f"[bold]{len(load.works):,} jobs[/] of {load.name}, {dated:,} with a deadline, on "
        f"{shape.words}; {policy.name}: {policy.about}.",
        highlight=False,
    )
    for reason, rows in load.dropped:
        terminal.print(f"{_rowed(rows)} left out: {reason}.", highlight=False, markup=False)
    for reason, rows in load.completed:
        terminal.print(f"{_rowed(rows)} completed: {reason}.", highlight=False, markup=False)
    if mind is not None:
        terminal.print(mind, style="yellow", highlight=False, markup=False)


def _rowed(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def conclude(terminal: console.Console, result: Result, violations: Sequence[str]) -> None:
    """Print the table, and what was broken."""
    shown = table.Table(title=f"{result.options.policy} on {result.options.trace}")
    shown.add_column("")
    shown.add_column("", justify="right")
    for name, value in _rows(result):
        shown.add_row(name, value)
    terminal.print(shown)
    for words in violations:
        terminal.print(f"broken: {words}", style="red", markup=False)
    if result.stuck:
        left = result.seen.jobs - result.seen.completed
        words = "1 job was" if left == 1 else f"{left:,} jobs were"
        terminal.print(
            f"{words} left that never ended: some of them never started, and nothing that happens would let "
            "them. A gang wider than its queue may ever hold is such a job.",
            style="red",
        )


def as_json(result: Result) -> dict[str, Any]:
    """Return the figures scripts rely on: ratios 0-1, times in seconds; None where there is nothing to say.

    `bound` is None where nobody asked for it.
    """
    found = dataclasses.asdict(result.seen)
    parts = {name: found.pop(name) for name in ("by_width", "by_tightness", "verdicts", "by_queue")}
    made: dict[str, Any] = _rounded(
        {
            "policy": result.options.policy,
            "trace": result.options.trace,
            "seed": result.options.seed,
            **found,
            "bound": result.bound,
            "share_of_bound": _of(result.seen.deadline_ratio, result.bound),
            **parts,
            "dropped": dict(result.dropped),
            "passes": result.passes,
            "decision_p50_s": result.latency_s.p50,
            "decision_p99_s": result.latency_s.p99,
            "invariant_checks": result.checks,
            "invariants_broken": result.broken,
            "stuck": result.stuck,
            "wall_s": result.wall_s,
            "cpu_s": result.cpu_s,
            "virtual_s": result.virtual_s,
            "speedup": result.virtual_s / result.wall_s if result.wall_s else None,
            "peak_rss_mib": result.peak_rss_mib,
            "digest": result.digest,
        }
    )
    return made


def _of(ratio: float | None, bound: float | None) -> float | None:
    return ratio / bound if ratio is not None and bound else None


def _rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _rounded(value) for name, value in found.items()}
    return round(found, DIGITS) if isinstance(found, float) else found


def _rows(result: Result) -> list[tuple[str, str]]:
    return [*_chief(result), *_told(result.seen), *_places(result.seen), *_cost(result)]


def _chief(result: Result) -> list[tuple[str, str]]:
    """What a policy is judged by, and what explains it."""
    seen = result.seen
    rows = [
        ("deadlines met", f"[bold]{seen.met:,}[/] of {seen.deadline_jobs:,} ({_share(seen.deadline_ratio)})"),
        ("of those that could be met", _share(seen.feasible_ratio)),
        ("the same by GPU hours", _share(seen.gpu_hour_ratio)),
        (f"gangs of {figures.WIDE} GPUs and more", f"{seen.wide_met:,} of {seen.wide_jobs:,}"),
        ("suspensions for others, per job", f"{seen.preemptions_per_job:.3f}"),
        ("runs ended by mishaps of nodes", f"{seen.disruptions:,}"),
        ("GPU time lost to both", _share(seen.lost_gpu_share)),
        ("jobs completed", f"{seen.completed:,} of {seen.jobs:,}"),
        ("wait until the first start", _span(seen.wait_s)),
        ("submission to completion", _span(seen.jct_s)),
        ("the same without a deadline, mean", _hours(seen.best_effort_jct_mean_s)),
        ("bounded slowdown", _spread(seen.slowdown)),
        ("load", _share(seen.load)),
        ("GPUs in use while jobs arrived", _share(seen.gpu_allocation)),
        ("GPUs idle while jobs waited", _share(seen.idle_wanted_share)),
        ("of these fitting nobody, kept, out", _idle(seen)),
    ]
    if seen.partial_gpu_hours:
        held = f"{seen.partial_gpu_hours:,.0f} GPU hours ({_share(seen.partial_gpu_share)})"
        rows.append(("GPUs that incomplete gangs held", held))
    if result.bound is not None:
        share = _share(_of(seen.deadline_ratio, result.bound))
        rows.insert(1, ("no policy could meet more than", f"{_share(result.bound)}; this is {share} of it"))
    return rows


def _told(seen: figures.Figures) -> list[tuple[str, str]]:
    """What jobs were told, and what came of that."""
    rows = []
    if seen.forecast_kept_share is not None:
        rows.append(
            ("ended within the first forecast, 5 min or 10 % aside", _share(seen.forecast_kept_share))
        )
        rows.append(("error of the other forecasts", _span(seen.forecast_error_s)))
    for level, counts in seen.verdicts.items():
        rows.append((f"first told {level}", f"{counts['met']:,} met, {counts['missed']:,} missed"))
    if seen.promised:
        rows.append(("promised", f"{seen.promised:,} ({_share(seen.promised_ratio)})"))
        causes = ", ".join(f"{cause} {count:,}" for cause, count in seen.promises_broken_by.items())
        rows.append(("promises broken", f"{seen.promises_broken:,}{': ' * bool(causes)}{causes}"))
    return rows


def _places(seen: figures.Figures) -> list[tuple[str, str]]:
    """How places on an interconnect were, and the figures of each of several queues."""
    rows = []
    if seen.place_slowdown.mean is not None:
        placed = seen.place_slowdown
        rows.append(("slowdown by place, gangs", f"mean {placed.mean:.3f}, p95 {placed.p95 or 0:.3f}"))
    for name, own in seen.by_queue.items():
        told = f"{own.met:,} of {own.deadline_jobs:,} ({_share(own.deadline_ratio)})"
        rows.append((f"queue {name}: deadlines met", f"{told}, {own.gpu_hours:,.0f} GPU hours"))
        rows.append((f"queue {name}: jobs, mean wait", f"{own.jobs:,}, {_hours(own.wait_mean_s)}"))
        rows.append((f"queue {name}: gave back to others", f"{own.gave_back:,} times"))
    return rows


def _cost(result: Result) -> list[tuple[str, str]]:
    """What deciding and replaying cost, and whether it was sound."""
    latency, wall = result.latency_s, result.wall_s
    return [
        ("decision passes", f"{result.passes:,}, p50 {_ms(latency.p50)}, p99 {_ms(latency.p99)}"),
        ("invariant checks", f"{result.checks:,}, {result.broken:,} broken"),
        ("virtual time", f"{result.virtual_s / 86_400:.1f} days"),
        ("wall time", f"{wall:.1f} s, {result.virtual_s / max(wall, 1e-9):,.0f} × real time"),
        ("CPU time", f"{result.cpu_s:.1f} s"),
        ("peak memory", f"{result.peak_rss_mib:.0f} MiB"),
        ("digest", result.digest[:16]),
    ]


def _share(part: float | None) -> str:
    return "-" if part is None else f"{part:.2%}"


def _idle(seen: figures.Figures) -> str:
    parts = (seen.idle_fragment_share, seen.idle_kept_share, seen.idle_out_share)
    return ", ".join(_share(part) for part in parts)


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 3600:.2f} h"


def _span(seen: figures.Spread) -> str:
    return f"mean {_hours(seen.mean)}, p50 {_hours(seen.p50)}, p95 {_hours(seen.p95)}"


def _spread(seen: figures.Spread) -> str:
    if seen.mean is None:
        return "-"
    return f"mean {seen.mean:.1f}, p50 {seen.p50:.1f}, p95 {seen.p95:.1f}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f} ms"
