"""A slice of the acceptance table, and that the page shows the record that was made of the whole."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import pathlib
import sys
from importlib import resources
from types import ModuleType
from typing import Any

import pytest

from cases import trace_files
from lstqueue.evaluate import evaluation, options, output, policies

ROOT = pathlib.Path(__file__).parents[2]


def acceptance() -> ModuleType:
    found = importlib.util.spec_from_file_location("acceptance", ROOT / "hack" / "acceptance.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules[found.name] = made
    found.loader.exec_module(made)
    return made


def replayed(trace: str, policy: str, **more: Any) -> dict[str, Any]:
    asked = options.One(
        trace=trace, gpus_per_node=8, policy=policy, deadlines="uniform:1.1:3.0", seed=1,
        settings="acceptance", pass_every="1m", verdicts=False, invariants=False, **more,
    )  # fmt: skip
    return output.as_json(evaluation.evaluated(asked, lambda _: None))


@pytest.fixture
def checked_in(tmp_path: pathlib.Path) -> str:
    """The slice of cluster03 that the demo has, as its trace has it."""
    text = resources.files("lstqueue.demo.data").joinpath("elasticflow-cluster03-slice.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    lines = ["job_id,submission_time,deadline,num_gpu,duration"]
    lines += [
        f"{number},{row['submission_time']},0,{row['num_gpu']},{row['duration']}"
        for number, row in enumerate(rows)
    ]
    path = tmp_path / "slice.csv"
    path.write_text("\n".join(lines) + "\n")
    return f"elasticflow:{path}"


def test_a_slice_that_is_checked_in_reaches_its_floors(checked_in: str) -> None:
    ours = replayed(checked_in, "lst", nodes=8, limit=100)
    assert ours["deadline_ratio"] >= 0.96
    assert ours["wide_met"] >= 10
    assert ours["preemptions_per_job"] <= 0.35
    assert ours["lost_gpu_share"] <= 0.01


def test_a_slice_of_the_published_trace_reaches_its_floors() -> None:
    trace = f"elasticflow:{trace_files.real('elasticflow-itp/cluster03.csv.gz')}"
    ours = replayed(trace, "lst", nodes=12, limit=400)
    assert ours["deadline_ratio"] >= 0.9875
    assert ours["wide_met"] >= 36
    assert ours["preemptions_per_job"] <= 0.25
    assert ours["lost_gpu_share"] <= 0.01


def test_the_page_shows_what_is_recorded() -> None:
    made = acceptance()
    record = json.loads(made.RECORD.read_text())
    page = (ROOT / "docs" / "evaluation.md").read_text()
    missing = [line for line in made.lines(record) if line not in page]
    assert missing == [], "put what `python hack/acceptance.py --print` says into docs/evaluation.md"


def test_a_floor_is_of_each_seed_or_of_another_row_where_it_says_so() -> None:
    made = acceptance()
    found = [{"ratio": 0.90}, {"ratio": 0.86}]
    assert made.at_least("ratio", 0.88).holds(found, {})
    assert not made.at_least("ratio", 0.88, each=True).holds(found, {})
    assert made.at_most("ratio", 1.3, row="easy").holds(found, {"easy": [{"ratio": 0.7}]})
    assert not made.at_most("ratio", 1.3, row="easy").holds(found, {"easy": [{"ratio": 0.6}]})
    assert not made.at_most("ratio", 1.3, row="easy").holds(found, {})
    assert not made.at_most("absent", 0).holds(found, {})


def test_a_row_of_another_engine_or_with_too_few_seeds_is_said_to_be() -> None:
    made = acceptance()
    seed = dict.fromkeys(made.KEPT, 1.0)
    rows = {"slo": [seed], "cluster03": [seed]}
    stamps = {"slo": {"engine": made.fingerprint()}, "cluster03": {"engine": "0"}}
    record = {"rows": rows, "stamps": stamps, "ablations": {}}
    assert [line.partition(" (")[0] for line in made.stale(record)] == ["cluster03: of another engine"]
    assert next(made.stale({"rows": rows})).startswith("slo: recorded without a stamp")
    lines = {line.split(" | ")[0]: line for line in made.lines(record)}
    assert "| 1 of 5: incomplete |" in lines["| `cluster03`"]
    assert "| 1 |" in next(line for name, line in lines.items() if "slo" in name)


def test_every_ablation_is_a_policy() -> None:
    for name in acceptance().ABLATIONS.values():
        assert policies.named(name).name == name
