"""The report of a comparison: policies on the same seeds, each trace by itself, and how sure it is."""

import copy
import functools
import json
import pathlib
from typing import Any

import pytest
from click import testing

from cases import reports
from lstqueue import cli
from lstqueue.evaluate import compare
from lstqueue.evaluate.report import page, several, words

RATIOS = {"lst": (0.9, 0.92, 0.91), "fifo": (0.6, 0.64, 0.65), "edf": (0.88, 0.93, 0.9)}


def _run(policy: str, trace: str, seed: int, **more: object) -> dict[str, Any]:
    return {
        "policy": policy, "trace": trace, "seed": seed, "deadline_jobs": 1000, "bound": None,
        "wide_jobs": 10, "jobs": 1200, "completed": 1200, "dropped": {}, "share_of_bound": None,
        "gpu_hour_ratio": 0.5, "wide_met": 5, "preemptions_per_job": 0.1, "preemptions": 100, "stuck": False,
        "lost_gpu_share": 0.01, "jct_s": {"mean": 7200.0}, "wait_s": {"mean": 60.0}, "digest": f"{seed:064d}",
        "best_effort_jct_mean_s": None, "invariants_broken": 0, "deadline_ratio": None, "met": 0,
        "place_slowdown": {"mean": None}, **more,
    }  # fmt: skip


@functools.cache
def _compared(*traces: str, seeds: int = 3, bound: float | None = 0.95) -> dict[str, Any]:
    runs = [
        _run(
            policy, trace, seed + 1, deadline_ratio=RATIOS[policy][seed],
            met=round(1000 * RATIOS[policy][seed]), bound=bound if policy == "lst" else None,
        )
        for trace in traces for policy in RATIOS for seed in range(seeds)
    ]  # fmt: skip
    asked = compare.Asked(
        trace_specs=traces, policy_names=tuple(RATIOS), seeds=seeds, nodes=2, deadlines="sdsc"
    )
    return compare.as_json(asked, runs)


def _page(found: dict[str, Any]) -> reports.Page:
    settings = [page.Setting("--seeds", "3", given=True)]
    return reports.Page(
        page.html(several.content(found, settings=settings, command="lstqueue evaluate compare"))
    )


def test_a_headline_compares_with_the_best_other_and_says_how_sure_that_is() -> None:
    found = _compared("swf:/data/blue.swf.gz")
    against = found["traces"]["swf:/data/blue.swf.gz"]["edf"]["deadline_ratio"]["above_first"]
    headline = _page(found).text("h1")
    assert headline == (
        "lst met 91.0% of all deadlines, 0.67 points more than the best other, edf "
        f"(± {100 * against['half']:.1f} points: 0 lies inside, so neither is shown to be better); "
        "no policy could have met more than 95.0%"
    )


def test_every_mean_is_that_of_the_json() -> None:
    found = _compared("swf:a.swf", "swf:b.swf")
    made = _page(found)
    cells = [attributes for _, attributes in made.elements if "data-path" in attributes]
    assert len(cells) == 2 * 3 * 7  # nobody was without a deadline
    for cell in cells:
        value: Any = found
        for key in json.loads(cell["data-path"]):
            value = value[key]
        assert json.loads(cell["data-value"]) == value
    raw = made.text("pre")
    assert json.loads(raw[raw.index("{") :]) == found


def test_traces_are_never_pooled() -> None:
    made = _page(_compared("swf:a.swf", "swf:b.swf"))
    assert {"deadline_ratio-0", "deadline_ratio-1", "deadline_ratio-against-1"} <= set(made.ids)
    assert len(made.ids) == len(set(made.ids))
    assert "lst met 91.0% of all deadlines on a, 0.67 points more than the best other, edf" in made.text("h1")
    assert "lst met 91.0% of all deadlines on b, 0.67 points more than the best other, edf" in made.text("h1")


def test_one_seed_is_said_to_tell_nothing_about_chance() -> None:
    made = _page(_compared("swf:a.swf", seeds=1))
    assert "One seed says nothing about how sure this is." in made.text("li")
    assert "±" not in made.text("h1")
    assert not [1 for drawing in made.drawings if drawing.findall(".//*[@class='interval']")]


def test_intervals_and_bounds_are_drawn() -> None:
    made = _page(_compared("swf:a.swf"))
    with_bound = [drawing for drawing in made.drawings if drawing.findall(".//*[@class='bound']")]
    assert len(with_bound) == 2  # deadlines met, wide and narrow
    for drawing in with_bound:
        assert len(drawing.findall(".//*[@class='interval']")) == 3 * 3
        assert "fifo 63.0% ±" in drawing.attrib["aria-label"]


def test_names_of_traces_are_only_ever_text() -> None:
    evil = "swf:<img src=x onerror=alert(1)>\u202e.swf"
    made = _page(_compared(evil, "swf:b"))
    assert "img" not in {tag for tag, _ in made.elements}
    assert "\u202e" not in made.source
    assert made.drawings


def test_a_policy_that_is_worse_is_said_to_be() -> None:
    found = copy.deepcopy(_compared("swf:a.swf"))
    found["traces"]["swf:a.swf"]["edf"]["deadline_ratio"]["above_first"]["mean"] = 0.05
    assert "5.0 points fewer than the best other, edf (± " in _page(found).text("h1")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("deadline_ratio", -0.28, "−28.0 points"), ("deadline_ratio", 0.0036, "+0.36 points"),
        ("jct_mean_s", 5400, "+90 min"), ("preemptions_per_job", 0, "±0"),
    ],
)  # fmt: skip
def test_changes_have_a_sign_and_a_unit(key: str, value: float, said: str) -> None:
    assert words.change(key, value) == said


def test_compare_writes_a_report(tmp_path: pathlib.Path) -> None:
    jobs = "".join(
        json.dumps({"key": f"job-{index}", "submit_ms": 600_000 * index, "duration_ms": 3_600_000, "gpus": 8})
        + "\n"
        for index in range(6)
    )
    trace, out, figures = tmp_path / "made-up.jsonl", tmp_path / "report.html", tmp_path / "figures.json"
    trace.write_text(jobs)
    arguments = f"--trace lstqueue:{trace} --nodes 1 --policy lst --policy fifo --seeds 1".split()
    arguments += ["--deadlines", "factor:3", "--report", str(out), "--json", str(figures)]
    result = testing.CliRunner().invoke(cli.main, ["evaluate", "compare", *arguments])
    assert result.exit_code == 0, result.output
    made = reports.Page(out.read_text(encoding="utf-8"))
    found = json.loads(figures.read_text())
    raw = made.text("pre")
    assert json.loads(raw[raw.index("{") :]) == found
    assert "--policy lst --policy fifo --seeds 1" in made.text("code")


def test_how_much_slower_places_made_gangs_is_drawn_where_there_is_an_interconnect() -> None:
    asked = compare.Asked(
        trace_specs=("swf:a",), policy_names=("lst", "fifo"), seeds=2, nodes=2, deadlines="sdsc"
    )
    runs = [
        _run(policy, "swf:a", seed, place_slowdown={"mean": 1.1 + place / 10})
        for place, policy in enumerate(asked.policy_names)
        for seed in (1, 2)
    ]
    plots = {one.key: one for one in several.content(compare.as_json(asked, runs)).plots}
    assert "lst 1.1" in plots["place_slowdown-0"].said
    assert "fifo 1.2" in plots["place_slowdown-0"].said
    full = {"level": "leafgroup", "names": ["b0/l0", "b0/l1"], "starts": [0, 2], "ends": [2, 4]}
    for run in runs:
        used = [0.5, 0.9 if run["seed"] == 1 else 0.7] if run["policy"] == "lst" else [0.2, 0.4]
        run["domains"] = {**full, "gpus": [16.0, 16.0], "used": used}
    shown = {one.key: one for one in several.content(compare.as_json(asked, runs)).plots}["domains-0"]
    assert shown.said == "In use of each leafgroup: lst 50.0% to 80.0%; fifo 20.0% to 40.0%."
    texts = [text.text for text in shown.draw(1000.0).iter("text")]
    assert {"lst", "fifo", "l0", "l1", "80.0%", "40.0%"} <= set(texts)
    assert "domains-0" not in {one.key for one in several.content(_compared("swf:a")).plots}
    assert "place_slowdown-0" not in {one.key for one in several.content(_compared("swf:a")).plots}
