"""What a gang asks of the interconnect, as its user sees it: where it goes, and why it waits."""

from __future__ import annotations

import dataclasses

from cases import interconnects
from cases.interconnects import NOW
from lstqueue.engine import decide, model
from lstqueue.topology import domains
from lstqueue.topology.model import PodShape, resources

CONFIG = model.Config(forecast_depth=0)
LEAF = model.Locality(required="leafgroup")


def test_a_gang_goes_into_the_fewest_domains_in_rank_order() -> None:
    found = interconnects.fabric(2, 2, 3)  # l0: n0 n4 n8, and so on
    plan = decide.decide(interconnects.snapshot(found, [interconnects.job(0, 3)]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n0", "n4", "n8"]


def test_the_leader_and_its_workers_share_the_required_domain() -> None:
    found = interconnects.fabric(2, 2, 3)
    nodes = [interconnects.node(name, used=1 if name in ("n1", "n0") else 0) for name in found.nodes]
    one = interconnects.job(0, 2, leader=True, locality=LEAF)
    plan = decide.decide(interconnects.snapshot(found, [one], nodes), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n0", "n4", "n8"]


def test_a_node_without_the_level_is_never_used_for_it() -> None:
    found = interconnects.fabric(1, 1, 3, ragged=True)  # n2 is in no leaf group
    plan, message = _waits(found, interconnects.job(0, 3, locality=LEAF))
    assert plan.updates[0].verdict is not None
    assert plan.updates[0].verdict.level is model.Level.IMPOSSIBLE
    assert message == (
        'Group "worker" is 3 pods of 8 nvidia.com/gpu in one leafgroup, and at most 2 of them fit in one'
        " (2 in l0 of b0 of 1 leafgroup) even when empty; ask for less, or for less of the interconnect."
    )
    free = interconnects.snapshot(found, [interconnects.job(0, 3)])
    assert decide.decide(free, NOW, CONFIG).admit  # unconstrained it may


def test_a_level_that_does_not_exist_is_named() -> None:
    rack = model.Locality(required="rack")
    _, message = _waits(interconnects.fabric(1, 2, 2), interconnects.job(0, 2, locality=rack))
    assert message == (
        "It has to be in one rack, and the interconnect has no such level (it has block, leafgroup); correct"
        " spec.topology.required."
    )
    seen = interconnects.snapshot(None, [interconnects.job(0, 2, locality=rack)], [interconnects.node("n0")])
    assert "nothing is known of an interconnect" in decide.decide(seen, NOW, CONFIG).updates[0].message


def test_it_waits_until_one_domain_has_room_whatever_the_sum() -> None:
    found = interconnects.fabric(2, 2, 3)
    busy = {"n0", "n1", "n2", "n3"}
    nodes = [interconnects.node(name, used=8 * (name in busy)) for name in found.nodes]
    one = interconnects.job(0, 3, locality=LEAF)
    plan = decide.decide(interconnects.snapshot(found, [one], nodes), NOW, CONFIG)
    assert plan.updates[0].code is model.Code.NO_ROOM
    assert plan.updates[0].message == (
        'Group "worker" is 3 pods of 8 nvidia.com/gpu in one leafgroup, and at most 2 of them fit in one (2'
        " in l0 of b0, 2 in l2 of b0 and 2 in l1 of b1 of 4 leafgroups) now; it starts when others leave."
    )


def test_a_gang_that_comes_back_goes_to_its_old_domain_first() -> None:
    found = interconnects.fabric(2, 2, 3)
    plan = decide.decide(interconnects.snapshot(found, [interconnects.job(0, 2)]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n0", "n4"]
    assert plan.admit[0].domain == "b0/l0"
    back = interconnects.job(0, 2, home="b1/l3", avoid=("n3",))
    plan = decide.decide(interconnects.snapshot(found, [back]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n7", "n11"]
    wide = interconnects.job(0, 3, home="b1/l3", avoid=("n3",))  # two are left there
    plan = decide.decide(interconnects.snapshot(found, [wide]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n0", "n4", "n8"]
    gone = interconnects.job(0, 2, home="b7/l9")
    plan = decide.decide(interconnects.snapshot(found, [gone]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n0", "n4"]


def test_slices_share_their_domain() -> None:
    found = interconnects.fabric(2, 2, 3)
    pairs = model.Locality(slice_size=2, slice_level="leafgroup")
    one = interconnects.job(0, 6, locality=pairs)
    plan = decide.decide(interconnects.snapshot(found, [one]), NOW, CONFIG)
    leaf = {name: int(name[1:]) % 4 for name in found.nodes}
    ranks = [leaf[name] for name in interconnects.nodes_of(plan.admit[0])]
    assert [ranks[i] == ranks[i + 1] for i in (0, 2, 4)] == [True] * 3
    _, message = _waits(found, interconnects.job(0, 10, locality=pairs))
    assert message.startswith(
        'Group "worker" is 10 pods of 8 nvidia.com/gpu, 2 at a time in one leafgroup, and 8 of them fit so'
    )
    _, message = _waits(found, interconnects.job(0, 5, locality=pairs))
    assert "5 pods, which is no multiple of 2" in message


def test_a_ring_gets_the_bandwidth_that_is_asked_for_or_the_gang_waits() -> None:
    paths: dict[str, domains.Path] = {f"n{i}": (f"l{i % 2}",) for i in range(4)}
    uplinks = {("l0",): 20_000, ("l1",): 20_000}
    found = domains.arrange(["leafgroup"], paths, uplinks=uplinks, links=dict.fromkeys(paths, 50_000))
    fast = model.Locality(min_bandwidth=40_000)
    nodes = [interconnects.node(name, used=8 * (name in ("n0", "n1"))) for name in found.nodes]
    one = interconnects.job(0, 2, locality=fast)
    waits = decide.decide(interconnects.snapshot(found, [one], nodes), NOW, CONFIG)
    assert waits.updates[0].message == (
        "There is room for it, but none in which its ring has 40 GB/s; it starts when others leave."
    )
    starts = decide.decide(interconnects.snapshot(found, [one]), NOW, CONFIG)
    assert interconnects.nodes_of(starts.admit[0]) == ["n0", "n2"]
    _, message = _waits(found, interconnects.job(0, 4, locality=fast))
    assert "even when empty; lower spec.topology.minBandwidth" in message


def test_pods_without_gpus_stay_off_nodes_that_have_some() -> None:
    found = domains.arrange(["leafgroup"], {"n0": ("l0",), "n1": ("l0",), "n2": ("l1",)})
    plain = dataclasses.replace(interconnects.node("n2"), allocatable=resources({"cpu": 64_000, "pods": 110}))
    gpus = [
        dataclasses.replace(
            interconnects.node(name),
            allocatable=resources({"cpu": 64_000, "pods": 110, interconnects.GPU: 8}),
        )
        for name in ("n0", "n1")
    ]
    shape = PodShape(resources({"cpu": 1000, "pods": 1}))
    one = dataclasses.replace(interconnects.job(0, 2), groups=(model.Group("worker", 2, shape),))
    plan = decide.decide(interconnects.snapshot(found, [one], [*gpus, plain]), NOW, CONFIG)
    assert interconnects.nodes_of(plan.admit[0]) == ["n2"]


def test_the_whole_gang_uses_the_next_pool_when_the_first_cannot_hold_it_together() -> None:
    found = domains.arrange(["leafgroup"], {f"n{i}": (f"l{i // 2}",) for i in range(4)})
    nodes = [
        dataclasses.replace(
            interconnects.node(name), labels=(("kind", "a" if name in ("n0", "n2") else "b"),)
        )
        for name in found.nodes
    ]
    pools = tuple(
        model.Pool(kind, selector=(("kind", kind),), nominal=((interconnects.GPU, 16),)) for kind in "ab"
    )
    seen = interconnects.snapshot(found, [interconnects.job(0, 2, locality=LEAF)], nodes)
    both = dataclasses.replace(seen, queues=(model.Queue("q", pools=pools),))
    assert decide.decide(both, NOW, CONFIG).admit == ()  # one pod of each would do, but a group uses one pool
    leader = dataclasses.replace(interconnects.job(0, 1, leader=True, locality=LEAF))
    plan = decide.decide(dataclasses.replace(both, jobs=(leader,)), NOW, CONFIG)
    assert len(plan.admit) == 1


def _waits(found: domains.Domains, job: model.Job) -> tuple[model.Plan, str]:
    plan = decide.decide(interconnects.snapshot(found, [job]), NOW, CONFIG)
    assert plan.admit == ()
    assert plan.updates[0].code is model.Code.NO_MATCHING_NODES
    return plan, plan.updates[0].message
