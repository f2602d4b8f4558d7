"""On no published trace, cluster or seed does a replay meet more than the fluid bound."""

from __future__ import annotations

import pytest

from cases import trace_files
from lstqueue.evaluate import evaluation, options

ITP, PHILLY = "elasticflow-itp", "chronus-philly"
DRAWN = "uniform:1.1:3.0"
TRACES = [
    (f"elasticflow:{ITP}/cluster01.csv.gz", DRAWN),
    (f"elasticflow:{ITP}/cluster02.csv.gz", DRAWN),
    (f"elasticflow:{ITP}/cluster03.csv.gz", DRAWN),
    (f"elasticflow:{ITP}/cluster04.csv.gz", DRAWN),
    (f"elasticflow:{ITP}/cluster10.csv.gz", DRAWN),
    (f"chronus:{PHILLY}/trace_job_Philly_SLO.csv.gz", "file"),
    (f"chronus:{PHILLY}/trace_job_Philly_MIX1.csv.gz", "file"),
    ("philly:philly-jobs/philly.csv.gz", DRAWN),
    ("swf:pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz", "sdsc"),
]
SLICE = 100
"""Jobs from each trace's begin."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("nodes", [4, 12])
@pytest.mark.parametrize(("trace", "deadlines"), TRACES)
def test_no_policy_meets_more_of_a_trace_than_the_fluid_bound(
    trace: str, deadlines: str, nodes: int, seed: int
) -> None:
    form, _, path = trace.partition(":")
    for policy in ("lst", "edf-preempt-late-drop"):
        asked = options.One(
            trace=f"{form}:{trace_files.real(path)}",
            nodes=nodes,
            gpus_per_node=8,
            policy=policy,
            deadlines=deadlines,
            seed=seed,
            settings="acceptance",
            pass_every="1m",
            limit=SLICE,
            verdicts=False,
            invariants=False,
            bound=True,
        )
        found = evaluation.evaluated(asked, lambda _: None)
        assert found.bound is not None
        ratio = found.seen.deadline_ratio
        assert ratio is None or ratio <= found.bound + 1e-9
