"""By how much a place makes a job slower than the best place would, as predicted.

A step of training is computing and the communication that computing does not hide. The second part of it
grows as the bandwidth of a ring falls, since a ring all-reduce takes a time in inverse proportion to it
(Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009), and a little with the way's length:

    s = (1 - f) + (f - l) · best ring / ring here + l · hops / hops in one leaf group

with f the share of communication in a step on the best place, and l `LATENCY` of the step. The ring is that
of a fabric in which everybody sends: a gang has of every uplink the part that its pods are of those the
domain holds. It lies between 1 and `MOST`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstqueue.topology import bandwidth, tree, wanted
from lstqueue.topology.table import Ints

PPM = 1_000_000
MOST = 4 * PPM
"""No place is predicted to be worse than this: what is beyond nobody measured."""
LATENCY = 10_000
"""Part of a step (ppm) that waits for the way and not for bandwidth, of jobs that communicate at all."""
NEAR = 2
"""Hops between two nodes of one leaf group."""


def of(
    fabric: tree.Tree, whole: Ints, amounts: Sequence[int], parts: Sequence[tuple[Ints, Ints]], share: int
) -> int:
    """The predicted slowdown of a place in ppm, 1,000,000 at best.

    Args:
        fabric: The tree.
        whole: What empty nodes have, by resource and node.
        amounts: What one of the gang's largest pods asks for, by resource.
        parts: (nodes, pods on each) by group.
        share: The part of a step that communicates on the best place, in ppm.
    """
    nodes, inverse = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    if share <= 0 or len(nodes) == 1:
        return PPM
    pods: Ints = np.bincount(inverse, weights=np.concatenate([part[1] for part in parts])).astype(np.int64)
    free = wanted.Free(whole, whole)
    gang = bandwidth.rates(fabric, free, nodes, pods, tuple(amounts), tiers=range(1, fabric.depth + 1))
    best, ring = bandwidth.least(gang.link.tolist()), bandwidth.ring(fabric, nodes, gang)
    latency = min(LATENCY, share)
    slower = (share - latency) * best // ring if best and ring else share - latency
    way = latency * max(bandwidth.hops(fabric, nodes), NEAR) // NEAR
    return max(PPM, min(PPM - share + slower + way, MOST))


def stretched(time: int, slowdown: int) -> int:
    """How long (ms) takes in a place what takes `time` on the best one; rounded up."""
    return -(-time * slowdown // PPM) if slowdown != PPM else time


def shrunk(time: int, slowdown: int) -> int:
    """How much of the best place's time (ms) is done in `time` of a place; rounded down."""
    return time * PPM // slowdown if slowdown != PPM else time
