"""Numbers as people read them, and what each figure of an evaluation is called.

`flat` lays the figures out as (key, value) pairs, nested ones with a dot. A figure that is not in the
catalogue is still shown, by its key, with the unit that the key's ending stands for: `_s` seconds, `_ratio`
and `_share` parts of one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

NOTHING = "–"
_PARTS = ("_ratio", "_share", "load", "bound", "share_of_bound", "gpu_allocation")
_CATALOGUE: Mapping[str, tuple[str, str]] = {
    "policy": ("Policy", ""),
    "trace": ("Trace", ""),
    "seed": ("Seed", ""),
    "digest": ("Digest of all events", ""),
    "jobs": ("Jobs submitted", "jobs"),
    "completed": ("Jobs completed", "jobs"),
    "deadline_jobs": ("Jobs with a deadline", "jobs"),
    "met": ("Deadlines met", "jobs"),
    "deadline_ratio": ("Deadlines met, of all", ""),
    "feasible_jobs": ("Deadlines that the job's run time fits into", "jobs"),
    "feasible_ratio": ("Deadlines met, of those", ""),
    "gpu_hour_ratio": ("Deadlines met, weighted by GPU hours", ""),
    "wide_jobs": ("Gangs of 16 GPUs and more with a deadline", "jobs"),
    "wide_met": ("Deadlines met by them", "jobs"),
    "bound": ("No policy could meet more than", ""),
    "share_of_bound": ("Deadlines met, of that bound", ""),
    "tardiness_s": ("Lateness of late jobs", ""),
    "disruptions": ("Runs that a mishap of a node ended", "runs"),
    "preemptions": ("Suspensions for other jobs", "suspensions"),
    "preemptions_per_job": ("Suspensions per job", "suspensions"),
    "rollback_gpu_share": ("GPU time done again, of the useful one", ""),
    "restart_gpu_share": ("GPU time of restarts, of the useful one", ""),
    "lost_gpu_share": ("GPU time lost to suspensions and mishaps, of the useful one", ""),
    "best_effort_jct_mean_s": ("Submission to completion without a deadline, mean", ""),
    "wait_s": ("Wait until the first start", ""),
    "wide_ratio": ("Deadlines met by gangs of 16 GPUs and more", ""),
    "jct_mean_s": ("Submission to completion, mean", ""),
    "jct_s": ("Submission to completion", ""),
    "slowdown": ("Bounded slowdown", "×"),
    "gpu_allocation": ("GPUs in use while jobs arrived", ""),
    "partial_gpu_hours": ("GPUs that incomplete gangs held while jobs arrived", "GPU hours"),
    "partial_gpu_share": ("The same, of all GPUs", ""),
    "idle_wanted_share": ("GPUs idle while jobs waited", ""),
    "idle_out_share": ("Of these out of service", ""),
    "idle_kept_share": ("Of these kept for others, or by the order", ""),
    "idle_fragment_share": ("Of these fitting nobody who waited", ""),
    "promised": ("Deadlines promised", "jobs"),
    "promised_ratio": ("Deadlines promised, of all", ""),
    "promises_broken": ("Promises broken", "jobs"),
    "passes": ("Decision passes", "passes"),
    "decision_p50_s": ("Time of a decision, half are below", ""),
    "decision_p99_s": ("Time of a decision, 99 of 100 are below", ""),
    "invariant_checks": ("Invariants checked", "checks"),
    "invariants_broken": ("Invariants broken", "checks"),
    "stuck": ("Jobs left for which nothing would ever happen", ""),
    "wall_s": ("Real time of the replay", ""),
    "cpu_s": ("CPU time of the replay", ""),
    "virtual_s": ("Time replayed", ""),
    "speedup": ("Replayed faster than real time", "×"),
    "peak_rss_mib": ("Peak memory", "MiB"),
    "jobs_not_counted": ("Jobs not counted: submitted before or after", "jobs"),
    "load": ("Load: GPU time that jobs need, of all GPUs", ""),
    "useful_gpu_share": ("Useful GPU time, of what gangs held", ""),
    "forecast_kept_share": ("Jobs that ended within their first forecast", ""),
    "forecast_error_s": ("Error of the other forecasts", ""),
    "place_slowdown": ("Run time in its place, of that in the best", "×"),
    "by_width": ("By GPUs of the gang", ""),
    "by_tightness": ("By time to the deadline over run time", ""),
    "verdicts": ("First told", ""),
    "dropped": ("Rows left out", "rows"),
}
_ENDINGS = {
    "p50": "half are below",
    "p95": "95 of 100 are below",
    "p99": "99 of 100 are below",
    "most": "most",
}


class Figure(NamedTuple):
    """One figure: its key in the JSON, what it is called, its value for people, and its unit."""

    key: str
    label: str
    text: str
    unit: str


def clean(text: str) -> str:
    """Return text from elsewhere without control characters and those that turn it around."""
    return "".join("\ufffd" if unicodedata.category(sign).startswith("C") else sign for sign in text)


def short(text: str, most: int) -> str:
    """Cut a name after so many characters, with an ellipsis; cleaned."""
    text = clean(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def trace(spec: str) -> str:
    """The trace's file, without its format, folders and endings."""
    path = spec.partition(":")[2] or spec
    return short(path.replace("\\", "/").rpartition("/")[2].partition(".")[0] or spec, 40)


def share(part: float | None) -> str:
    """A part of one in percent, with more decimals near 0 and 100, where they matter."""
    if part is None:
        return NOTHING
    near = min(abs(part), abs(1 - part))
    return f"{part:.1%}" if near >= 0.01 else f"{part:.2%}" if near else f"{part:.0%}"


def count(number: float | None) -> str:
    """A count, or another plain number, with as many decimals as it needs."""
    if number is None:
        return NOTHING
    if float(number).is_integer():
        return f"{int(number):,}"
    size = abs(number)
    return f"{number:,.0f}" if size >= 1000 else f"{number:.1f}" if size >= 10 else f"{number:.3g}"


def span(seconds: float | None) -> str:
    """A time in the unit that suits it, from milliseconds to days."""
    if seconds is None:
        return NOTHING
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size < 1:
        return f"{seconds * 1000:.3g} ms"
    for below, unit, length in ((120, "s", 1), (7200, "min", 60), (2 * 86400, "h", 3600)):
        if size < below:
            return f"{_short(seconds / length)} {unit}"
    return f"{_short(seconds / 86400)} days"


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.1f}".removesuffix(".0")


def figures(found: Mapping[str, Any]) -> list[Figure]:
    """Name every figure of a JSON of `output.as_json`, in its order."""
    return [_figure(key, value) for key, value in flat(found)]


def flat(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Lay nested figures out, with dots between the keys; lists count as one value."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _figure(key: str, value: Any) -> Figure:
    root, _, rest = key.partition(".")
    label, unit = _CATALOGUE.get(root, (clean(root), ""))
    if rest:
        label = f"{label}, {_ENDINGS.get(rest, clean(rest).replace('.', ', '))}"
    if isinstance(value, bool):
        return Figure(key, label, "yes" if value else "no", "")
    if not isinstance(value, (int, float)):
        return Figure(key, label, NOTHING if value is None else clean(str(value)), "")
    leaf = rest.rpartition(".")[2]
    by = leaf if leaf.endswith(_PARTS) else root
    own = by.endswith(("_s", *_PARTS))
    jobs = root in ("verdicts", "by_width", "by_tightness")
    return Figure(key, label, said(by, value), "" if own else unit or ("jobs" if jobs else ""))


def named(key: str) -> str:
    """What a figure is called."""
    return _CATALOGUE.get(key, (clean(key), ""))[0]


def said(key: str, value: float | None) -> str:
    """A value as its figure is written."""
    if key.endswith("_s"):
        return span(value)
    return share(value) if key.endswith(_PARTS) else count(value)


def width(key: str, value: float) -> str:
    """A difference of two values of a figure, without its sign; of parts of one in percentage points."""
    if key.endswith(_PARTS):
        points = abs(value) * 100
        return f"{points:.1f} points" if points >= 1 else f"{points:.2f} points" if points else "0 points"
    return said(key, abs(value))


def change(key: str, value: float) -> str:
    """The same with its sign."""
    return f"{'−' if value < 0 else '+' if value else '±'}{width(key, value)}"
