"""Replay a trace on a made interconnect under several placements, and print the table of docs/evaluation.md.

    python hack/placement.py FOLDER [TOPOLOGY] [--nodes N] [--trace NAME] [--seeds N] [--limit N]

FOLDER has the traces under the names of docs/traces.md. Gangs on several nodes communicate for 0, 15 and 30 %
of a step; with 0 no place makes anybody slower: what differs then is how well gangs are packed, and luck.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
from typing import Any

from lstqueue.evaluate import evaluation, options, output

SHARES = (0.0, 0.15, 0.3)
PLACINGS: dict[str, dict[str, Any]] = {
    "searched (`lst`)": {"policy": "lst"},
    "searched, waits for a leaf group": {"policy": "lst", "prefer": "leafgroup"},
    "tightest nodes": {"policy": "lst-tightest"},
    "freest nodes": {"policy": "lst-most-free"},
    "anywhere": {"policy": "lst-random"},
}


def replayed(asked: argparse.Namespace, share: float, seed: int, placing: dict[str, Any]) -> dict[str, Any]:
    """The figures of one replay."""
    folder = pathlib.Path(asked.folder) / "elasticflow-itp"
    one = options.One(
        trace=f"elasticflow:{folder / asked.trace}.csv.gz",
        nodes=asked.nodes,
        gpus_per_node=8,
        deadlines="uniform:1.1:3.0",
        settings="acceptance",
        seed=seed,
        limit=asked.limit,
        verdicts=False,
        invariants=False,
        topology=asked.topology,
        communication=share,
        **placing,
    )
    return output.as_json(evaluation.evaluated(one, lambda _: None))


def main() -> None:
    """Replay all, and print a row for each placement and share as soon as it is known."""
    reader = argparse.ArgumentParser(description="Compare placements on an interconnect.")
    reader.add_argument("folder")
    reader.add_argument("topology", nargs="?", default="clos:4:2:4")
    reader.add_argument("--nodes", type=int, default=16)
    reader.add_argument("--trace", default="cluster03")
    reader.add_argument("--seeds", type=int, default=2)
    reader.add_argument("--limit", type=int)
    reader.add_argument("--shares", type=float, nargs="+", default=SHARES)
    asked = reader.parse_args()
    print("| communication | placement | slowdown of gangs, mean | p95 | deadlines met | wide met |")
    print("|---|---|---|---|---|---|", flush=True)
    for share in asked.shares:
        for name, placing in PLACINGS.items():
            if not share and "prefer" in placing:
                continue  # nobody waits where no place is slower
            several = [replayed(asked, share, seed, placing) for seed in range(1, asked.seeds + 1)]
            slower = [one["place_slowdown"] for one in several]
            row = (
                f"{share:.0%}",
                name,
                f"{statistics.fmean(one['mean'] for one in slower):.3f}",
                f"{statistics.fmean(one['p95'] for one in slower):.2f}",
                f"{statistics.fmean(one['deadline_ratio'] for one in several):.4f}",
                f"{statistics.fmean(one['wide_met'] for one in several):.1f}",
            )
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
