"""`lstqueue evaluate run` at the terminal: what it refuses, what it prints, and the figures it writes."""

import gzip
import json
import pathlib

import pytest
from click import testing

from cases import trace_files
from lstqueue import cli
from lstqueue.evaluate import options, policies, setup

KEYS = {
    "policy", "trace", "seed", "jobs", "deadline_jobs", "met", "deadline_ratio", "feasible_ratio",
    "gpu_hour_ratio", "bound", "share_of_bound", "preemptions_per_job", "lost_gpu_share",
    "best_effort_jct_mean_s", "verdicts", "promises_broken", "wall_s", "virtual_s", "speedup", "peak_rss_mib",
    "digest",
}  # fmt: skip
HEAD = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """Made up: 30 jobs of 1 to 16 GPUs, one every ten minutes, and one that no small cluster holds."""
    rows = [HEAD]
    for index in range(30):
        gpus, seconds = (1, 2, 4, 8, 16)[index % 5], 600 + 577 * index % 7200
        rows.append(f"job-{index},{600 * index},1,m,{600 * index + 2 * seconds},1,{gpus},{seconds}")
    rows.append("wide,20000,1,m,40000,1,64,5000")
    path = tmp_path / "made-up.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return f"elasticflow:{path}"


def _run(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["evaluate", "run", *arguments])


def test_a_replay_prints_a_table_and_writes_the_figures(trace: str, tmp_path: pathlib.Path) -> None:
    path, log = tmp_path / "figures.json", tmp_path / "events.log"
    result = _run("--trace", trace, "--nodes", "2", "--json", str(path), "--log", str(log))
    assert result.exit_code == 0, result.output
    assert "1 row left out: wider than the cluster" in result.output
    assert "deadlines met" in result.output
    found = json.loads(path.read_text())
    assert found.keys() >= KEYS
    assert (found["policy"], found["trace"], found["seed"]) == ("lst", trace, 1)
    assert found["jobs"] == found["completed"] == 30
    assert found["deadline_ratio"] == pytest.approx(found["met"] / 30, abs=1e-6)
    assert found["invariant_checks"] > 100
    assert found["invariants_broken"] == 0
    assert found["dropped"] == {"wider than the cluster": 1}
    assert len(log.read_text().splitlines()) >= 4 * 30


def test_the_same_options_give_the_same_digest(trace: str, tmp_path: pathlib.Path) -> None:
    digests = []
    for seed in ("1", "1", "2"):
        path = tmp_path / "figures.json"
        drawn = ("--deadlines", "uniform:1.1:3.0", "--seed", seed)
        result = _run("--trace", trace, "--nodes", "2", *drawn, "--json", str(path))
        assert result.exit_code == 0, result.output
        digests.append(json.loads(path.read_text())["digest"])
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("policy", [policy.name for policy in policies.ALL])
def test_every_policy_can_be_run(trace: str, policy: str) -> None:
    # naive-lst suspends somebody in every pass, so few jobs keep it busy for long.
    few = "4" if policy == "naive-lst" else "20"
    rare = ("--limit", few, "--no-verdicts", "--pass-every", "1m")
    result = _run("--trace", trace, "--nodes", "2", "--policy", policy, *rare)
    assert result.exit_code == 0, result.output
    assert "0 broken" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "best"), "'best' is no policy; it must be one of lst, "),
        (("--deadlines", "soon"), "'soon' is no rule for deadlines"),
        (("--estimates", "guess"), "'guess' is no model of estimates"),
        (("--launch", "soon"), "Invalid value for --launch: 'soon' is not a duration"),
        (("--pass-every", "1h"), "--pass-every 1h is longer than claims last"),
        (("--pass-every", "-1s"), "Invalid value for --pass-every"),
        (("--grace", "1s", "--termination", "2s"), "it must be at most the grace, 1000 ms"),
        (("--json", "missing/figures.json"), "folder 'missing' does not exist; create it"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(trace: str, arguments: tuple[str, ...], words: str) -> None:
    result = _run("--trace", trace, "--nodes", "2", *arguments)
    assert result.exit_code in (1, 2)
    assert words in result.output


def test_a_trace_that_is_not_there_is_refused() -> None:
    result = _run("--trace", "elasticflow:missing.csv", "--nodes", "2")
    assert result.exit_code == 1
    assert "missing.csv" in result.output


def test_the_acceptance_settings_cost_only_restarts() -> None:
    asked = options.Loaded(nodes=2, settings="acceptance", costs={"launch": "5s"})
    costs = setup.costs(asked)
    assert (costs.launch, costs.restore, costs.checkpoint) == (5_000, 120_000, 1_800_000)
    assert costs.grace == costs.termination == costs.bind == costs.lag == 0


def test_a_slice_of_a_recorded_trace_keeps_its_deadlines(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "figures.json"
    trace = f"elasticflow:{trace_files.real('elasticflow-itp/cluster03.csv.gz')}"
    drawn = ("--deadlines", "uniform:1.1:3.0", "--settings", "acceptance", "--limit", "300")
    result = _run("--trace", trace, "--nodes", "16", *drawn, "--no-verdicts", "--json", str(path))
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    assert found["deadline_ratio"] >= 0.99
    assert found["wide_met"] == found["wide_jobs"] == 34
