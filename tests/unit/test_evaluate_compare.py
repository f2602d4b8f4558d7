"""`lstqueue evaluate compare` and `bound` at the terminal: what they refuse, print and write."""

import gzip
import json
import pathlib

import pytest
from click import testing

from cases.replays import EPOCH, MINUTE, work
from lstqueue import cli
from lstqueue.evaluate import workload

HEAD = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """Made up: 24 jobs of 1 to 16 GPUs, one every ten minutes."""
    rows = [HEAD]
    for index in range(24):
        gpus, seconds = (1, 2, 4, 8, 16)[index % 5], 1800 + 577 * index % 7200
        rows.append(f"job-{index},{600 * index},1,m,{600 * index + 2 * seconds},1,{gpus},{seconds}")
    path = tmp_path / "made-up.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return f"elasticflow:{path}"


def _run(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["evaluate", *arguments])


QUICK = ("--nodes", "2", "--pass-every", "1m", "--no-verdicts", "--deadlines", "uniform:1.1:3.0")


def test_policies_are_compared_seed_by_seed_and_each_replay_is_what_run_gives(
    trace: str, tmp_path: pathlib.Path
) -> None:
    path, single = tmp_path / "compared.json", tmp_path / "single.json"
    two = ("--policy", "lst", "--policy", "fifo", "--seeds", "2", "--shake", "5m", "--failures", "20")
    result = _run("compare", "--trace", trace, *QUICK, *two, "--processes", "2", "--json", str(path))
    assert result.exit_code == 0, result.output
    assert "difference from lst, paired by seed" in " ".join(result.output.split())
    found = json.loads(path.read_text())
    assert (found["first"], found["seeds"], len(found["runs"])) == ("lst", 2, 4)
    fifo, lst = found["traces"][trace]["fifo"], found["traces"][trace]["lst"]
    above = fifo["deadline_ratio"]["above_first"]
    pairs = zip(fifo["deadline_ratio"]["values"], lst["deadline_ratio"]["values"], strict=True)
    assert above["values"] == pytest.approx([mine - other for mine, other in pairs])
    assert "above_first" not in lst["deadline_ratio"]
    again = ("--policy", "fifo", "--seed", "2", "--shake", "5m", "--failures", "20")
    assert _run("run", "--trace", trace, *QUICK, *again, "--json", str(single)).exit_code == 0
    (same,) = [one for one in found["runs"] if (one["policy"], one["seed"]) == ("fifo", 2)]
    assert same["digest"] == json.loads(single.read_text())["digest"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "best"), "'best' is no policy; it must be one of lst, "),
        (("--policy", "lst", "--policy", "lst"), "one is given twice; give it once"),
        (("--policy", "lst", "--deadlines", "soon"), "'soon' is no rule for deadlines"),
        (("--policy", "lst", "--json", "/nowhere/at/all.json"), "folder '/nowhere/at' does not exist"),
        ((), "Missing option '--policy'"),
    ],
)
def test_what_cannot_be_compared_is_refused(trace: str, arguments: tuple[str, ...], words: str) -> None:
    result = _run("compare", "--trace", trace, "--nodes", "2", "--seeds", "1", *arguments)
    assert result.exit_code != 0
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--failures", "20000"), "rates.failures is 20000.0; it must be 0 to 10000"),
        (("--repair", "soon"), "Invalid value for --repair"),
        (("--shake", "much"), "Invalid value for --shake"),
        (("--maintenance", "7d"), "Invalid value for --maintenance"),
        (("--maintenance", "7d:4h:all"), "has 'all' as its share of the nodes; write a number such as 0.25"),
        (("--maintenance", "4h:7d"), "it must be above 0 and below their distance"),
    ],
)
def test_mishaps_and_shakes_that_cannot_be_are_refused(
    trace: str, arguments: tuple[str, ...], words: str
) -> None:
    result = _run("run", "--trace", trace, "--nodes", "2", *arguments)
    assert result.exit_code != 0
    assert words in " ".join(result.output.split())


def test_the_help_says_where_formats_are_told() -> None:
    for command in ("run", "compare", "bound"):
        assert "docs/traces.md" in _run(command, "--help").output


def test_bounds_are_printed_and_written(trace: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
    pytest.importorskip("ortools", reason="the extra `evaluate` brings the solvers")
    path = tmp_path / "bounds.json"
    more = ("--deadlines", "uniform:1.1:3.0", "--exact", "--json", str(path))
    result = _run("bound", "--trace", trace, "--nodes", "2", *more)
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())["bounds"]
    assert found.keys() == {"fluid", "preemptive", "rigid"}
    assert 1.0 >= found["fluid"]["share"] >= found["preemptive"]["share"] >= found["rigid"]["share"] > 0.0
    assert found["rigid"]["found"] <= found["rigid"]["met"]
    hours = _run("bound", "--trace", trace, "--nodes", "2", "--weight", "gpu-hours")
    assert hours.exit_code == 0, hours.output
    assert "gpu-hours" in hours.output


def test_a_bound_says_which_jobs_it_is_not_of(trace: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
    path = tmp_path / "bounds.json"
    more = ("--best-effort", "0.5", "--warm-up", "30m", "--json", str(path))
    result = _run("bound", "--trace", trace, "--nodes", "1", *more)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    found = json.loads(path.read_text())
    free = found["jobs"] - found["deadline_jobs"]
    assert 0 < free < found["jobs"]
    assert found["dropped"] == {"wider than the cluster": 4}
    assert (found["jobs"], found["jobs_not_counted"]) == (17, 3)
    assert f"{found['deadline_jobs']} of 17 jobs have a deadline; {free} left out: without one" in said
    assert "3 left out: submitted within --warm-up or --cool-down." in said
    assert "4 left out: wider than the cluster." in said


def test_every_command_gives_the_same_bound_for_the_same_options(trace: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
    one, run, many = (tmp_path / name for name in ("bound.json", "run.json", "compared.json"))
    shared = ("--trace", trace, "--nodes", "2", "--deadlines", "uniform:1.1:3.0", "--warm-up", "30m")
    assert _run("bound", *shared, "--launch", "2m", "--json", str(one)).exit_code == 0
    quick = ("--no-verdicts", "--bound", "--launch", "2m")
    assert _run("run", *shared, *quick, "--json", str(run)).exit_code == 0
    two = ("--policy", "fifo", "--policy", "easy", "--seeds", "1", "--json", str(many))
    result = _run("compare", *shared, *quick, *two)
    assert result.exit_code == 0, result.output
    bounds = {round(found["bound"], 5) for found in json.loads(many.read_text())["runs"]}
    assert bounds == {round(json.loads(run.read_text())["bound"], 5)}
    assert bounds == {round(json.loads(one.read_text())["bounds"]["fluid"]["share"], 5)}
    assert all(found["share_of_bound"] is not None for found in json.loads(many.read_text())["runs"])


def test_shaken_arrivals_move_deadlines_with_them_and_depend_on_seed_and_row_alone() -> None:
    works = [work(f"j{row}", at=row * MINUTE, due=60 * MINUTE, row=row) for row in range(40)]
    load = workload.Workload("made up", workload.ordered(works))
    moved = load.shaken(10 * MINUTE, seed=1)
    assert moved == load.shaken(10 * MINUTE, seed=1)
    assert moved != load.shaken(10 * MINUTE, seed=2)
    assert load.shaken(0, seed=1) is load
    assert list(moved.works) == sorted(moved.works, key=lambda one: (one.submit, one.row))
    before = {one.key: one for one in works}
    for one in moved.works:
        assert one.deadline is not None
        assert one.deadline - one.submit == 60 * MINUTE
        assert abs(one.submit - before[one.key].submit) <= 10 * MINUTE
        assert one.submit >= EPOCH
    few = workload.Workload("made up", tuple(works[20:])).shaken(10 * MINUTE, seed=1)
    assert set(few.works) <= set(moved.works)
