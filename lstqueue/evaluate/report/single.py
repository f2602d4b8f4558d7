"""The report of one replay: what is said of it, from its figures and its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.evaluate.report import bars, curves, fabric, gantt, page, places, plot, series, svg, words


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: `cluster` and `about`, the policy, in words; the settings and the command line.

    `mind` is what to mind about that, if anything.
    """

    about: str = ""
    cluster: str = ""
    settings: Sequence[page.Setting] = ()
    command: str = ""
    mind: str | None = None


def content(found: Mapping[str, Any], seen: series.Recorded, asked: Asked) -> page.Content:
    """Say what came of a replay.

    Args:
        found: The figures, as `output.as_json` has them.
        seen: The replay with its record.
        asked: How to get it again.
    """
    return page.Content(
        title=f"{found['policy']} on {words.trace(found['trace'])}",
        headline=_headline(found),
        lead=_lead(found, asked),
        tiles=_tiles(found),
        warnings=(*([asked.mind] if asked.mind else []), *_warnings(found)),
        plots=tuple(_plots(found, seen)),
        tables=(*_queues(found), page.figures(found)),
        found=found,
        settings=tuple(asked.settings),
        command=asked.command,
    )


def _queues(found: Mapping[str, Any]) -> list[svg.Element]:
    """A table of the queues, where there are several."""
    if not found["by_queue"]:
        return []
    head = ("queue", "jobs", "deadlines met", "GPU hours", "mean wait", "gave back")
    rows = [
        (
            words.clean(name), f"{own['jobs']:,}",
            f"{own['met']:,} of {own['deadline_jobs']:,} ({words.share(own['deadline_ratio'])})",
            words.count(own["gpu_hours"]), words.span(own["wait_mean_s"]), f"{own['gave_back']:,}",
        )
        for name, own in found["by_queue"].items()
    ]  # fmt: skip
    return [svg.el("h3", {}, "Queues"), page.table(head, rows, "Queues")]


def _headline(found: Mapping[str, Any]) -> str:
    policy = words.clean(found["policy"])
    if not found["deadline_jobs"]:
        return f"{policy} completed {found['completed']:,} of {found['jobs']:,} jobs; none had a deadline"
    said = f"{policy} met {words.share(found['deadline_ratio'])} of {found['deadline_jobs']:,} deadlines"
    if found["bound"]:
        most = words.share(found["bound"])
        said += (
            f"; no policy could have met more than {most}"
            if found["bound"] < 1
            else "; a perfect policy may meet all"
        )
    return said


def _lead(found: Mapping[str, Any], asked: Asked) -> str:
    policy = f"{words.clean(found['policy'])}: {asked.about}. " if asked.about else ""
    where = f" on {asked.cluster}" if asked.cluster else ""
    return (
        f"{policy}{found['jobs']:,} jobs of {words.trace(found['trace'])}{where}, "
        f"{words.span(found['virtual_s'])} replayed by the operator's own decision code on a virtual clock, "
        f"seed {found['seed']}."
    )


def _tiles(found: Mapping[str, Any]) -> tuple[page.Tile, ...]:
    wait = found["wait_s"]
    made = [
        page.Tile("GPUs in use", words.share(found["gpu_allocation"]), "while jobs arrived"),
        page.Tile("Wait, half below", words.span(wait["p50"]), f"95 of 100 below {words.span(wait['p95'])}"),
        page.Tile(
            "Suspensions per job",
            words.count(found["preemptions_per_job"]),
            f"{found['preemptions']:,} in all",
        ),
        page.Tile("GPU time lost", words.share(found["lost_gpu_share"]), "to suspensions and mishaps"),
    ]
    if not found["deadline_jobs"]:
        return tuple(made)
    bound = found["bound"]
    limit = (
        f"{words.share(found['share_of_bound'])} of the bound" if bound else f"of {found['deadline_jobs']:,}"
    )
    dated = [
        page.Tile("Deadlines met", words.share(found["deadline_ratio"]), limit),
        page.Tile("By GPU hours", words.share(found["gpu_hour_ratio"]), "of the work with a deadline"),
    ]
    return (*dated, *made)


def _warnings(found: Mapping[str, Any]) -> list[str]:
    said = []
    if found["invariants_broken"]:
        said.append(f"{found['invariants_broken']:,} invariants were broken: do not trust these figures.")
    if found["stuck"]:
        left = found["jobs"] - found["completed"]
        said.append(
            f"{left:,} jobs never ended, since nothing would ever let them; their deadlines count as missed."
        )
    for reason, rows in found["dropped"].items():
        said.append(f"{rows:,} rows of the trace were left out: {words.clean(reason)}.")
    if found["deadline_jobs"] and found["bound"] is None:
        said.append("Nobody asked how much any policy could have met; --bound tells.")
    if found["deadline_jobs"] and not found["verdicts"]:
        said.append("No verdicts were made, so there is no plot of them; --verdicts makes them.")
    return said


def _plots(found: Mapping[str, Any], seen: series.Recorded) -> list[plot.Plot]:
    """What decides first: deadlines and waits side by side, then what explains them."""
    by_width = series.widths(seen)
    made = [bars.met_by_width(by_width, found["bound"])] if found["deadline_jobs"] else []
    made.append(bars.waits_by_width(by_width))
    if found["deadline_jobs"]:
        made.append(bars.margins(series.margins(seen)))
    if found["verdicts"]:
        made.append(bars.verdicts(found["verdicts"]))
    made.append(curves.gpus(seen))
    # A drawing of nothing is left out; the tiles say that there was nothing.
    if any(wait.life.work.deadline is not None for wait in seen.record.waits):
        made.append(curves.slack(seen))
    if seen.record.losses:
        made.append(curves.losses(seen))
    return [*made, *_interconnect(seen), gantt.fullness(seen), gantt.gangs(seen)]


def _interconnect(seen: series.Recorded) -> list[plot.Plot]:
    """The domains, and how good gangs' places in them were; nothing of a replay without an interconnect."""
    found = seen.record.domains
    if found is None:
        return []
    made = [fabric.fullness(seen, found)]
    if places.gangs(seen) and len(found.nodes) > 1:
        made.append(places.spread(seen, found))
        if places.communicates(seen):
            made.append(places.slower(seen, found))
    return made
