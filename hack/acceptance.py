"""Replay the rows of the acceptance table, put what was found into a record, and print that as a table.

    python hack/acceptance.py FOLDER [ROW ...]     replay rows (all), and put them into the record
    python hack/acceptance.py FOLDER --ablate ROW  the same row with one rule changed at a time
    python hack/acceptance.py --print              print the record as docs/evaluation.md has it

FOLDER has the traces under the names of docs/traces.md. A row takes minutes to an hour of CPU time. Rows are
replayed one after another, and the record is written after every seed; it says how many a row has. The exit
code is the number of floors that the rows replayed have not reached.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import operator
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import lstqueue
from lstqueue.evaluate import evaluation, output, paired
from lstqueue.evaluate import options as asked

RECORD = pathlib.Path(__file__).parent.parent / "docs" / "evaluation-record.json"
ITP, PHILLY = "elasticflow-itp", "chronus-philly"
DRAWN = {"deadlines": "uniform:1.1:3.0"}
KEPT = (
    "seed", "jobs", "deadline_jobs", "met", "deadline_ratio", "gpu_hour_ratio", "wide_jobs", "wide_met",
    "preemptions_per_job", "lost_gpu_share", "best_effort_jct_mean_s", "best_effort_fruitless_most",
    "promised_ratio", "promises_broken", "bound", "share_of_bound", "passes", "digest",
)  # fmt: skip
"""Figures that the record keeps of a replay: all of them the same wherever it runs."""


@dataclass(frozen=True)
class Floor:
    """What a figure must reach: in the mean over seeds, or with `each` at every seed.

    With `row` it is `value` times the mean of that row.
    """

    key: str
    op: str
    value: float
    each: bool = False
    row: str = ""

    def holds(
        self, found: Sequence[Mapping[str, Any]], rows: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> bool:
        """Whether it does; not where a figure, or the other row, is missing."""
        mean = interval(found, self.key)
        theirs = interval(rows.get(self.row, ()), self.key) if self.row else None
        if mean is None or (self.row and theirs is None):
            return False
        limit = self.value if theirs is None else self.value * theirs.mean
        compared = operator.ge if self.op == ">=" else operator.le
        return all(compared(value, limit) for value in (mean.values if self.each else (mean.mean,)))


def at_least(key: str, value: float, *, each: bool = False, row: str = "") -> Floor:
    """A figure that must be as high."""
    return Floor(key, ">=", value, each, row)


def at_most(key: str, value: float, *, row: str = "") -> Floor:
    """A figure that must be as low."""
    return Floor(key, "<=", value, row=row)


@dataclass(frozen=True)
class Row:
    """A trace and a cluster, and what must be reached."""

    trace: str
    nodes: int
    floors: Sequence[Floor] = ()
    seeds: int = 5
    policy: str = "lst"
    bound: bool = False
    pass_every: str = "1s"  # as the operator's
    more: Mapping[str, Any] = field(default_factory=dict)


C03, C04 = f"elasticflow:{ITP}/cluster03.csv.gz", f"elasticflow:{ITP}/cluster04.csv.gz"
SLO = f"chronus:{PHILLY}/trace_job_Philly_SLO.csv.gz"
MIX1 = f"chronus:{PHILLY}/trace_job_Philly_MIX1.csv.gz"
SDSC = "swf:pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz"
FAIR = (
    at_least("deadline_ratio", 0.885), at_least("deadline_ratio", 0.875, each=True),
    at_least("gpu_hour_ratio", 0.64), at_least("wide_met", 114), at_most("preemptions_per_job", 0.35),
    at_most("lost_gpu_share", 0.01),
)  # fmt: skip
PROMISED = (at_most("promises_broken", 0),)
ROWS = {
    "cluster03": Row(C03, 16, FAIR, bound=True, more=DRAWN),
    "cluster03-1m": Row(C03, 16, FAIR, bound=True, pass_every="1m", more=DRAWN),
    "promises-03": Row(
        C03,
        16,
        (*PROMISED, at_least("promised_ratio", 0.40), at_least("deadline_ratio", 0.875)),
        policy="lst-promises",
        more=DRAWN,
    ),
    "promises-04": Row(
        C04,
        64,
        (*PROMISED, at_least("promised_ratio", 0.85), at_least("deadline_ratio", 0.986)),
        seeds=1,
        policy="lst-promises",
        more=DRAWN,
    ),
    "promises-slo": Row(SLO, 120, PROMISED, seeds=1, policy="lst-promises"),
    "cluster03-13": Row(C03, 13, (at_least("deadline_ratio", 0.850),), bound=True, more=DRAWN),
    "cluster03-20": Row(C03, 20, (at_least("deadline_ratio", 0.917),), bound=True, more=DRAWN),
    "cluster04": Row(
        C04,
        64,
        (at_least("deadline_ratio", 0.996), at_least("gpu_hour_ratio", 0.97), at_least("wide_met", 435)),
        more=DRAWN,
    ),
    "cluster04-48": Row(
        C04, 48, (at_least("deadline_ratio", 1.0, row="cluster04-48-edf"),), seeds=1, more=DRAWN
    ),
    "cluster04-48-edf": Row(C04, 48, seeds=1, policy="edf-preempt-late-drop", more=DRAWN),
    "slo": Row(
        SLO,
        120,
        (
            at_least("deadline_ratio", 0.994), at_least("gpu_hour_ratio", 0.80), at_least("wide_met", 82),
            at_most("preemptions_per_job", 0.30),
        ),
        seeds=1,
    ),
    "mix1": Row(
        MIX1,
        120,
        (
            at_least("deadline_ratio", 0.999), at_most("best_effort_fruitless_most", 10),
            at_most("best_effort_jct_mean_s", 1.3, row="mix1-easy"),
        ),
        seeds=1,
    ),
    "mix1-easy": Row(MIX1, 120, seeds=1, policy="easy"),
    "sdsc": Row(
        SDSC,
        144,
        (at_least("deadline_ratio", 0.95),),
        seeds=1,
        more={"deadlines": "sdsc", "estimates": "last-two"},
    ),
}  # fmt: skip
ABLATIONS: Mapping[str, str] = {
    "as it is": "lst",
    "nobody shed": "lst:shedding=false",
    "the shed count once": "lst:shed_weight=1",
    "who is given up counts its whole width": "lst:shed_width=1.0",
    "no more may be asked for a near deadline": "lst:shed_extra=0.0",
    "the late keep their band": "lst-no-demotion",
    "no reservations": "lst:reserve_most=0",
    "guests on what a reservation leaves of a node": "lst:reserve_whole=false",
    "reservations at the last moment too": "lst:reserve_early=false",
    "the late share": "lst:share_late=true",
    "plain slack in the order": "lst:overhead_share=0.0",
    "trigger without a share of the run time": "lst:trigger_share=0.0",
    "no wait for checkpoints": f"lst:unsaved_most={1 << 40}",
    "no margin of harm": "lst:harm_margin=0",
    "nobody moved": "lst:moving=false",
    "suspended in vain again and again": f"lst:wasted_most={1 << 40}",
}
"""Policies that are `lst` but for one rule, by what is changed."""


def options(row: Row, folder: pathlib.Path) -> Iterator[asked.One]:
    """What a row replays: the acceptance settings, passes as far apart as an operator's, no verdicts."""
    form, _, path = row.trace.partition(":")
    shared = {"deadlines": "file", **row.more}
    for seed in range(1, row.seeds + 1):
        yield asked.One(
            trace=f"{form}:{folder / path}",
            nodes=row.nodes,
            gpus_per_node=8,
            policy=row.policy,
            seed=seed,
            settings="acceptance",
            verdicts=False,
            invariants=False,
            bound=row.bound,
            pass_every=row.pass_every,
            **shared,
        )


def replayed(row: Row, folder: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Replay a row seed by seed, in this process."""
    for one in options(row, folder):
        told = output.as_json(evaluation.evaluated(one, lambda _: None))
        print(
            f"  seed {one.seed}: {told['deadline_ratio']}, {told['cpu_s']:.0f} s", file=sys.stderr, flush=True
        )
        yield {key: told[key] for key in KEPT}


def interval(found: Sequence[Mapping[str, Any]], key: str) -> paired.Interval | None:
    """The mean of a figure and how sure it is; None where a replay has none."""
    values = [one.get(key) for one in found]
    return None if None in values or not values else paired.interval([float(value) for value in values])


def missed(
    row: Row, found: Sequence[Mapping[str, Any]], rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[str]:
    """The figures whose floors a row has not reached, of `rows` with what else is recorded."""
    return list(dict.fromkeys(floor.key for floor in row.floors if not floor.holds(found, rows)))


def fingerprint() -> str:
    """What says which engine and evaluator these are: a digest of all their sources."""
    root = pathlib.Path(lstqueue.__file__).parent
    found = hashlib.sha256()
    for room in ("engine", "evaluate", "topology"):
        for path in sorted((root / room).rglob("*.py")):
            found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def stamp(row: Row, folder: pathlib.Path) -> dict[str, Any]:
    """What a row was replayed with: options, the trace by its digest, and the engine."""
    asked = dataclasses.asdict(next(options(row, folder)))
    told = {name: value for name, value in asked.items() if name not in ("trace", "seed") and value}
    trace = (folder / row.trace.partition(":")[2]).read_bytes()
    return {"options": told, "trace_sha256": hashlib.sha256(trace).hexdigest(), "engine": fingerprint()}


def stale(record: Mapping[str, Any]) -> Iterator[str]:
    """Say which rows are not of the engine that is here."""
    now = fingerprint()
    for name in record["rows"]:
        engine = record.get("stamps", {}).get(name, {}).get("engine")
        if engine is None:
            yield f"{name}: recorded without a stamp, so of an engine that is not known"
        elif engine != now:
            yield f"{name}: of another engine ({engine}, now {now})"


COLUMNS = (
    ("deadline_ratio", "ratio", 4), ("gpu_hour_ratio", "GPU-h", 3), ("wide_met", "wide", 1),
    ("preemptions_per_job", "suspensions a job", 3), ("lost_gpu_share", "lost", 4),
    ("share_of_bound", "of the bound", 3),
)  # fmt: skip


def lines(record: Mapping[str, Any]) -> Iterator[str]:
    """The record as tables in Markdown: means ± half of the 95 % interval over seeds, bold below a floor.

    Of ablations the first row has its means, the others what they differ from it by, seed by seed.
    """
    yield "| row | seeds | " + " | ".join(title for _, title, _ in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for name, row in ROWS.items():
        if name in record["rows"]:
            yield _line(f"`{name}`", row, record["rows"][name], record["rows"])
    for name, variants in record["ablations"].items():
        yield ""
        yield f"| `{name}`, seeds | " + " | ".join(title for _, title, _ in COLUMNS[:-1]) + " |"
        yield "|---" * len(COLUMNS) + "|"
        base = next(iter(variants.values()))
        for words, found in variants.items():
            changed = found if found is base else list(_changes(found, base))
            cells = [_cell(changed, key, digits, signed=found is not base) for key, _, digits in COLUMNS[:-1]]
            yield f"| {words}, {len(found)} | " + " | ".join(cells) + " |"


def _line(
    name: str,
    row: Row,
    found: Sequence[Mapping[str, Any]],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
) -> str:
    below = missed(row, found, rows)
    cells = [_cell(found, key, digits) for key, _, digits in COLUMNS]
    told = [f"**{cell}**" if key in below else cell for cell, (key, _, _) in zip(cells, COLUMNS, strict=True)]
    seeds = f"{len(found)}" if len(found) >= row.seeds else f"{len(found)} of {row.seeds}: incomplete"
    others = [f"**{key}**" for key in below if key not in {column for column, _, _ in COLUMNS}]
    return f"| {', '.join([name, *others])} | {seeds} | " + " | ".join(told) + " |"


def _changes(
    found: Sequence[Mapping[str, Any]], base: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """By how much the figures of a variant differ from those of the row as it is, with the same seeds."""
    theirs = {one["seed"]: one for one in base}
    for one in found:
        if one["seed"] in theirs:
            yield {key: one[key] - theirs[one["seed"]][key] for key, _, _ in COLUMNS[:-1]}


def _cell(found: Sequence[Mapping[str, Any]], key: str, digits: int, *, signed: bool = False) -> str:
    mean = interval(found, key)
    if mean is None:
        return "-"
    sure = "" if mean.half is None else f" ± {mean.half:.{digits}f}"
    return f"{mean.mean:{'+' if signed else ''}.{digits}f}{sure}"


def main() -> int:
    """Do what the command line asks for; return how many floors were not reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--ablate", choices=ROWS, help="a row, rule by rule")
    parser.add_argument("--only", choices=ABLATIONS, action="append", help="of the rules only these")
    parser.add_argument("--seeds", type=int, help="of an ablation, fewer than the row has")
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    parser.add_argument("--print", action="store_true", dest="shows")
    asked = parser.parse_args()
    record: dict[str, Any] = {"rows": {}, "ablations": {}}
    if asked.record.exists():
        record = json.loads(asked.record.read_text())
    if asked.shows:
        print("\n".join(lines(record)))
        print("\n".join(stale(record)), file=sys.stderr)
        return 0
    if asked.folder is None or not asked.folder.is_dir():
        parser.error("FOLDER must be the folder with the traces (docs/traces.md says where they are)")
    if unknown := [name for name in asked.rows if name not in ROWS]:
        parser.error(f"{', '.join(unknown)}: no such row; there are {', '.join(ROWS)}")
    if asked.ablate:
        row = ROWS[asked.ablate]
        row = dataclasses.replace(row, floors=(), seeds=asked.seeds or row.seeds, bound=False)
        for words in asked.only or ABLATIONS:
            print(words, file=sys.stderr)
            variants = record["ablations"].setdefault(asked.ablate, {})
            changed = dataclasses.replace(row, policy=ABLATIONS[words])
            _put(asked.record, record, variants, words, replayed(changed, asked.folder))
        return 0
    below = 0
    for name in asked.rows or ROWS:
        print(name, file=sys.stderr)
        record.setdefault("stamps", {})[name] = stamp(ROWS[name], asked.folder)
        _put(asked.record, record, record["rows"], name, replayed(ROWS[name], asked.folder))
        names = missed(ROWS[name], record["rows"][name], record["rows"])
        below += len(names)
        print(_line(name, ROWS[name], record["rows"][name], record["rows"]), *names, flush=True)
    return below


def _put(
    path: pathlib.Path, record: Any, there: dict[str, Any], name: str, found: Iterator[dict[str, Any]]
) -> None:
    """Put what is found into a part of the record, and write that after every seed."""
    there[name] = []
    for one in found:
        there[name].append(one)
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
