"""A trace through the operator beside the engine alone: the same deadlines, and what is refused."""

import dataclasses
import json
import pathlib
from typing import Any

import pytest
from click import testing

from lstqueue import cli
from lstqueue.demo import trace as slices
from lstqueue.evaluate import command, evaluation, figures
from lstqueue.evaluate import policies as pure_policies
from lstqueue.through import command as through
from lstqueue.through import policies

TRACE = """\
key,submit_ms,duration_ms,gpus,deadline_ms
first,0,7200000,16,90000000
small,60000,600000,1,
narrow,600000,5400000,8,7000000
late,700000,3600000,8,4400000
wide,1200000,3600000,16,8000000
last,1300000,1800000,4,
"""


def _run(trace: pathlib.Path, *arguments: str) -> testing.Result:
    given = ["evaluate", "run", "--trace", f"lstqueue:{trace}", "--nodes", "2", "--through", "embedded"]
    return testing.CliRunner().invoke(cli.main, [*given, *arguments])


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def _agree(found: dict[str, Any], pure: dict[str, Any]) -> None:
    for key in ("jobs", "completed", "deadline_jobs", "met", "wide_met", "preemptions", "disruptions"):
        assert found[key] == pure[key], key
    assert found["lost_gpu_share"] == pytest.approx(pure["lost_gpu_share"], rel=0.02)
    assert found["jct_s"]["mean"] == pytest.approx(pure["jct_s"]["mean"], rel=0.01)
    assert found["wait_s"]["mean"] == pytest.approx(pure["wait_s"]["mean"], rel=0.01)
    assert found["gpu_allocation"] == pytest.approx(pure["gpu_allocation"], rel=0.01)
    assert found["idle_wanted_share"] == pytest.approx(pure["idle_wanted_share"], abs=0.01)


def test_the_operator_meets_the_deadlines_that_the_engine_alone_meets(trace: pathlib.Path) -> None:
    options = command.Options(
        trace=f"lstqueue:{trace}",
        nodes=2,
        gpus_per_node=8,
        policy="lst",
        deadlines="file",
        seed=1,
        settings="acceptance",
    )
    plan = through.planned(options)
    played = plan.play(lambda *_: None)
    assert (played.violations, played.told_otherwise, played.outcome.stuck) == ((), (), False)
    assert played.checks > 100
    assert played.writes > 6
    pure = evaluation.evaluated(options, lambda _: None)
    assert pure.seen.preemptions > 0
    _agree(dataclasses.asdict(figures.of(played.outcome, plan.shape)), dataclasses.asdict(pure.seen))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_a_slice_under_load_the_deadlines_met_are_within_two_points(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "slice.csv"
    rows = [
        f"{job.number},{job.submit},{job.duration},{job.gpus},{job.deadline}" for job in slices.load(seed=1)
    ]
    path.write_text("\n".join(["key,submit_ms,duration_ms,gpus,deadline_ms", *rows]))
    options = command.Options(
        trace=f"lstqueue:{path}",
        nodes=4,
        gpus_per_node=8,
        policy="lst",
        deadlines="file",
        seed=1,
        settings="acceptance",
        limit=60,
    )
    plan = through.planned(options)
    played = plan.play(lambda *_: None)
    assert (played.violations, played.told_otherwise, played.outcome.stuck) == ((), (), False)
    found, pure = figures.of(played.outcome, plan.shape), evaluation.evaluated(options, lambda _: None).seen
    assert found.deadline_ratio is not None
    assert found.deadline_ratio == pytest.approx(pure.deadline_ratio, abs=0.02)
    assert pure.preemptions > 10


@pytest.mark.parametrize(("model", "more"), [("exact", through.KNOWN_AFTER), ("user", None)])
def test_an_exact_estimate_has_a_moment_more_in_which_the_end_gets_known(
    trace: pathlib.Path, model: str, more: int | None
) -> None:
    plan = through.planned(
        command.Options(trace=f"lstqueue:{trace}", nodes=2, settings="acceptance", estimates=model)
    )
    told = [plan.estimated[work.key] for work in plan.load.works]
    assert [one and one.mid - work.duration for one, work in zip(told, plan.load.works, strict=True)] == [
        more
    ] * 6


QUEUES = """\
cohort: ml
queues:
  - {name: red, gpus: 8, users: [ada]}
  - name: blue
    gpus: 8
    windows: [{name: night, schedule: "0 8 * * *", zone: Etc/UTC, duration: 2h, keepFree: 50%}]
"""
LENT = """\
key,submit_ms,duration_ms,gpus,user,deadline_ms
a1,0,14400000,8,ada,100000000
a2,60000,14400000,8,ada,101000000
b1,3600000,3600000,8,bob,9000000
b2,10800000,5400000,4,bob,
b3,10860000,5400000,4,bob,
b4,25200000,7200000,16,bob,
b5,36000000,60000,1,bob,
"""


@pytest.mark.slow
def test_queues_lend_and_take_back_through_the_operator_as_in_the_engine(
    tmp_path: pathlib.Path,
) -> None:
    trace, queues, path = tmp_path / "trace.csv", tmp_path / "queues.yaml", tmp_path / "found.json"
    trace.write_text(LENT)
    queues.write_text(QUEUES)
    more = ("--settings", "acceptance", "--queues", str(queues), "--cool-down", "1m", "--json", str(path))
    result = _run(trace, *more)
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    assert (found["audit"]["violated"], found["told_otherwise"], found["completed"]) == (0, [], 6)
    _agree(found, found["pure"])
    assert found["by_queue"]["red"]["gave_back"] == found["pure"]["by_queue"]["red"]["gave_back"] == 2
    assert (found["jobs_not_counted"], found["by_queue"]["blue"]["jobs"]) == (1, 4)


def test_unlike_nodes_are_those_of_the_embedded_cluster(tmp_path: pathlib.Path) -> None:
    trace, nodes, path = tmp_path / "trace.jsonl", tmp_path / "nodes.json", tmp_path / "found.json"
    pods = {"count": 1, "requests": {"nvidia.com/gpu": 2, "cpu": 6000}}
    rows = [
        {"key": key, "submit_ms": at, "duration_ms": 3_600_000, "pods": [pods]}
        for key, at in (("a", 0), ("b", 60_000), ("c", 120_000))
    ]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = ("wide", 4, 8000), ("small", 2, 6000)
    nodes.write_text(
        json.dumps([{"name": name, "gpus": gpus, "cpu_milli": cpu} for name, gpus, cpu in cells])
    )
    arguments = ["--inventory", str(nodes), "--through", "embedded", "--json", str(path)]
    given = [
        "evaluate",
        "run",
        "--trace",
        f"lstqueue:{trace}",
        "--settings",
        "acceptance",
        "--deadlines",
        "none",
        *arguments,
    ]
    result = testing.CliRunner().invoke(cli.main, given)
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    _agree(found, found["pure"])
    assert found["wait_s"]["most"] == pytest.approx(3600 - 120, rel=0.01)  # cpu for one of them on each node


def test_a_queue_that_the_operator_would_not_take_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    trace, queues = tmp_path / "trace.csv", tmp_path / "queues.yaml"
    trace.write_text(LENT)
    for name, words in (("Team Red", "'Team Red' is no name of a GPUQueue"), ("red", "spec.cohort")):
        queues.write_text(f"cohort: M L\nqueues: [{{name: {name}, gpus: 8}}]\n")
        result = _run(trace, "--queues", str(queues))
        assert (result.exit_code, words in " ".join(result.output.split())) == (1, True), result.output


@pytest.mark.slow
def test_both_replays_are_shown_side_by_side_and_written(trace: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "figures.json"
    result = _run(trace, "--estimates", "lognormal:0.5", "--json", str(path))
    assert result.exit_code == 0, result.output
    assert "through the operator" in result.output
    found = json.loads(path.read_text())
    assert found["through"] == "embedded"
    assert (found["completed"], found["stuck"], found["told_otherwise"]) == (6, False, [])
    assert found["audit"]["violated"] == found["invariants_broken"] == 0
    assert found["audit"]["checks"] == found["invariant_checks"] > 100
    assert found["writes_per_job"] > 1
    assert found["above_pure"]["deadline_ratio"] == found["deadline_ratio"] - found["pure"]["deadline_ratio"]
    assert set(found["pure"]) < set(found)


def test_policies_that_a_queue_cannot_say_are_refused_by_name(trace: pathlib.Path) -> None:
    result = _run(trace, "--policy", "naive-lst")
    assert result.exit_code == 1
    assert "naive-lst sets switches, which no GPUQueue can say; --through takes lst, " in result.output
    assert {"lst", "lst-no-shed", "lst-no-preempt", "lst-no-share", "edf", "fifo"} <= {*policies.speakable()}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lst", {}),
        ("edf", {"order": "edf"}),
        ("lst-no-share", {"overload": {"bestEffortShare": "0%"}}),
        (
            "fifo",
            {
                "order": "fifo",
                "preemption": {"withinQueue": "Never"},
                "overload": {"shedding": False, "bestEffortShare": "0%"},
            },
        ),
    ],
)
def test_a_policy_is_the_queue_that_says_it(name: str, said: dict[str, object]) -> None:
    (made,) = policies.queues(pure_policies.named(name))
    spec = made["spec"]
    del spec["pools"]
    assert spec == said


@pytest.mark.parametrize(
    "given",
    [
        ("--failures", "1"),
        ("--gpu-failures", "1"),
        ("--drains", "1"),
        ("--lag", "1s"),
        ("--log", "events.log"),
        ("--report", "page.html"),
        ("--estimates", "last-two"),
    ],
)
def test_what_only_one_of_the_two_worlds_has_is_refused(trace: pathlib.Path, given: tuple[str, str]) -> None:
    result = _run(trace, *given)
    assert result.exit_code == 2
    assert f"{given[0]}" in result.output
    assert "does not go with --through; leave one of them out" in " ".join(result.output.split())


def test_a_later_start_that_is_quicker_than_the_first_is_refused(trace: pathlib.Path) -> None:
    result = _run(trace, "--launch", "5m", "--restore", "1m")
    assert result.exit_code == 1
    assert "--restore 1m is less than --launch 5m" in result.output
