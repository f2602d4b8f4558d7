"""`compare` and `sweep` at the terminal: how sure they claim to be, of which jobs, and what can be read."""

import json
import pathlib

import pytest
from click import testing

from lstqueue import cli
from lstqueue.evaluate import tabled

LONG = ("edf-preempt", "edf-preempt-late-drop")


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """Made up: 8 jobs of 1, 8 or 24 GPUs, due after twice their run time."""
    rows = ["key,submit_ms,duration_ms,gpus,deadline_ms"]
    for index in range(8):
        gpus, at, length = (1, 8, 24, 8)[index % 4], 600_000 * index, 60_000 * (30 + 17 * index)
        rows.append(f"job-{index},{at},{length},{gpus},{at + 2 * length}")
    path = tmp_path / "made-up.csv"
    path.write_text("\n".join(rows) + "\n")
    return f"lstqueue:{path}"


def _run(command: str, trace: str, *arguments: str) -> testing.Result:
    asked = ["evaluate", command, "--trace", trace, "--no-verdicts", *arguments]
    if command != "run":
        asked += ["--processes", "1"]
    return testing.CliRunner().invoke(cli.main, asked)


def test_where_nothing_is_drawn_one_seed_is_run_and_nothing_is_claimed(
    trace: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "found.json"
    two = ("--policy", LONG[1], "--policy", LONG[0], "--seeds", "5", "--nodes", "2")
    result = _run("compare", trace, *two, "--json", str(path))
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "±" not in said
    assert "*" not in said
    assert "Nothing here is drawn from a seed, so one was replayed" in said
    assert "6 jobs, 6 with a deadline; 2 left out: wider than the cluster." in said
    found = json.loads(path.read_text())
    assert (found["seeds"], found["drawn"], len(found["runs"])) == (1, False, 2)
    assert all(name in result.output for name in LONG)


def test_a_sweep_of_nodes_is_of_the_jobs_that_fit_the_fewest(trace: str) -> None:
    result = _run("sweep", trace, "--policy", "fifo", "--vary", "nodes=3,2", "--seeds", "1", "--limit", "4")
    assert result.exit_code == 0, result.output
    for value in (3, 2):
        assert f"--nodes {value}: 3 jobs, 3 with a deadline; 1 left out" in result.output


def test_promises_are_shown_where_a_policy_makes_any(trace: str, tmp_path: pathlib.Path) -> None:
    path, two = tmp_path / "found.json", ("--policy", "fifo", "--policy", "lst-promises")
    result = _run("compare", trace, *two, "--nodes", "2", "--json", str(path))
    assert result.exit_code == 0, result.output
    assert "promised" in result.output
    fifo, promises = json.loads(path.read_text())["traces"][trace].values()
    assert (fifo["promised_ratio"], fifo["promises_broken"]) == (None, None)
    assert promises["promised_ratio"]["mean"] > 0
    assert promises["promises_broken"]["mean"] == 0


@pytest.mark.parametrize(
    ("command", "estimates", "flatters"),
    [("compare", (), True), ("run", (), True), ("run", ("--estimates", "last-two"), False)],
)
def test_exact_run_times_of_ones_own_jobs_are_said_to_flatter(
    trace: str, command: str, estimates: tuple[str, ...], flatters: bool
) -> None:
    words = "Estimates are exact: the policy is told how long each job will run"
    result = _run(command, trace, "--policy", "fifo", "--nodes", "2", *estimates)
    assert result.exit_code == 0, result.output
    assert (words in " ".join(result.output.split())) is flatters


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nodes", "99", "--vary", "nodes=2,3"), "--nodes is what --vary varies; leave one of them out"),
        (("--nodes", "2", "--vary", "estimates=exact,soon"), "'soon' is no model of estimates"),
        (("--nodes", "2", "--vary", "checkpoint=30m,soon"), "'soon'"),
        (("--nodes", "2", "--vary", "drains=1,99999"), "it must be 0 to 10000"),
    ],
)
def test_every_value_of_a_sweep_is_read_before_any_replay(
    trace: str, arguments: tuple[str, ...], words: str
) -> None:
    result = _run("sweep", trace, "--policy", "fifo", *arguments)
    assert result.exit_code != 0
    assert "replays" not in result.output
    assert words in " ".join(result.output.replace("│", "").split())


def test_what_does_not_fit_beside_goes_below_and_nothing_is_cut() -> None:
    cell = "83.33 ± 2.00\n-20.00 ± 10.00 *"
    rows = [(name, [cell] * 7) for name in LONG]
    made = list(tabled.tables("title", "how", ["deadlines met %"] * 7, rows, 80))
    assert [len(table.columns) - 1 for table in made] == [2, 2, 2, 1]
    assert [table.caption for table in made] == [None, None, None, "how"]
