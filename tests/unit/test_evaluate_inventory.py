"""The nodes of a file: what is read, what is refused, and what a replay makes of them."""

import json
import pathlib
import re

import pytest
from click import testing

from cases import replays, trace_files
from cases.replays import HOUR, work
from lstqueue import cli
from lstqueue.engine import model
from lstqueue.evaluate import check, digest, estimates, inventory, replay, workload, world

OPENB = "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,G2\nb,96000,262144,2,T4\nc,32000,1024,0,\n"
CLUSTER = {
    "kind": "NodeList",
    "items": [
        {
            "metadata": {"name": "gpu-1"},
            "status": {"allocatable": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "1Gi", "pods": "110"}},
        },
        {"metadata": {"name": "cpu-1"}, "status": {"allocatable": {"cpu": "8"}}},
    ],
}


def read(folder: pathlib.Path, name: str, text: str) -> inventory.Inventory:
    path = folder / name
    path.write_text(text)
    return inventory.read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nodes.csv", OPENB),
        ("nodes.json", '[{"name": "a", "gpus": 8}, {"name": "b", "gpus": 2}, {"name": "c", "gpus": 0}]'),
        ("nodes.yaml", "- {name: a, gpus: 8}\n- {name: b, gpus: 2}\n- {name: c, gpus: 0}\n"),
    ],
)
def test_nodes_are_read_and_those_without_a_gpu_left_out(
    tmp_path: pathlib.Path, name: str, text: str
) -> None:
    found = read(tmp_path, name, text)
    assert [(one.name, one.gpus) for one in found.machines] == [("a", 8), ("b", 2)]
    assert found.without == 1
    assert found.commonest == 8


def test_what_kubectl_writes_is_read(tmp_path: pathlib.Path) -> None:
    found = read(tmp_path, "nodes.json", json.dumps(CLUSTER))
    (machine,) = found.machines
    assert (machine.name, machine.gpus, found.without) == ("gpu-1", 4, 1)
    offered = dict(machine.allocatable(3))
    assert offered == {"cpu": 8000, "memory": 1 << 30, "nvidia.com/gpu": 3, "pods": 110}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("n.csv", "name,gpus\na,8\na,8\n", "node 'a' is there twice"),
        ("n.csv", "name,gpus\na,many\n", "line 2: gpus is 'many'; write a whole number"),
        ("n.csv", "name,model\na,T4\n", "line 2: has no gpus; say how many GPUs"),
        ("n.csv", "name,gpus\na,0\n", "no node of 1 has a GPU"),
        ("n.csv", "name,gpus\na,9999\n", "gpus is 9999; write a whole number, 0 to 1024"),
        ("n.json", "{", "is no JSON"),
        ("n.json", "{}", "has no list of nodes"),
        ("n.yaml", "- gpus: 8\n", "node 1: has no name"),
        ("n.yaml", "- {name: a, gpus: 8, colour: red}\n", "node 1: 'colour' means nothing here"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_a_remedy(
    tmp_path: pathlib.Path, name: str, text: str, words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(tmp_path, name, text)


def test_a_replay_places_gangs_on_unlike_nodes() -> None:
    shape = world.Shape(3, 8, (*inventory.alike(2, 8), inventory.Machine("small", 2)))
    assert (shape.gpus, shape.words) == (18, "3 listed nodes, 18 GPUs")
    books = check.Books(shape, replays.FREE)
    place = world.World(shape, replays.FREE, model.Queue("q"), log=digest.Log(), witnesses=[books])
    works = [work("wide", gpus=16, runs=HOUR), work("two", gpus=2, runs=HOUR), work("next", gpus=8)]
    load = workload.Workload("made up", workload.ordered(works))
    outcome = replay.Replay(load, place, estimates.Exact(), config=model.Config()).run()
    began = {life.work.key: (life.first_start or 0) - replays.EPOCH for life in outcome.lives}
    assert began == {"wide": 0, "two": 0, "next": HOUR}
    assert books.violations == []


def run(tmp_path: pathlib.Path, *more: str) -> testing.Result:
    trace, nodes = tmp_path / "trace.csv", tmp_path / "nodes.csv"
    trace.write_text("key,submit_ms,duration_ms,gpus\na,0,60000,8\nb,0,60000,2\nc,0,60000,24\n")
    nodes.write_text(OPENB)
    arguments = ["run", "--trace", f"lstqueue:{trace}", "--deadlines", "none", *more]
    return testing.CliRunner().invoke(cli.main, ["evaluate", *arguments, "--inventory", str(nodes)])


def test_a_gang_that_no_set_of_nodes_holds_is_left_out_and_counted(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "2 listed nodes, 10 GPUs" in " ".join(result.output.split())
    assert "1 row left out: wider than the cluster" in result.output
    split = run(tmp_path, "--gpus-per-node", "4")
    assert split.exit_code == 0, split.output


def test_nodes_are_given_once(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "--nodes", "2")
    assert "--nodes and --inventory both say which nodes there are" in " ".join(result.output.split())
    none = testing.CliRunner().invoke(cli.main, ["evaluate", "run", "--trace", "swf:missing"])
    assert "say how many --nodes there are, or give their --inventory" in " ".join(none.output.split())


def test_the_recorded_inventory_is_read() -> None:
    found = inventory.read(pathlib.Path(trace_files.real("alibaba-openb-2023/openb_node_list_all_node.csv")))
    assert (len(found.machines), found.without) == (1213, 310)
    assert sum(machine.gpus for machine in found.machines) == 6212
    assert found.commonest == 8
