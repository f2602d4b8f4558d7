"""Several queues in a replay: what their file says, and the figures of each."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import pytest
from click.testing import CliRunner

from cases import replays, reports
from lstqueue import cli
from lstqueue.evaluate import teams, workload

FILE = """
cohort: ml
queues:
  - {name: red, gpus: 8, users: [ada]}
  - {name: blue, gpus: 8, borrowingLimit: 0}
"""


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "queues.yaml"


def trace(path: pathlib.Path) -> pathlib.Path:
    """Ada fills the cluster, with half of what Bob has; he comes an hour later."""
    rows = [("a1", 0, 8, 6, "ada", 40), ("a2", 60, 8, 6, "ada", 41), ("b1", 3600, 8, 1, "bob", 9)]
    made = path.parent / "trace.csv"
    header = "key,submit_ms,duration_ms,gpus,user,deadline_ms"
    hour = 3_600_000
    lines = [f"{i},{at * 1000},{h * hour},{g},{user},{due * hour}" for i, at, g, h, user, due in rows]
    made.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return made


def work(user: str, key: str = "job") -> workload.Work:
    return dataclasses.replace(replays.work(key), user=user)


def evaluated(path: pathlib.Path, text: str, *more: str) -> tuple[int, str, dict[str, object]]:
    path.write_text(text, encoding="utf-8")
    found = path.parent / "found.json"
    asked = ["evaluate", "run", "--trace", f"lstqueue:{trace(path)}", "--nodes", "2", "--json", str(found)]
    result = CliRunner().invoke(cli.main, [*asked, "--queues", str(path), *more])
    read = json.loads(found.read_text(encoding="utf-8")) if found.exists() else {}
    return result.exit_code, result.output, read


def test_a_team_borrows_and_gives_back_and_each_has_its_figures(path: pathlib.Path) -> None:
    code, shown, found = evaluated(path, FILE)
    assert code == 0, shown
    red, blue = found["by_queue"]["red"], found["by_queue"]["blue"]
    assert (red["jobs"], red["deadline_jobs"], red["met"], red["gave_back"]) == (2, 2, 2, 1)
    assert (blue["jobs"], blue["met"], blue["gave_back"]) == (1, 1, 0)
    assert blue["wait_mean_s"] < 60
    assert "queue red: gave back to others" in shown


def test_without_a_cohort_everybody_keeps_to_its_own(path: pathlib.Path) -> None:
    _, _, found = evaluated(path, FILE.replace("cohort: ml", "").replace(", borrowingLimit: 0", ""))
    red = found["by_queue"]["red"]
    assert red["gave_back"] == 0
    assert red["wait_mean_s"] > 3600 * 2


def test_users_are_where_the_file_says_and_the_others_spread_by_name(path: pathlib.Path) -> None:
    path.write_text(FILE.replace("users: [ada]", "users: [ada, eve]"), encoding="utf-8")
    of = [teams.read(path).of(work(user)) for user in ("ada", "eve", "bob", "")]
    assert of == ["red", "red", "blue", "blue"]
    path.write_text("queues: [{name: a, gpus: 1}, {name: b, gpus: 1}]", encoding="utf-8")
    found = teams.read(path)
    assert {found.of(work(f"user-{i}")) for i in range(20)} == {"a", "b"}
    assert {found.of(work("", key=f"job-{i}")) for i in range(20)} == {"a", "b"}
    assert found.of(work("user-1", key="x")) == teams.read(path).of(work("user-1", key="y"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "line 1: is no YAML"),
        ("queues: 3", "queues is missing"),
        ("queues: [{gpus: 3}]", "queues[0].name is None"),
        ("queues: [{name: a, gpus: x}]", "queues[0].gpus is 'x'"),
        ("queues: [{name: a, gpus: 1, borrowingLimit: -1}]", "borrowingLimit is -1"),
        ("queues: [{name: a, gpus: 1, weight: 2}]", "'weight' means nothing"),
        ("queues: [{name: a, gpus: 1}, {name: a, gpus: 1}]", "the same name"),
        ("queues: [{name: a, gpus: 1, users: ada}]", "users is 'ada'"),
        ("queues: [{name: a, gpus: 16, users: [ada]}]", "user 'bob' is in no queue"),
        ("queues: [{name: a, gpus: 1, windows: day}]", "windows is 'day'; list windows as in a GPUQueue"),
        ("queues: [{name: a, gpus: 1, windows: [3]}]", "queues[0].windows[0]: 3 is not a mapping of fields"),
        ("queues: [{name: a, gpus: 1, windows: [{name: d}]}]", "queues[0].windows[0].schedule: is missing"),
        ("queues: [{name: a, gpus: 1, windows: [{from: 8}]}]", "windows[0]: 'from' means nothing"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(path: pathlib.Path, text: str, words: str) -> None:
    code, shown, _ = evaluated(path, text)
    assert code == 1
    assert words in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "queues: [{name: red, gpus: 8, color: blue}]",
            "'color' means nothing",
        ),
        ("kohort: ml\nqueues: [{name: red, gpus: 8}]", "'kohort' means nothing; known are cohort, queues"),
        (
            "queues: [{name: red, gpus: 8, borrowingLimit: 4}]",
            "'red' has a borrowingLimit and there is no",
        ),
        (
            "queues: [{name: a, gpus: 8, users: [ada]}, {name: b, gpus: 8, users: [ada]}]",
            "user 'ada' is listed twice",
        ),
    ],
)
def test_a_file_that_says_less_than_it_seems_to_is_refused(path: pathlib.Path, text: str, words: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(teams.TeamsError, match=words):
        teams.read(path)


WINDOW = '{name: day, schedule: "30 1 * * *", zone: Etc/UTC, duration: 12h, keepFree: "%s"}'


@pytest.mark.parametrize(("kept", "began"), [("100%", 13.5), ("50%", 1.0)])
def test_in_a_window_of_a_queue_its_jobs_leave_free_what_it_says(
    path: pathlib.Path, kept: str, began: float
) -> None:
    path.write_text(f"queues: [{{name: red, gpus: 16, windows: [{WINDOW % kept}]}}]", encoding="utf-8")
    whole, log = trace(path).read_text(encoding="utf-8").splitlines(), path.parent / "log"
    alone = path.parent / "alone.csv"
    alone.write_text("\n".join([whole[0], whole[3]]) + "\n", encoding="utf-8")  # b1, at one, for an hour
    asked = ["evaluate", "run", "--trace", f"lstqueue:{alone}", "--nodes", "2", "--queues", str(path)]
    assert CliRunner().invoke(cli.main, [*asked, "--log", str(log), "--deadlines", "none"]).exit_code == 0
    (at,) = [int(line.split()[0]) for line in log.read_text().splitlines() if " admitted " in line]
    assert (at - workload.EPOCH) / 3_600_000 == pytest.approx(began, abs=0.01)


def test_a_queue_without_jobs_is_listed_and_the_report_has_all_of_them(path: pathlib.Path) -> None:
    report = path.parent / "report.html"
    text = FILE + "  - {name: green, gpus: 0, users: [eve]}\n"
    code, shown, found = evaluated(path, text, "--report", str(report))
    assert code == 0, shown
    assert list(found["by_queue"]) == ["red", "blue", "green"]
    assert found["by_queue"]["green"]["jobs"] == 0
    page = reports.Page(report.read_text(encoding="utf-8"))
    assert {"red", "blue", "green"} <= {text for tag, text in page.texts if tag == "th"}
