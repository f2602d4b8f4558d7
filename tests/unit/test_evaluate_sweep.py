"""`lstqueue evaluate sweep`: what it refuses, prints, writes and draws."""

import json
import pathlib

import pytest
from click import testing

from cases import reports
from lstqueue import cli
from lstqueue.evaluate.report import lines, page, sweeps


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """Made up: 12 jobs of 1 to 16 GPUs, one every ten minutes."""
    rows = ["key,submit_ms,duration_ms,gpus"]
    for index in range(12):
        gpus, minutes = (1, 4, 8, 16)[index % 4], 30 + 17 * index % 90
        rows.append(f"job-{index},{600_000 * index},{60_000 * minutes},{gpus}")
    path = tmp_path / "made-up.csv"
    path.write_text("\n".join(rows) + "\n")
    return f"lstqueue:{path}"


QUICK = ("--pass-every", "1m", "--no-verdicts", "--deadlines", "uniform:1.1:3.0", "--processes", "1")


def _sweep(trace: str, *arguments: str) -> testing.Result:
    asked = ["evaluate", "sweep", "--trace", trace, *QUICK, *arguments]
    return testing.CliRunner().invoke(cli.main, asked)


def test_each_value_is_a_comparison_of_its_own(trace: str, tmp_path: pathlib.Path) -> None:
    figures, report = tmp_path / "swept.json", tmp_path / "swept.html"
    two = ("--policy", "lst", "--policy", "fifo", "--seeds", "2", "--vary", "nodes=2,3")
    result = _sweep(trace, *two, "--json", str(figures), "--report", str(report))
    assert result.exit_code == 0, result.output
    assert "deadlines met %, by --nodes" in " ".join(result.output.split())
    found = json.loads(figures.read_text())
    assert (found["vary"], found["first"], list(found["points"])) == ("nodes", "lst", ["2", "3"])
    assert len(found["runs"]) == 8
    for value, policies in found["points"].items():
        for policy, told in policies.items():
            here = [
                run["deadline_ratio"]
                for run in found["runs"]
                if (run["value"], run["policy"]) == (value, policy)
            ]
            assert told["deadline_ratio"]["values"] == here
    more, less = [found["points"][value]["lst"]["deadline_ratio"]["mean"] for value in ("3", "2")]
    assert more >= less
    made = reports.Page(report.read_text(encoding="utf-8"))
    assert "--vary nodes=2,3" in made.text("code")
    raw = made.text("pre")
    assert json.loads(raw[raw.index("{") :]) == found
    assert "Fewer than ten seeds" in made.text("li")


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ("colour=1,2", "'colour' cannot vary; it must be one of nodes, deadlines"),
        ("nodes=4", "has too few different values; write two or more"),
        ("nodes=4,4", "has too few different values"),
        ("nodes=4,many", "Invalid value for '--nodes': 'many' is not a valid integer"),
        ("nodes=0,4", "Invalid value for '--nodes': 0 is not in the range"),
        ("best-effort=0,nan", "Invalid value for '--best-effort': 'nan' is not a number that can be"),
        ("failures=0,-1", "Invalid value for '--failures': -1.0 is not in the range"),
    ],
)
def test_what_cannot_vary_is_refused(trace: str, vary: str, words: str) -> None:
    result = _sweep(trace, "--policy", "lst", "--vary", vary)
    assert result.exit_code != 0
    assert words in " ".join(result.output.replace("│", "").split())


@pytest.mark.parametrize(
    ("values", "places"),
    [
        (("12", "16", "20"), [12, 16, 20]),
        (("exact", "lognormal:0.5"), [0, 1]),
        (("lognormal:0.2", "lognormal:1"), [0.2, 1]),
        (("uniform:1.1:3.0", "uniform:1.5:3.0"), [0, 1]),
    ],
)
def test_values_that_are_numbers_stand_where_they_belong(
    values: tuple[str, ...], places: list[float]
) -> None:
    assert lines.numbers(values) == places


def _told(*ratios: float) -> dict[str, object]:
    told = {"mean": ratios[0], "half": 0.02, "values": list(ratios)}
    others = ("gpu_hour_ratio", "wide_ratio", "preemptions_per_job", "lost_gpu_share", "jct_mean_s")
    return {"deadline_ratio": told, **dict.fromkeys((*others, "best_effort_jct_mean_s", "place_slowdown"))}


def test_a_report_draws_a_line_for_each_policy_and_names_it() -> None:
    points = {
        "12": {"lst": _told(0.7), "fifo": _told(0.3)},
        "16": {"lst": _told(0.9), "fifo": _told(0.5)},
    }
    found = {
        "trace": "swf:a", "vary": "nodes", "first": "lst", "seeds": 3, "published": False,
        "points": points, "runs": [{"value": "12", "seed": 1, "bound": 0.8, "stuck": False,
                                    "invariants_broken": 0, "jobs": 9, "deadline_jobs": 9, "dropped": {}},
                                   {"value": "16", "seed": 1, "bound": None, "stuck": False,
                                    "invariants_broken": 0, "jobs": 9, "deadline_jobs": 9, "dropped": {}}],
    }  # fmt: skip
    made = reports.Page(page.html(sweeps.content(found)))
    assert made.text("h1") == (
        "lst met 70.0% of all deadlines with nodes at 12, 90.0% at 16, where the best other, fifo, met 50.0%"
    )
    wide, narrow = made.drawings
    for drawing in (wide, narrow):
        assert len(drawing.findall(".//*[@class='line line0']")) == 1
        assert len(drawing.findall(".//*[@class='spread line1']")) == 2
        assert "lst 70.0% at 12, 90.0% at 16" in drawing.attrib["aria-label"]
