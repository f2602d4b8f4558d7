"""What is said of two replays of the same jobs: by the engine alone, and through the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import console, table

from lstqueue.evaluate import output
from lstqueue.through import play

SHOWN = 20
"""How many broken invariants, and jobs that were told otherwise, are named."""

COMPARED = (
    ("deadlines met", "deadline_ratio", "{:.2%}"),
    ("of those that could be met", "feasible_ratio", "{:.2%}"),
    ("the same by GPU hours", "gpu_hour_ratio", "{:.2%}"),
    ("gangs of 16 GPUs and more", "wide_met", "{:,} of {wide:,}"),
    ("suspensions for others, per job", "preemptions_per_job", "{:.3f}"),
    ("runs ended otherwise", "disruptions", "{:,}"),
    ("GPU time lost to both", "lost_gpu_share", "{:.2%}"),
    ("wait until the first start, mean", "wait_s", "{hours:.2f} h"),
    ("submission to completion, mean", "jct_s", "{hours:.2f} h"),
    ("GPUs in use while jobs arrived", "gpu_allocation", "{:.2%}"),
    ("GPUs idle while jobs waited", "idle_wanted_share", "{:.2%}"),
    ("decision passes", "passes", "{:,}"),
    ("invariant checks", "invariant_checks", "{:,}"),
    ("invariants broken", "invariants_broken", "{:,}"),
    ("wall time", "wall_s", "{:.1f} s"),
    ("CPU time", "cpu_s", "{:.1f} s"),
    ("peak memory", "peak_rss_mib", "{:.0f} MiB"),
)
"""What the table has: words, key of the JSON, form (`hours` of seconds, `wide` gangs in all)."""


def as_json(found: output.Result, pure: output.Result, played: play.Played) -> dict[str, Any]:
    """Return the figures of the replay through the operator, those of the engine alone in `pure`.

    The keys are those of `evaluate run`; decisions are not timed here, and why GPUs were idle is not known.
    Beside them: `audit` (`checks`, `violated`, and the first in words), what the operator asked of the API
    (`requests`, `writes_per_job`), `told_otherwise` (jobs whose DeadlineMissed says another thing than their
    pods), and `above_pure`, by how much ratios and shares are above those of `pure`.
    """
    told, alone = output.as_json(found), output.as_json(pure)
    ratios = ("deadline_ratio", "feasible_ratio", "gpu_hour_ratio", "preemptions_per_job", "lost_gpu_share")
    told |= dict.fromkeys(("idle_kept_share", "idle_fragment_share"))
    return {
        **told,
        "through": "embedded",
        "audit": {
            "checks": played.checks,
            "violated": len(played.violations),
            "violations": list(played.violations[:SHOWN]),
        },
        "requests": dict(played.requests),
        "writes_per_job": round(played.writes / max(found.seen.jobs, 1), output.DIGITS),
        "told_otherwise": list(played.told_otherwise[:SHOWN]),
        "above_pure": {key: _above(told[key], alone[key]) for key in ratios},
        "pure": alone,
    }


def conclude(terminal: console.Console, told: Mapping[str, Any]) -> None:
    """Print both columns, and what was broken."""
    shown = table.Table(title=f"{told['policy']} on {told['trace']}")
    for name in ("", "engine alone", "through the operator"):
        shown.add_column(name, justify="right" if name else "left")
    for words, key, form in COMPARED:
        shown.add_row(words, *(_cell(one, key, form) for one in (told["pure"], told)))
    shown.add_row("writes to the API, per job", "-", f"{told['writes_per_job']:.1f}")
    terminal.print(shown)
    for words in told["audit"]["violations"]:
        terminal.print(f"broken: {words}", style="red", markup=False)
    for key in told["told_otherwise"]:
        terminal.print(f"{key} was told another thing of its deadline than its pods say", markup=False)
    if told["stuck"]:
        terminal.print("Some jobs never ended.", style="red")


def _above(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else round(value - other, output.DIGITS)


def _cell(told: Mapping[str, Any], key: str, form: str) -> str:
    value = told[key]["mean"] if isinstance(told[key], Mapping) else told[key]
    return "-" if value is None else form.format(value, hours=value / 3600, wide=told["wide_jobs"])
