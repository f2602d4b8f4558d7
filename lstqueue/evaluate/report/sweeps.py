"""The report of a sweep: what policies make of the same jobs as one option changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lstqueue.evaluate.report import fabric, lines, page, plot, several, svg, words

_DRAWN = (
    "deadline_ratio", "gpu_hour_ratio", "wide_ratio", "preemptions_per_job", "lost_gpu_share", "jct_mean_s",
    "best_effort_jct_mean_s", "place_slowdown",
)  # fmt: skip
Found = Mapping[str, Any]


def content(found: Found, *, settings: Sequence[page.Setting] = (), command: str = "") -> page.Content:
    """Say what came of a sweep.

    Args:
        found: As `sweep.as_json` has it.
        settings: The options of the command.
        command: The command line that gives the same again.
    """
    points: Mapping[str, Found] = found["points"]
    names = [words.clean(name) for name in next(iter(points.values()))]
    option = found["vary"]
    tables: list[svg.Element] = []
    for value, policies in points.items():
        label = f"--{option} {value}"
        here = [run for run in found["runs"] if run["value"] == value]
        tables += [svg.el("h3", {}, label), svg.el("p", {"class": "note"}, several.jobs(here))]
        tables.append(several.table(["points", value], label, policies))
    return page.Content(
        title=f"{', '.join(names)} by --{option}",
        headline=_headline(found),
        lead=(
            f"{len(names)} policies on {words.trace(found['trace'])}, with {option} at "
            f"{', '.join(words.clean(value) for value in points)}. At each value all of them met the same "
            f"jobs and deadlines for each of {several.seeds(found)}. Replayed by the operator's own decision "
            "code on a virtual clock."
        ),
        tiles=(),
        warnings=tuple(several.warnings(found)),
        plots=tuple(_plots(found)),
        tables=(svg.el("p", {"class": "note"}, several.how(names, found)), *tables),
        found=found,
        settings=tuple(settings),
        command=command,
    )


def _headline(found: Found) -> str:
    """How the first policy goes from the first value to the last, and where the best of the others does."""
    points: Mapping[str, Found] = found["points"]
    (low, first), (high, last) = next(iter(points.items())), list(points.items())[-1]
    name = found["first"]
    if first[name]["deadline_ratio"] is None or last[name]["deadline_ratio"] is None:
        return f"{words.clean(name)} had no deadlines to meet"
    ends = [words.share(here[name]["deadline_ratio"]["mean"]) for here in (first, last)]
    said = (
        f"{words.clean(name)} met {ends[0]} of all deadlines with {found['vary']} at {words.clean(low)}, "
        f"{ends[1]} at {words.clean(high)}"
    )
    others = [one for one in last if one != name]
    if not others:
        return said
    rival = several.best(last, others)
    told = last[rival]["deadline_ratio"]
    above = told.get("above_first")
    sure = "" if above is None else several.sure(above)
    return f"{said}, where the best other, {words.clean(rival)}, met {words.share(told['mean'])}{sure}"


def _plots(found: Found) -> Iterator[plot.Plot]:
    points: Mapping[str, Found] = found["points"]
    values = [words.clean(value) for value in points]
    names = list(next(iter(points.values())))
    alone = "One seed says nothing about how sure this is." if found["seeds"] == 1 else several.SURE
    for key in _DRAWN:
        rows = [lines.Line(words.clean(name), _line(points, name, key)) for name in names]
        if not any(point is not None and point.mean for row in rows for point in row.points):
            continue  # a drawing of nothing; the tables say so
        bounds = [_bound(found, value) for value in points] if key == "deadline_ratio" else []
        yield lines.curves(
            key, words.named(key), found["vary"], values, rows, figure=key, bounds=bounds, note=alone
        )
    full = {
        f"{name} {value}": its
        for value, name in itertools.product(points, names)
        if (
            its := several.domains(
                [run for run in found["runs"] if (run["value"], run.get("policy")) == (value, name)]
            )
        )
    }
    if full:
        yield fabric.compared("domains", "How full the interconnect's domains were", full)


def _line(points: Mapping[str, Found], name: str, key: str) -> tuple[lines.Point | None, ...]:
    told = [here[name][key] for here in points.values()]
    return tuple(None if one is None else lines.Point(one["mean"], one["half"]) for one in told)


def _bound(found: Found, value: str) -> float | None:
    """The mean of the bounds of the seeds at a value; None where nobody asked for them."""
    known = {
        run["seed"]: run["bound"]
        for run in found["runs"]
        if run["value"] == value and run["bound"] is not None
    }
    return sum(known.values()) / len(known) if known else None
