"""The report: one file that needs nothing, says what the JSON says, and takes no orders from names."""

import gzip
import json
import pathlib
import re
import shlex

import pytest
from click import testing

from cases import reports
from cases.replays import HOUR, work
from lstqueue import cli
from lstqueue.evaluate.report import page, single, words

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>&amp;\x00\u202eevil"
HEAD = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """Made up: 30 jobs of 1 to 16 GPUs, one every ten minutes, one of them with a name that is no name."""
    rows = [HEAD]
    for index in range(30):
        gpus, seconds = (1, 2, 4, 8, 16)[index % 5], 600 + 577 * index % 7200
        name = "<script>alert(1)</script>" if index == 4 else f"job-{index}"
        rows.append(f"{name},{600 * index},1,m,{600 * index + 2 * seconds},1,{gpus},{seconds}")
    path = tmp_path / "made-up.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return f"elasticflow:{path}"


def _run(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["evaluate", "run", *arguments])


def _index(seen: reports.Page, text: str) -> int:
    return next(place for place, (_, data) in enumerate(seen.texts) if data == text)


def _made(*some: str, trace: str, tmp_path: pathlib.Path) -> tuple[reports.Page, dict[str, object]]:
    out, figures = tmp_path / "report.html", tmp_path / "figures.json"
    result = _run("--trace", trace, "--nodes", "2", "--report", str(out), "--json", str(figures), *some)
    assert result.exit_code == 0, result.output
    return reports.Page(out.read_text(encoding="utf-8")), json.loads(figures.read_text())


def test_a_report_needs_no_network_and_runs_nothing(trace: str, tmp_path: pathlib.Path) -> None:
    seen, _ = _made(trace=trace, tmp_path=tmp_path)
    tags = {tag for tag, _ in seen.elements}
    assert not tags & {"script", "iframe", "object", "embed", "img", "form", "base", "image", "use"}
    for tag, attributes in seen.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")
        ]
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:,")), tag
    addresses = set(re.findall(r"[a-z]+://[^\"' <)]*", seen.source))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|expression\(|javascript:", seen.source)
    policy = next(attributes["content"] for _, attributes in seen.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'")


def test_a_report_says_exactly_what_the_json_says(trace: str, tmp_path: pathlib.Path) -> None:
    seen, found = _made("--bound", trace=trace, tmp_path=tmp_path)
    assert {key: json.loads(value) for key, value in seen.values.items()} == dict(words.flat(found))
    assert json.loads(seen.text("pre")) == found
    headline = seen.text("h1")
    assert f"met {words.share(found['deadline_ratio'])} of {found['deadline_jobs']} deadlines" in headline
    assert found["digest"] in seen.source


def test_every_plot_is_valid_and_described(trace: str, tmp_path: pathlib.Path) -> None:
    seen, _ = _made(trace=trace, tmp_path=tmp_path)
    assert len(seen.drawings) == 2 * 9  # wide and narrow
    for drawing in seen.drawings:
        assert drawing.attrib["role"] == "img"
        assert len(drawing.attrib["aria-label"]) > 20
        numbers = re.findall(r"-?\d+(?:\.\d+)?|nan|inf", " ".join(drawing.attrib["viewBox"].split()))
        assert "nan" not in numbers
    assert not re.search(r"\b(?:nan|inf)\b", seen.source.split("<body>")[1].split('id="figures"')[0])
    assert len(seen.ids) == len(set(seen.ids))
    assert {"met", "waits", "margins", "verdicts", "gpus", "slack", "losses", "nodes", "gangs"} <= set(
        seen.ids
    )
    figures = [attributes for tag, attributes in seen.elements if tag == "figure"]
    assert all(attributes["aria-labelledby"] in seen.ids for attributes in figures)
    assert dict(seen.elements)["html"]["lang"] == "en"


def test_words_stay_within_their_drawing(trace: str, tmp_path: pathlib.Path) -> None:
    seen, _ = _made(trace=trace, tmp_path=tmp_path)
    for drawing in seen.drawings:
        _, _, width, height = (float(value) for value in drawing.attrib["viewBox"].split())
        for text in drawing.iter("{http://www.w3.org/2000/svg}text"):
            long = 5.5 * len(text.text or "")  # at least; letters differ
            left = (
                float(text.attrib["x"])
                - {"start": 0, "middle": long / 2, "end": long}[text.attrib["text-anchor"]]
            )
            assert left >= -1, text.text
            assert left + long <= width + 1, text.text
            assert 0 <= float(text.attrib["y"]) <= height, text.text


def test_names_are_only_ever_text() -> None:
    seen = reports.recorded([work(HOSTILE, gpus=2, due=2 * HOUR), work("other", due=3 * HOUR)])
    found = {
        **reports.found(seen, bound=1.0),
        "trace": f"swf:{HOSTILE}",
        "policy": HOSTILE,
        "dropped": {HOSTILE: 3},
    }
    settings = [page.Setting("--trace", HOSTILE, given=True)]
    asked = single.Asked(HOSTILE, HOSTILE, settings, f"lstqueue {HOSTILE}")
    made = reports.Page(page.html(single.content(found, seen, asked)))
    assert not {tag for tag, _ in made.elements} & {"script", "img"}
    assert not [name for _, attributes in made.elements for name in attributes if name.startswith("on")]
    assert made.drawings
    assert "\x00" not in made.source
    assert "\u202e" not in made.source
    # It is there all the same, to be read.
    assert any("<script>alert(1)</script>" in text for tag, text in made.texts if tag == "th")
    assert any("<script>" in text.text for drawing in made.drawings for text in drawing.iter() if text.text)


def test_the_command_in_a_report_gives_the_same_replay(trace: str, tmp_path: pathlib.Path) -> None:
    given = (
        "--deadlines",
        "uniform:1.1:3.0",
        "--seed",
        "7",
        "--no-invariants",
        "--restore",
        "90s",
        "--limit",
        "20",
    )
    seen, found = _made(*given, trace=trace, tmp_path=tmp_path)
    launch = next(data for tag, data in seen.texts[_index(seen, "--launch") :] if tag == "td")
    assert launch == "30 s"  # nobody gave it
    again = shlex.split(
        next(text for tag, text in seen.texts if tag == "code" and text.startswith("lstqueue "))
    )
    assert again[:3] == ["lstqueue", "evaluate", "run"]
    assert not {"--report", "--json"} & set(again)
    path = tmp_path / "again.json"
    result = testing.CliRunner().invoke(cli.main, [*again[1:], "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert json.loads(path.read_text())["digest"] == found["digest"]


def test_a_report_changes_nothing_of_the_replay(trace: str, tmp_path: pathlib.Path) -> None:
    _, with_it = _made(trace=trace, tmp_path=tmp_path)
    path = tmp_path / "without.json"
    assert _run("--trace", trace, "--nodes", "2", "--json", str(path)).exit_code == 0
    without = json.loads(path.read_text())
    assert without["digest"] == with_it["digest"]


def test_without_deadlines_or_verdicts_a_report_has_what_is_left(trace: str, tmp_path: pathlib.Path) -> None:
    seen, _ = _made("--deadlines", "none", "--no-verdicts", trace=trace, tmp_path=tmp_path)
    assert "completed 30 of 30 jobs; none had a deadline" in seen.text("h1")
    assert not {"met", "margins", "verdicts", "slack"} & set(seen.ids)
    assert {"waits", "gpus", "nodes", "gangs"} <= set(seen.ids)


def test_what_makes_figures_doubtful_is_said_on_top() -> None:
    seen = reports.recorded([work("a", due=2 * HOUR)])
    found = {**reports.found(seen), "invariants_broken": 2, "stuck": True, "dropped": {"no run time": 5}}
    said = " ".join(single.content(found, seen, single.Asked()).warnings)
    assert "2 invariants were broken" in said
    assert "5 rows of the trace were left out: no run time." in said
    assert "--bound" in said


def test_a_folder_that_is_not_there_is_refused(trace: str) -> None:
    result = _run("--trace", trace, "--nodes", "2", "--report", "missing/report.html")
    assert result.exit_code == 2
    assert "Invalid value for --report: folder 'missing' does not exist; create it" in result.output


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"), (0, "0 s"), (0.0021, "2.1 ms"), (59.96, "60 s"), (119, "119 s"), (1230, "20.5 min"),
        (7200, "2 h"), (100 * 3600, "4.2 days"), (400 * 86400, "400 days"),
    ],
)  # fmt: skip
def test_times_are_in_the_unit_that_suits_them(seconds: float | None, said: str) -> None:
    assert words.span(seconds) == said


@pytest.mark.parametrize(
    ("part", "said"),
    [(None, "–"), (0, "0%"), (1, "100%"), (0.8907, "89.1%"), (0.9956, "99.56%"), (0.0077, "0.77%")],
)
def test_shares_have_more_decimals_where_these_matter(part: float | None, said: str) -> None:
    assert words.share(part) == said


def test_a_figure_that_nobody_named_is_shown_by_its_key() -> None:
    shown = {
        figure.key: figure for figure in words.figures({"repair_s": 7200, "odd_ratio": 0.5, "new": {"x": 3}})
    }
    assert shown["repair_s"].text == "2 h"
    assert shown["odd_ratio"].text == "50.0%"
    assert (shown["new.x"].label, shown["new.x"].text) == ("new, x", "3")
