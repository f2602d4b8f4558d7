"""`lstqueue topology fit`: where a gang would go, in words and as JSON, and the exit code."""

import json
import pathlib

from click.testing import CliRunner

from lstqueue import cli
from lstqueue.interconnect import sources

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = f"explicit:{ROOT}/examples/topology/interconnect.yaml"
TREE = f"slurm:{ROOT}/examples/topology/tree.topology.conf"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.main, ["topology", "fit", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


def test_the_page_shows_what_the_example_prints() -> None:
    page = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8")
    shown = page.split("topology fit explicit:")[1].split("```")[0].split("\n", 1)[1]
    assert run(EXAMPLE, "--gang", "4x8", "--preferred", "leafgroup") == (0, shown)


def test_what_is_in_use_is_not_given_again(tmp_path: pathlib.Path) -> None:
    used = tmp_path / "used"
    used.write_text("# in use\nsrv1101 8\nsrv1201, 8\n", encoding="utf-8")
    code, printed = run(TREE, "--gang", "8x8", "--used", str(used), "-o", "json")
    told = json.loads(printed)
    assert code == 0
    assert (told["level"], told["domain"]) == ("leafgroup", "switch.3.1/switch.2.2/switch.1.3")
    assert told["domains"]["leafgroup"] == {"used": 1, "fewest": 1}
    assert told["ring"] is None
    used.write_text("srv1101\n", encoding="utf-8")
    code, printed = run(TREE, "--gang", "8x8", "--used", str(used))
    assert code == 1
    assert "line 1: 'srv1101'; give a node of the topology" in printed


def test_what_would_fit_without_what_is_in_use_does_not_fit_now(tmp_path: pathlib.Path) -> None:
    used = tmp_path / "used"
    made = sources.read(TREE).domains
    used.write_text("".join(f"{name} 8\n" for name in made.nodes), encoding="utf-8")
    assert run(TREE, "--gang", "2x8", "--used", str(used)) == (1, "2x8: does not fit now\n")


def test_more_than_a_node_has_or_a_node_twice_is_refused(tmp_path: pathlib.Path) -> None:
    used = tmp_path / "used"
    for told, said in (
        ("srv1101 8\nsrv1102 9\n", "line 2: srv1102 has 8 GPUs; give as many or fewer"),
        ("srv1101 4\nsrv1101 4\n", "line 2: srv1101 is there twice; give a node once"),
    ):
        used.write_text(told, encoding="utf-8")
        code, printed = run(TREE, "--gang", "1x8", "--used", str(used))
        assert code == 1
        assert said in printed


def test_slices_share_a_leaf_group_and_ranks_go_on_from_the_leader() -> None:
    code, printed = run(TREE, "--gang", "1x8", "--gang", "12x8", "--slice", "6:leafgroup")
    assert code == 0
    assert printed.startswith("1x8 + 12x8: block switch.2.1 of switch.3.1, 4 hops, 2 leafgroup used of 2")
    ranks = [line.split(":")[0].strip() for line in printed.splitlines()[1:]]
    assert len(set(ranks)) == 13
    assert sum(node.startswith("srv11") for node in ranks[1:]) == 6


def test_a_gang_that_does_not_fit_exits_with_1() -> None:
    assert run(TREE, "--gang", "9x8", "--required", "leafgroup") == (
        1,
        "9x8: does not fit in one leafgroup even where nothing is in use; "
        "ask for fewer pods or GPUs, or a wider level\n",
    )
    code, printed = run(TREE, "--gang", "9x8", "--required", "leafgroup", "-o", "json")
    assert (code, json.loads(printed)) == (1, {"fits": False, "fits_when_empty": False})


def test_options_that_cannot_be_used_say_what_would_be_right() -> None:
    assert "give PODSxGPUS, such as 16x8" in run(TREE, "--gang", "8")[1]
    assert "its levels are fabric, block, leafgroup" in run(TREE, "--gang", "8x8", "--required", "rack")[1]
    assert "multiple of the slice" in run(TREE, "--gang", "8x8", "--slice", "3")[1]
    assert "give PODS or PODS:LEVEL" in run(TREE, "--gang", "8x8", "--slice", "x")[1]
