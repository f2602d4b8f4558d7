"""`lstqueue topology`: what is printed, and the exit code."""

import json
import pathlib

from click.testing import CliRunner

from cases import topologies
from lstqueue import cli

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = f"explicit:{ROOT}/examples/topology/interconnect.yaml"
TREE = f"slurm:{ROOT}/examples/topology/tree.topology.conf"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.main, ["topology", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


def test_the_page_shows_what_the_example_prints() -> None:
    page = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8")
    shown = page.split("```console\n$ ")[1].split("```")[0].split("\n", 1)[1]
    code, printed = run("show", EXAMPLE)
    assert code == 0
    assert printed.replace(f"{ROOT}/", "") == shown


def test_json_counts_the_domains_of_every_level() -> None:
    code, printed = run("show", TREE, "-o", "json")
    told = json.loads(printed)
    assert code == 0
    assert told["levels"] == {"fabric": 1, "block": 6, "leafgroup": 12}
    assert len(told["nodes"]) == 96
    leaf = next(item for item in told["domains"] if item["name"] == "switch.3.1/switch.2.2/switch.1.3")
    assert leaf["parent"] == "switch.3.1/switch.2.2"
    names = [node["name"] for node in told["nodes"][leaf["start"] : leaf["end"]]]
    assert names == [f"srv210{number}" for number in range(1, 9)]
    assert told["left_out"] == told["merged"] == []


def test_check_fails_when_something_was_left_out_or_merged() -> None:
    assert run("check", TREE)[0] == 0
    code, printed = run("check", EXAMPLE)
    assert code == 1
    assert "gpu-2 to leaf-2-1: is not healthy" in printed


def test_keys_of_your_own_are_levels(tmp_path: pathlib.Path) -> None:
    nodes = [
        topologies.labelled(f"n{number}", {"dc/row": f"r{number // 4}", "dc/rack": f"k{number // 2}"})
        for number in range(8)
    ]
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"items": nodes}), encoding="utf-8")
    code, printed = run("show", f"labels:{path}", "--key", "dc/rack", "--key", "dc/row")
    assert code == 0
    assert "row 2, rack 4" in printed


def test_what_cannot_be_read_is_a_sentence_and_not_a_traceback(tmp_path: pathlib.Path) -> None:
    assert "FORMAT:PATH with one of alibaba, explicit" in run("show", "magic:x")[1]
    assert "cannot be read" in run("show", f"slurm:{tmp_path}/none")[1]
    code, printed = run("show", TREE, "--key", "a")
    assert code == 1
    assert "--key is for labels:PATH" in printed
