"""What one command of `lstqueue evaluate` may be told, all of them may, with the same default."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import click
import pytest
from click.testing import CliRunner

from lstqueue import cli, cli_evaluate
from lstqueue.evaluate import lives, options

RUN, COMPARE, SWEEP, BOUND = cli_evaluate.run, cli_evaluate.compare, cli_evaluate.sweep, cli_evaluate.bound


def told(command: click.Command) -> dict[str, object]:
    """Options of a command, by parameter, with their defaults."""
    found = [one for one in command.params if isinstance(one, click.Option)]
    return {one.name or "": one.default for one in found}


@pytest.mark.parametrize("command", [RUN, COMPARE, SWEEP], ids=str)
def test_every_command_that_replays_takes_what_a_replay_may_be_told(command: click.Command) -> None:
    wanted = {**options.DEFAULTS, **dict.fromkeys(options.COSTS)}
    del wanted["fits"]  # set by a sweep, by nobody else
    found = told(command)
    assert {name: found.get(name, "is missing") for name in wanted} == wanted


def test_what_the_commands_take_beside_that_is_their_own() -> None:
    common = {*options.DEFAULTS, *options.COSTS, "bound", "json_path", "report_path"}
    assert told(RUN).keys() - common == {"trace", "policy", "seed", "log_path", "through"}
    several = {"policy_names", "seeds", "processes"}
    assert told(COMPARE).keys() - common == {*several, "trace_specs"}
    assert told(SWEEP).keys() - common == {*several, "trace_spec", "vary"}


def test_a_bound_takes_what_says_which_jobs_come_and_what_a_start_costs() -> None:
    wanted = {one.name for one in dataclasses.fields(options.Loaded)} - {"fits", "costs"}
    own = {"trace", "seed", "weight", "bin_width", "exact", "json_path"}
    assert told(BOUND).keys() == wanted | own | {"launch", "bind"}


def test_every_cost_of_the_world_is_an_option() -> None:
    assert {one.name for one in dataclasses.fields(lives.Costs)} == {*options.COSTS, "saves_on_suspend"}


@pytest.fixture
def asked(tmp_path: pathlib.Path) -> list[str]:
    """Two teams that lend each other eight GPUs each; five jobs of one, then two of the other."""
    trace, queues = tmp_path / "trace.csv", tmp_path / "queues.yaml"
    rows = [f"a{index},{index * 60_000},3600000,8,ada" for index in range(5)]
    rows += ["b1,1200000,3600000,8,bob", "b2,1300000,600000,8,bob"]
    trace.write_text("\n".join(["key,submit_ms,duration_ms,gpus,user", *rows]) + "\n")
    queues.write_text("cohort: ml\nqueues: [{name: red, gpus: 8, users: [ada]}, {name: blue, gpus: 8}]\n")
    quick = ["--pass-every", "1m", "--deadlines", "uniform:2:5", "--no-verdicts"]
    return ["--trace", f"lstqueue:{trace}", "--queues", str(queues), *quick]


def test_queues_are_those_of_every_replay_of_a_comparison(asked: list[str], tmp_path: pathlib.Path) -> None:
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    run = ["evaluate", "run", *asked, "--nodes", "2", "--seed", "2", "--json", str(one)]
    assert CliRunner().invoke(cli.main, run).exit_code == 0
    two = ["--nodes", "2", "--policy", "lst", "--policy", "edf", "--seeds", "2", "--processes", "1"]
    shown = CliRunner().invoke(cli.main, ["evaluate", "compare", *asked, *two, "--json", str(many)])
    assert shown.exit_code == 0, shown.output
    alone = json.loads(one.read_text())
    found = json.loads(many.read_text())["runs"]
    assert [sorted(replay["by_queue"]) for replay in found] == [["blue", "red"]] * 4
    (same,) = [replay for replay in found if (replay["policy"], replay["seed"]) == ("lst", 2)]
    assert (same["digest"], same["by_queue"]) == (alone["digest"], alone["by_queue"])


@pytest.mark.slow
def test_queues_are_those_of_every_value_of_a_sweep(asked: list[str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "swept.json"
    more = ["--vary", "nodes=2,3", "--policy", "lst", "--seeds", "1", "--processes", "1", "--json", str(path)]
    shown = CliRunner().invoke(cli.main, ["evaluate", "sweep", *asked, *more])
    assert shown.exit_code == 0, shown.output
    assert all(replay["by_queue"]["red"]["jobs"] == 5 for replay in json.loads(path.read_text())["runs"])


def test_a_policy_without_quotas_is_refused_before_anything_is_replayed(asked: list[str]) -> None:
    two = ["--nodes", "2", "--policy", "lst", "--policy", "kube-scheduler"]
    shown = CliRunner().invoke(cli.main, ["evaluate", "compare", *asked, *two])
    assert shown.exit_code == 2
    assert "--queues does not go with the policy kube-scheduler" in " ".join(shown.output.split())
