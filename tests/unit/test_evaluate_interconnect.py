"""Replays on an interconnect: gangs run as much longer as their place is slower, and plans know it."""

from __future__ import annotations

import pathlib

import click
import pytest

from cases import replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.evaluate import evaluation, interconnects, options, policies

SHARE = interconnects.Wishes(communication=300_000)
CLOS = "clos:2:2:2"
"""Leaf groups of two nodes, two of them in a block; an uplink carries half of what they could send."""


def test_a_gang_in_one_leaf_group_runs_as_long_as_it_takes_and_spread_it_runs_longer() -> None:
    near = replays.run([work("a", gpus=16)], nodes=4, topology=CLOS, wishes=SHARE)
    assert (near.done("a"), near.life("a").slowdown) == (HOUR, 1_000_000)
    far = replays.run([work("a", gpus=24)], nodes=4, topology=CLOS, wishes=SHARE)
    # One of its three nodes has half of what leads out of two: half the ring, and twice the way.
    assert far.life("a").slowdown == 1_000_000 + 290_000 + 10_000
    assert far.done("a") == HOUR * 13 // 10


def test_without_communication_no_place_makes_anybody_slower() -> None:
    ran = replays.run([work("a", gpus=24)], nodes=4, topology=CLOS)
    assert (ran.done("a"), ran.life("a").slowdown) == (HOUR, 1_000_000)


def test_what_a_slow_run_saves_is_told_for_the_best_place() -> None:
    long = work("long", gpus=24, runs=10 * HOUR)
    hurried = work("hurried", gpus=32, at=65 * MINUTE, runs=HOUR, due=80 * MINUTE)
    ran = replays.run([long, hurried], nodes=4, topology=CLOS, wishes=SHARE)
    life = ran.life("long")
    assert life.saved == 60 * MINUTE * 10 // 13
    done = ran.done("hurried")
    assert done is not None
    rest = 10 * HOUR - life.saved
    assert ran.done("long") == done + 2 * MINUTE + -(-rest * 13 // 10)


def test_a_gang_waits_for_a_leaf_group_when_that_has_it_done_sooner() -> None:
    wishes = interconnects.Wishes(communication=300_000, preferred="leafgroup")
    busy = [work("x", gpus=8, runs=HOUR), work("y", gpus=8, runs=9 * HOUR), work("z", gpus=16, runs=9 * HOUR)]
    wide = work("wide", gpus=16, at=50 * MINUTE, runs=4 * HOUR)
    ran = replays.run([*busy, wide], nodes=6, topology=CLOS, wishes=wishes)
    assert ran.life("wide").slowdown == 1_000_000
    policy = policies.named("lst:relaxes=false")
    eager = replays.run([*busy, wide], nodes=6, topology=CLOS, wishes=wishes, policy=policy)
    assert eager.times("wide", "admitted") <= ran.times("wide", "admitted")


@pytest.mark.parametrize("name", ["lst-tightest", "lst-most-free", "lst-random"])
def test_other_placements_place_whole_gangs_too(name: str) -> None:
    works = [work(f"w{i}", gpus=8 * (1 + i % 3), at=i * MINUTE, runs=HOUR, due=9 * HOUR) for i in range(12)]
    policy = policies.named(name)
    ran = replays.run(works, nodes=6, topology=CLOS, wishes=SHARE, policy=policy, audit=False)
    assert all(ran.done(f"w{i}") is not None for i in range(12))
    again = replays.run(works, nodes=6, topology=CLOS, wishes=SHARE, policy=policy, audit=False)
    assert again.digest == ran.digest


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topology": "clos:4"}, "write clos:NODES:LEAVES"),
        ({"topology": "clos:0:1"}, "write clos:NODES:LEAVES"),
        ({"topology": "slurm:/nowhere"}, "/nowhere"),
        ({"topology": "clos:2:2", "prefer": "rack"}, "level rack: not in this topology"),
        ({"communication": 0.1}, "need --topology"),
        ({"topology": "clos:2:2", "policy": "kube-scheduler"}, "does not go with the policy kube-scheduler"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], problem: str, tmp_path: pathlib.Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("key,submit_ms,duration_ms,gpus,user\na,0,3600000,8,ada\n")
    one = options.One(trace=f"lstqueue:{trace}", nodes=4, **given)  # type: ignore[arg-type]  # any option
    with pytest.raises(click.ClickException, match=problem):
        evaluation.evaluated(one, lambda _: None)


def test_a_source_has_to_have_as_many_nodes_as_there_are(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "topology.conf"
    source.write_text(
        "SwitchName=l0 Nodes=n[0-1]\nSwitchName=l1 Nodes=n[2-3]\nSwitchName=s Switches=l[0-1]\n"
    )
    machines = [(f"m{i}", 8) for i in range(3)]
    made = interconnects.read(f"slurm:{source}", machines, SHARE, named=False)
    assert made.domains.nodes == ("m0", "m1", "m2")
    alone = interconnects.read("clos", [(f"m{i}", 8) for i in range(40)], SHARE, named=False)
    assert [len(level.names) for level in alone.domains.levels] == [2, 5]
    with pytest.raises(interconnects.InterconnectError, match="has 4 nodes, and there are 5"):
        interconnects.read(f"slurm:{source}", [(f"m{i}", 8) for i in range(5)], SHARE, named=False)
    with pytest.raises(interconnects.InterconnectError, match="names none of the nodes"):
        interconnects.read(f"slurm:{source}", machines, SHARE, named=True)


def test_a_source_without_rates_is_told_where_gangs_communicate() -> None:
    source = f"slurm:{pathlib.Path(__file__).parents[2] / 'examples' / 'topology' / 'tree.topology.conf'}"
    machines = [(f"n{place}", 8) for place in range(4)]
    mind = interconnects.read(source, machines, SHARE, named=False).mind
    assert mind is not None
    assert "tells no rates" in mind
    assert interconnects.read(source, machines, interconnects.Wishes(), named=False).mind is None
    assert interconnects.read(CLOS, machines, SHARE, named=False).mind is None
