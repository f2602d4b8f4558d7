"""The report of a comparison: what policies made of the same jobs, seed by seed, each trace by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lstqueue.evaluate.report import dots, fabric, page, plot, svg, words

_DRAWN = ("deadline_ratio", "gpu_hour_ratio", "wide_ratio", "preemptions_per_job", "place_slowdown")
SURE = "The interval is Student's, over seeds."
_NO_TELLING = "One seed says nothing about how sure this is."
_UNDRAWN = (
    "Nothing here is drawn from a seed, so one was replayed: no interval says how sure this is. --shake 10m "
    "draws the arrivals."
)
Found = Mapping[str, Any]


def content(
    found: Found, *, settings: Sequence[page.Setting] = (), command: str = "", cluster: str = ""
) -> page.Content:
    """Say what came of a comparison.

    Args:
        found: As `compare.as_json` has it.
        settings: The options of the command.
        command: The command line that gives the same again.
        cluster: The nodes, in words.
    """
    traces: Mapping[str, Found] = found["traces"]
    names = [words.clean(name) for name in next(iter(traces.values()))]
    drawn: list[plot.Plot] = []
    tables: list[svg.Element] = []
    for number, (trace, policies) in enumerate(traces.items()):
        title = f", {words.trace(trace)}" if len(traces) > 1 else ""
        drawn += _plots(found, trace, policies, number=number, title=title)
        tables += [
            svg.el("h3", {}, trace),
            svg.el("p", {"class": "note"}, jobs([run for run in found["runs"] if run["trace"] == trace])),
            svg.el("p", {"class": "note"}, how(names, found)),
            table(["traces", trace], trace, policies),
        ]
    tables += [svg.el("h3", {}, "All replays"), _runs(found["runs"])]
    return page.Content(
        title=f"{', '.join(names)} compared",
        headline=_headline(found),
        lead=_lead(found, names, cluster),
        tiles=(),
        warnings=tuple(warnings(found)),
        plots=tuple(drawn),
        tables=tuple(tables),
        found=found,
        settings=tuple(settings),
        command=command,
    )  # fmt: skip


def how(names: Sequence[str], found: Found) -> str:
    """Say how to read the tables."""
    if len(names) < 2:
        return "Mean ± half of the 95 % interval."
    first = words.clean(found["first"])
    return (
        f"Mean ± half of the 95 % interval; below, the difference from {first}, seed by seed, with a * where "
        "0 lies outside of its interval."
    )


def seeds(found: Found) -> str:
    """How many seeds, in words."""
    return "1 seed" if found["seeds"] == 1 else f"{found['seeds']} seeds"


def _lead(found: Found, names: Sequence[str], cluster: str) -> str:
    traces = found["traces"]
    of = "" if len(traces) == 1 else f"{len(traces)} traces, each by itself: "
    where = f", on {cluster}" if cluster else ""
    return (
        f"{len(names)} policies met the same jobs and deadlines for each of {seeds(found)} of "
        f"{of}{', '.join(words.trace(trace) for trace in traces)}{where}. Replayed by the operator's own "
        "decision code on a virtual clock."
    )


def jobs(runs: Sequence[Found]) -> str:
    """How many jobs replays of one trace met, and what of it was left out, in words."""
    counts = {run["jobs"] for run in runs}
    dated = {run["deadline_jobs"] for run in runs}
    left = "".join(f"; {count:,} left out: {words.clean(why)}" for why, count in _left(runs).items())
    return f"{_many(counts)} jobs, {_many(dated)} with a deadline{left}."


def _many(counts: Iterable[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _left(runs: Sequence[Found]) -> dict[str, int]:
    """Rows left out by why: the most of any replay, since shaken arrivals may cut a trace elsewhere."""
    reasons = {why: 0 for run in runs for why in run["dropped"]}
    return {why: max(run["dropped"].get(why, 0) for run in runs) for why in reasons}


def _headline(found: Found) -> str:
    traces: Mapping[str, Found] = found["traces"]
    first = found["first"]
    others = [name for name in next(iter(traces.values())) if name != first]
    if not others:
        return " ".join(_alone(first, trace, policies) for trace, policies in traces.items())
    return "; ".join(
        _against(found, trace, best(policies, others), many=len(traces) > 1)
        for trace, policies in traces.items()
    )


def best(policies: Found, others: Sequence[str]) -> str:
    """The policy of `others` that met most deadlines; of equals, and without deadlines, the first."""

    def met(name: str) -> float:
        told = policies[name]["deadline_ratio"]
        return -1.0 if told is None else float(told["mean"])

    return max(others, key=met)


def sure(above: Found) -> str:
    """How sure a difference of `deadline_ratio` is, in brackets; nothing of one seed."""
    if above["half"] is None:
        return ""
    inside = "" if abs(above["mean"]) > above["half"] else ": 0 lies inside, so neither is shown to be better"
    return f" (± {words.width('deadline_ratio', above['half'])}{inside})"


def _alone(first: str, trace: str, policies: Found) -> str:
    mine = policies[first]["deadline_ratio"]
    met = "had no deadlines to meet" if mine is None else f"met {words.share(mine['mean'])} of all deadlines"
    return f"{words.clean(first)} {met} on {words.trace(trace)}"


def _against(found: Found, trace: str, rival: str, *, many: bool) -> str:
    first, policies = found["first"], found["traces"][trace]
    mine, theirs = policies[first]["deadline_ratio"], policies[rival]["deadline_ratio"]
    where = f" on {words.trace(trace)}" if many else ""
    if mine is None or theirs is None or theirs.get("above_first") is None:
        return f"{words.clean(first)} and {words.clean(rival)} had no deadlines to meet{where}"
    above = theirs["above_first"]
    more = "more" if above["mean"] <= 0 else "fewer"
    than = f"than the best other, {words.clean(rival)}{sure(above)}"
    said = (
        f"{words.clean(first)} met {words.share(mine['mean'])} of all deadlines{where}, "
        f"{words.width('deadline_ratio', above['mean'])} {more} {than}"
    )
    bound = _bound(found, trace)
    if bound is None:
        return said
    most = (
        "a perfect policy may meet all"
        if bound >= 1
        else f"no policy could have met more than {words.share(bound)}"
    )
    return f"{said}; {most}"


def _bound(found: Found, trace: str) -> float | None:
    """The mean of the bounds of the seeds; None where nobody asked for them."""
    known = {
        run["seed"]: run["bound"]
        for run in found["runs"]
        if run["trace"] == trace and run["bound"] is not None
    }
    return sum(known.values()) / len(known) if known else None


def _plots(found: Found, trace: str, policies: Found, *, number: int, title: str) -> Iterator[plot.Plot]:
    bound = _bound(found, trace)
    alone = _NO_TELLING if found["seeds"] == 1 else SURE
    for key in _DRAWN:
        rows = [_row(name, told[key]) for name, told in policies.items() if told.get(key) is not None]
        if not rows:
            continue
        limit = bound if key == "deadline_ratio" else None
        cut = (
            " Intervals are drawn up to 100 %."
            if key.endswith("_ratio") and max(row.high for row in rows) > 1
            else ""
        )
        name = f"{words.named(key)}{title}"
        yield dots.means(f"{key}-{number}", name, rows, figure=key, bound=limit, note=f"{alone}{cut}")
        against = [
            _row(policy, told[key]["above_first"])
            for policy, told in policies.items()
            if told.get(key) is not None and told[key].get("above_first") is not None
        ]
        if against:
            first = words.clean(found["first"])
            note = f"Above {first} on the same seed, so what a seed does to both is no doubt. {alone}"
            unit = ", in points" if key.endswith("_ratio") else ""
            name = f"{words.named(key)}, against {first}{unit}{title}"
            yield dots.differences(f"{key}-against-{number}", name, against, figure=key, note=note)
    full = {
        words.clean(policy): its
        for policy in policies
        if (
            its := domains([run for run in found["runs"] if (run["trace"], run["policy"]) == (trace, policy)])
        )
    }
    if full:
        yield fabric.compared(f"domains-{number}", f"How full the interconnect's domains were{title}", full)


def domains(runs: Sequence[Found]) -> list[Found]:
    """How full domains were in each of some replays; nothing of those without an interconnect."""
    return [run["domains"] for run in runs if run.get("domains")]


def _row(name: str, told: Found) -> dots.Row:
    return dots.Row(words.clean(name), told["mean"], told["half"], tuple(told["values"]))


def table(path: Sequence[str], label: str, policies: Found) -> svg.Element:
    """Every figure of every policy; `data-path` says where in the JSON a mean is, `path` where all are."""
    keys = list(next(iter(policies.values())))
    head = svg.el("tr", {}, svg.el("th", {"scope": "col"}, "figure"))
    svg.add(head, [svg.el("th", {"scope": "col"}, name) for name in policies])
    body = svg.el("tbody")
    for key in keys:
        row = svg.el("tr", {}, svg.el("th", {"scope": "row"}, words.named(key)))
        for name, told in policies.items():
            row.append(_cell([*path, name, key], key, told[key]))
        body.append(row)
    made = svg.el("table", {"class": "compared"}, svg.el("thead", {}, head), body)
    return page.scrolling(made, f"Figures of {label}")


def _cell(path: list[str], key: str, told: Found | None) -> svg.Element:
    if told is None:
        return svg.el("td", {"class": "number"}, words.NOTHING)
    where = {"data-path": json.dumps([*path, "mean"]), "data-value": json.dumps(told["mean"])}
    half = "" if told["half"] is None else f" ± {words.width(key, told['half'])}"
    cell = svg.el("td", {"class": "number", **where}, f"{words.said(key, told['mean'])}{half}")
    above = told.get("above_first")
    if above is not None:
        sure = above["half"] is not None and abs(above["mean"]) > above["half"]
        cell.append(svg.el("br"))
        said = f"{words.change(key, above['mean'])}{' *' if sure else ''}"
        cell.append(svg.el("span", {"class": "note"}, said))
    return cell


def _runs(runs: Sequence[Found]) -> svg.Element:
    rows = [
        (
            words.clean(run["policy"]), words.trace(run["trace"]), f"{run['seed']}",
            f"{run['met']:,} of {run['deadline_jobs']:,}", words.share(run["bound"]),
            f"{run['preemptions']:,}", words.span(run["wait_s"]["mean"]), run["digest"][:16],
        )
        for run in runs
    ]  # fmt: skip
    head = ("policy", "trace", "seed", "deadlines met", "bound", "suspensions", "mean wait", "digest")
    return page.table(head, rows, "All replays")


def warnings(found: Found) -> Iterator[str]:
    """What to mind about a comparison."""
    broken = sum(run["invariants_broken"] for run in found["runs"])
    if broken:
        yield f"{broken:,} invariants were broken: do not trust these figures."
    stuck = sum(1 for run in found["runs"] if run["stuck"])
    if stuck:
        of = "one replay" if stuck == 1 else f"{stuck:,} replays"
        yield f"In {of} jobs were left for which nothing would ever happen."
    yield from found.get("mind", ())
    if not found.get("drawn", True):
        yield _UNDRAWN
    elif found["seeds"] == 1:
        yield _NO_TELLING
    elif not found["published"]:
        yield (
            "Fewer than ten seeds, or arrivals that were not shaken (--shake): enough to look at, too little "
            "to rest a claim on."
        )
