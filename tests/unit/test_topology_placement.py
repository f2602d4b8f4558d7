from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from lstqueue.topology import capacity, placement, table
from lstqueue.topology.model import Node, PodShape, resources

GPU, NIC = "nvidia.com/gpu", "rdma/ib"
GIB = 1 << 30


def node(name: str, gpus: int, used: int = 0, **more: int) -> Node:
    has = {GPU: gpus, "cpu": 64_000, "memory": 256 * GIB, "pods": 20} | more
    return Node(name, resources(has), resources({GPU: used}))


def pod(gpus: int, **more: int) -> PodShape:
    return PodShape(resources({GPU: gpus, "cpu": 1000, "memory": GIB, "pods": 1} | more))


def ledger(nodes: list[Node], *shapes: PodShape) -> tuple[table.NodeTable, capacity.Ledger]:
    columns = table.NodeTable(nodes)
    names = sorted({name for shape in shapes for name, _ in shape.requests})
    has, used = columns.amounts(names)
    rows: list[capacity.Row] = []
    for shape in shapes:
        mask = columns.mask(shape)
        spare = columns.offers_other(frozenset(name for name, _ in shape.requests if "/" in name))
        rows.append(capacity.Row(shape.requests, mask, columns.mask(shape, lasting=True), spare))
    return columns, capacity.Ledger(capacity.Rows(rows, names, has), has - used)


def place(columns: table.NodeTable, free: capacity.Ledger, row: int, count: int) -> dict[str, int] | None:
    chosen = placement.choose(free, row, count)
    if chosen is None:
        return None
    free.take(row, *chosen)
    return {columns.names[i]: int(n) for i, n in zip(*chosen, strict=True)}


def test_thirty_six_gpus_are_all_in_use_after_fives_ones_and_threes() -> None:
    nodes = [node(f"big-{i}", 8) for i in range(4)] + [node(f"small-{i}", 1) for i in range(4)]
    columns, free = ledger(nodes, pod(5), pod(1), pod(3))
    for row in (0, 1, 2):
        for _ in range(4):
            assert place(columns, free, row, 1) is not None
    assert free.free[free.rows.resources.index(GPU)].tolist() == [0] * 8


def test_the_same_as_three_gangs_of_four_pods() -> None:
    nodes = [node(f"big-{i}", 8) for i in range(4)] + [node(f"small-{i}", 1) for i in range(4)]
    columns, free = ledger(nodes, pod(5), pod(1), pod(3))
    assert place(columns, free, 0, 4) == {f"big-{i}": 1 for i in range(4)}
    assert place(columns, free, 1, 4) == {f"small-{i}": 1 for i in range(4)}
    assert place(columns, free, 2, 4) == {f"big-{i}": 1 for i in range(4)}


def test_fewest_free_units_count_and_not_the_percentage() -> None:
    # 5 of 8 free is a fuller node than 4 of 4 free; the smaller hole is taken all the same.
    columns, free = ledger([node("half", 8, used=3), node("whole", 4)], pod(4))
    assert place(columns, free, 0, 1) == {"whole": 1}


def test_of_equal_holes_the_node_that_takes_more_of_the_gang_is_first() -> None:
    columns, free = ledger([node("a", 4, cpu=2000), node("b", 4), node("c", 4)], pod(1))
    assert place(columns, free, 0, 4) == {"b": 4}


def test_ties_go_to_the_first_name_as_people_count_and_ranks_follow_names() -> None:
    columns, free = ledger([node(name, 8) for name in ("n10", "n9", "n2")], pod(8))
    assert list((place(columns, free, 0, 2) or {}).items()) == [("n2", 1), ("n9", 1)]


def test_a_gang_without_gpus_stays_off_gpu_nodes_while_it_can() -> None:
    cpu = PodShape(resources({"cpu": 32_000, "pods": 1}))
    columns, free = ledger([node("gpu", 8, cpu=32_000), node("plain", 0), node("nic", 0, **{NIC: 1})], cpu)
    assert place(columns, free, 0, 2) == {"plain": 2}
    assert place(columns, free, 0, 3) == {"gpu": 1, "nic": 2}


def test_every_resource_and_pod_slots_limit() -> None:
    shape = pod(1, memory=100 * GIB)
    columns, free = ledger([node("a", 8), node("b", 8, pods=1)], shape)
    assert free.counts.tolist() == [[2, 1]]
    assert place(columns, free, 0, 4) is None
    assert place(columns, free, 0, 3) == {"a": 2, "b": 1}


def test_what_vanished_under_running_pods_counts_as_no_room() -> None:
    _, free = ledger([node("broken", 2, used=8), node("fine", 2)], pod(1))
    assert free.counts.tolist() == [[0, 2]]


def test_huge_requests_fit_nowhere_and_break_nothing() -> None:
    columns, free = ledger([node("a", 8)], pod(1, memory=1 << 70), pod(1))
    assert place(columns, free, 0, 1) is None
    assert place(columns, free, 1, 8) == {"a": 8}


@settings(max_examples=effort.examples(25), deadline=None)
@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=12),
)
def test_undo_restores_and_recounting_agrees_with_counting(
    sizes: list[int], steps: list[tuple[int, int]]
) -> None:
    shapes = (pod(1), pod(3, cpu=9000), PodShape(resources({"cpu": 7000, "pods": 1})))
    _, free = ledger([node(f"n{i}", gpus) for i, gpus in enumerate(sizes)], *shapes)
    before = free.copy()
    taken = []
    for row, count in steps:
        chosen = placement.choose(free, row, count)
        assert (chosen is None) == (int(free.total[row]) < count)
        if chosen is not None:
            free.take(row, *chosen)
            taken.append((row, chosen))
    fresh = capacity.Ledger(free.rows, free.free.copy())
    assert np.array_equal(fresh.counts, free.counts)
    assert np.array_equal(fresh.total, free.total)
    assert (free.free >= 0).all()
    for row, chosen in reversed(taken):
        free.undo(row, *chosen)
    assert np.array_equal(before.free, free.free)
    assert np.array_equal(before.counts, free.counts)
