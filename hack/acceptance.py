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
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lstqueue.evaluate import command, output, paired, policies

RECORD = pathlib.Path(__file__).parent.parent / "docs" / "evaluation-record.json"
ITP, PHILLY = "elasticflow-itp", "chronus-philly"
DRAWN = {"deadlines": "uniform:1.1:3.0"}
KEPT = (
    "seed", "jobs", "deadline_jobs", "met", "deadline_ratio", "gpu_hour_ratio", "wide_jobs", "wide_met",
    "preemptions_per_job", "lost_gpu_share", "best_effort_jct_mean_s", "best_effort_fruitless_most", "bound",
    "share_of_bound", "passes", "digest",
)  # fmt: skip
"""Figures that the record keeps of a replay: all of them the same wherever it runs."""


@dataclass(frozen=True)
class Row:
    """A trace and a cluster, and what must be reached in the mean over seeds; below zero: at most that."""

    trace: str
    nodes: int
    floors: Mapping[str, float]
    seeds: int = 5
    policy: str = "lst"
    bound: bool = False
    pass_every: str = "1s"  # as the operator's
    more: Mapping[str, Any] = field(default_factory=dict)


C03, C04 = f"elasticflow:{ITP}/cluster03.csv.gz", f"elasticflow:{ITP}/cluster04.csv.gz"
SLO = f"chronus:{PHILLY}/trace_job_Philly_SLO.csv.gz"
MIX1 = f"chronus:{PHILLY}/trace_job_Philly_MIX1.csv.gz"
SDSC = "swf:pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz"
FAIR = {
    "deadline_ratio": 0.885, "gpu_hour_ratio": 0.64, "wide_met": 114, "preemptions_per_job": -0.35,
    "lost_gpu_share": -0.01,
}  # fmt: skip
ROWS = {
    "cluster03": Row(C03, 16, FAIR, bound=True, more=DRAWN),
    "cluster03-1m": Row(C03, 16, FAIR, bound=True, pass_every="1m", more=DRAWN),
    "promises-03": Row(
        C03,
        16,
        {"promised_ratio": 0.40, "deadline_ratio": 0.875, "promises_broken": -0.5},
        policy="lst-promises",
        more=DRAWN,
    ),
    "promises-04": Row(
        C04,
        64,
        {"promised_ratio": 0.85, "deadline_ratio": 0.986, "promises_broken": -0.5},
        seeds=1,
        policy="lst-promises",
        more=DRAWN,
    ),
    "cluster03-13": Row(C03, 13, {"deadline_ratio": 0.850}, bound=True, more=DRAWN),
    "cluster03-20": Row(C03, 20, {"deadline_ratio": 0.917}, bound=True, more=DRAWN),
    "cluster04": Row(
        C04, 64, {"deadline_ratio": 0.996, "gpu_hour_ratio": 0.97, "wide_met": 435}, seeds=1, more=DRAWN
    ),
    "cluster04-48": Row(C04, 48, {}, seeds=1, more=DRAWN),
    "cluster04-48-edf": Row(C04, 48, {}, seeds=1, policy="edf-preempt-late-drop", more=DRAWN),
    "slo": Row(
        SLO,
        120,
        {"deadline_ratio": 0.994, "gpu_hour_ratio": 0.80, "wide_met": 82, "preemptions_per_job": -0.30},
        seeds=1,
    ),
    "mix1": Row(MIX1, 120, {"deadline_ratio": 0.999, "best_effort_fruitless_most": -10}, seeds=1),
    "mix1-easy": Row(MIX1, 120, {}, seeds=1, policy="easy"),
    "sdsc": Row(
        SDSC, 144, {"deadline_ratio": 0.95}, seeds=1, more={"deadlines": "sdsc", "estimates": "last-two"}
    ),
}
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "nobody shed": {"shedding": False},
    "the shed count once": {"shed_weight": 1},
    "the late keep their band": {"late": True},
    "no reservations": {"reserve_most": 0},
    "guests on what a reservation leaves of a node": {"reserve_whole": False},
    "reservations at the last moment too": {"reserve_early": False},
    "the late share": {"share_late": True},
    "plain slack in the order": {"overhead_share": 0.0},
    "trigger without a share of the run time": {"trigger_share": 0.0},
    "no wait for checkpoints": {"unsaved_most": 1 << 40},
    "no margin of harm": {"harm_margin": 0},
}
"""Rules of `lst` by what is changed of them in `model.Config`."""


def options(row: Row, folder: pathlib.Path) -> Iterator[command.Options]:
    """What a row replays: the acceptance settings, passes as far apart as an operator's, no verdicts."""
    form, _, path = row.trace.partition(":")
    shared = {"deadlines": "file", **row.more}
    for seed in range(1, row.seeds + 1):
        yield command.Options(
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
        told = output.as_json(command.evaluated(one, lambda _: None))
        print(
            f"  seed {one.seed}: {told['deadline_ratio']}, {told['cpu_s']:.0f} s", file=sys.stderr, flush=True
        )
        yield {key: told[key] for key in KEPT}


def interval(found: Sequence[Mapping[str, Any]], key: str) -> paired.Interval | None:
    """The mean of a figure and how sure it is; None where a replay has none."""
    values = [one[key] for one in found]
    return None if None in values else paired.interval([float(value) for value in values])


def missed(row: Row, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures whose floors a row has not reached."""
    names: list[str] = []
    for key, floor in row.floors.items():
        mean = interval(found, key)
        if mean is None or not (mean.mean >= floor if floor >= 0 else mean.mean <= -floor):
            names.append(key)
    return names


COLUMNS = (
    ("deadline_ratio", "ratio", 4), ("gpu_hour_ratio", "GPU-h", 3), ("wide_met", "wide", 1),
    ("preemptions_per_job", "suspensions a job", 3), ("lost_gpu_share", "lost", 4),
    ("share_of_bound", "of the bound", 3),
)  # fmt: skip


def lines(record: Mapping[str, Any]) -> Iterator[str]:
    """The record as tables in Markdown: means ± half of the 95 % interval over seeds, bold below a floor."""
    yield "| row | seeds | " + " | ".join(title for _, title, _ in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for name, row in ROWS.items():
        if name in record["rows"]:
            yield _line(f"`{name}`", row, record["rows"][name])
    for name, variants in record["ablations"].items():
        yield ""
        yield f"| `{name}`, seeds | " + " | ".join(title for _, title, _ in COLUMNS[:-1]) + " |"
        yield "|---" * len(COLUMNS) + "|"
        for words, found in variants.items():
            cells = [_cell(found, key, digits) for key, _, digits in COLUMNS[:-1]]
            yield f"| {words}, {len(found)} | " + " | ".join(cells) + " |"


def _line(name: str, row: Row, found: Sequence[Mapping[str, Any]]) -> str:
    below = missed(row, found)
    cells = [_cell(found, key, digits) for key, _, digits in COLUMNS]
    told = [f"**{cell}**" if key in below else cell for cell, (key, _, _) in zip(cells, COLUMNS, strict=True)]
    return f"| {name} | {len(found)} | " + " | ".join(told) + " |"


def _cell(found: Sequence[Mapping[str, Any]], key: str, digits: int) -> str:
    mean = interval(found, key)
    if mean is None:
        return "-"
    sure = "" if mean.half is None else f" ± {mean.half:.{digits}f}"
    return f"{mean.mean:.{digits}f}{sure}"


def _changed(row: Row, words: str) -> Row:
    """The same row under a policy of its own, with one rule changed."""
    over, base = dict(ABLATIONS[words]), policies.named(row.policy)
    if over.pop("late", False):
        over["switches"] = policies.switches.Switches(demotes_late=False)
    made = policies.Policy(words, words, {**base.config, **over}, base.queue)
    policies._BY_NAME[words] = made  # of this process alone
    return dataclasses.replace(row, policy=words)


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
        return 0
    if asked.folder is None or not asked.folder.is_dir():
        parser.error("FOLDER must be the folder with the traces (docs/traces.md says where they are)")
    if unknown := [name for name in asked.rows if name not in ROWS]:
        parser.error(f"{', '.join(unknown)}: no such row; there are {', '.join(ROWS)}")
    if asked.ablate:
        row = ROWS[asked.ablate]
        row = dataclasses.replace(row, floors={}, seeds=asked.seeds or row.seeds, bound=False)
        for words in asked.only or ABLATIONS:
            print(words, file=sys.stderr)
            variants = record["ablations"].setdefault(asked.ablate, {})
            _put(asked.record, record, variants, words, replayed(_changed(row, words), asked.folder))
        return 0
    below = 0
    for name in asked.rows or ROWS:
        print(name, file=sys.stderr)
        _put(asked.record, record, record["rows"], name, replayed(ROWS[name], asked.folder))
        names = missed(ROWS[name], record["rows"][name])
        below += len(names)
        print(_line(name, ROWS[name], record["rows"][name]), *names, flush=True)
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
