"""Replay the rows of the acceptance table in docs/evaluation.md and say which floors are reached.

    python hack/acceptance.py FOLDER [ROW ...]

FOLDER has the traces under the names of docs/traces.md. A row takes minutes to an hour of CPU time.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
from dataclasses import dataclass, field
from typing import Any

from rich import console

from lstqueue.evaluate import command, parallel

ITP, PHILLY = "elasticflow-itp", "chronus-philly"
DRAWN = {"deadlines": "uniform:1.1:3.0"}


@dataclass(frozen=True)
class Row:
    """A trace and a cluster, and what must be reached in the mean over seeds; below zero: at most that."""

    trace: str
    nodes: int
    floors: dict[str, float]
    seeds: int = 5
    policy: str = "lst"
    more: dict[str, Any] = field(default_factory=dict)


C03, C04 = f"elasticflow:{ITP}/cluster03.csv.gz", f"elasticflow:{ITP}/cluster04.csv.gz"
SLO = f"chronus:{PHILLY}/trace_job_Philly_SLO.csv.gz"
MIX1 = f"chronus:{PHILLY}/trace_job_Philly_MIX1.csv.gz"
SDSC = "swf:pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz"
FAIR = {"deadline_ratio": 0.885, "gpu_hour_ratio": 0.64, "wide_met": 114, "preemptions_per_job": -0.35}
ROWS = {
    "cluster03": Row(C03, 16, FAIR | {"lost_gpu_share": -0.01}, more=DRAWN),
    "cluster03-13": Row(C03, 13, {"deadline_ratio": 0.850}, more=DRAWN),
    "cluster03-20": Row(C03, 20, {"deadline_ratio": 0.917}, more=DRAWN),
    "cluster04": Row(
        C04, 64, {"deadline_ratio": 0.996, "gpu_hour_ratio": 0.97, "wide_met": 435}, seeds=1, more=DRAWN
    ),
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


def options(row: Row, folder: pathlib.Path) -> list[command.Options]:
    """What a row replays: the acceptance settings, passes at least a minute apart, no verdicts."""
    form, _, path = row.trace.partition(":")
    shared = {"deadlines": "file", **row.more}
    return [
        command.Options(
            trace=f"{form}:{folder / path}",
            nodes=row.nodes,
            gpus_per_node=8,
            policy=row.policy,
            seed=seed,
            settings="acceptance",
            pass_every="1m",
            verdicts=False,
            invariants=False,
            **shared,
        )
        for seed in range(1, row.seeds + 1)
    ]


def main() -> int:
    """Run the rows that are named, or all; return how many floors are not reached."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    folder, missed = pathlib.Path(sys.argv[1]), 0
    for name in sys.argv[2:] or ROWS:
        row = ROWS[name]
        found = parallel.replay_all(
            options(row, folder), processes=os.cpu_count() or 1, terminal=console.Console(stderr=True)
        )
        for key in dict.fromkeys([*row.floors, "deadline_ratio", "best_effort_jct_mean_s", "cpu_s"]):
            values = [one[key] for one in found if one[key] is not None]
            if not values:
                continue
            mean, floor = statistics.fmean(values), row.floors.get(key)
            words = ""
            if floor is not None:
                reached = mean >= floor if floor >= 0 else mean <= -floor
                missed += not reached
                words = (
                    f"{'at least' if floor >= 0 else 'at most'} {abs(floor)}: {'yes' if reached else 'NO'}"
                )
            print(
                f"{name:14} {key:28} {mean:10.4f} ({min(values):.4f}-{max(values):.4f}) {words}", flush=True
            )
    return missed


if __name__ == "__main__":
    sys.exit(main())
