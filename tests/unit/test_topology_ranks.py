"""What the order of ranks is worth on the Clos that Alibaba published (LSTQUEUE_DATA; skipped without)."""

import random

import numpy as np

from cases import trace_files
from lstqueue.interconnect import sources
from lstqueue.topology import bandwidth, search, tree, wanted


def test_a_ring_in_rank_order_leaves_each_tor_once() -> None:
    path = trace_files.real("topology/alibaba-lingjun-2023-topo.csv")
    fabric = tree.Tree(sources.read(f"alibaba:{path}").domains)
    whole = np.full((1, fabric.size), 8)
    place = search.find(fabric, wanted.Free(whole, whole), wanted.Wanted((wanted.Group(64, (8,)),)))
    assert place is not None
    nodes = place.parts[0].nodes
    tors = fabric.level("leafgroup")
    used = bandwidth.used(fabric, tors, nodes)
    assert used == 8, "64 hosts on 8 ToRs of 8"
    sorted_edges = bandwidth.crossings(fabric, tors, nodes)
    assert sorted_edges.max() == 1
    assert sorted_edges.sum() == used
    shuffled = nodes.copy()
    random.Random(1).shuffle(shuffled)
    edges = bandwidth.crossings(fabric, tors, shuffled)
    assert edges.sum() > 6 * used
    assert edges.max() >= 7
