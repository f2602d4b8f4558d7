"""What is near in a fabric whose domains do not nest: average linkage over hops between leaf groups.

A dragonfly's groups and a torus's corners have no switch above them. Units whose mean distance is least are
joined again and again (UPGMA: Sokal and Michener, 1958), and the tree is cut where the step to the next
distance is the largest in proportion.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lstqueue.topology.found import Graph

MOST = 500
"""Units up to which distances are looked at: the work grows with the cube."""
_MOST_STEPS = 20_000_000
"""Cables looked at for hops, some seconds of them."""
_STEP = 1.2
"""How much larger than the one before a distance must be to be a border."""
_FAR = 1e9


def components(graph: Graph, tops: Sequence[frozenset[str]]) -> list[int]:
    """By unit, the first unit that is connected with it by switches, itself included."""
    of: dict[str, int] = {}
    found = []
    for index, its in enumerate(tops):
        home = min((of[top] for top in its if top in of), default=index)
        found.append(home)
        for top in its:
            if top not in of:
                _flood(graph, top, of, home)
    return found


def clusters(graph: Graph, tops: Sequence[frozenset[str]], *, parts: Sequence[int]) -> list[int] | None:
    """By unit, the first that is near it; `parts` where all are alike near, None for more than `MOST`."""
    cables = sum(len(others) for vertex, others in graph.links.items() if graph.kinds[vertex] == "switch")
    if len(tops) > MOST or len(tops) * cables > _MOST_STEPS:
        return None
    hops = _hops(graph, tops)
    heights, joins = _linkage(hops)
    cut = _cut(heights)
    if cut is None:
        return list(parts)
    roots = list(range(len(tops)))
    for height, (one, two) in zip(heights, joins, strict=True):
        if height < cut:
            roots = [one if root == two else root for root in roots]
    return roots


def _flood(graph: Graph, start: str, of: dict[str, int], home: int) -> None:
    of[start] = home
    waiting = deque([start])
    while waiting:
        for other in graph.links[waiting.popleft()]:
            if other not in of and graph.kinds[other] == "switch":
                of[other] = home
                waiting.append(other)


def _hops(graph: Graph, tops: Sequence[frozenset[str]]) -> npt.NDArray[np.float64]:
    """Hops between units over switches; `_FAR` where none lead there."""
    found = np.full((len(tops), len(tops)), _FAR)
    on: dict[str, list[int]] = {}
    for index, its in enumerate(tops):
        for top in its:
            on.setdefault(top, []).append(index)
    for index, its in enumerate(tops):
        reached = dict.fromkeys(its, 0)
        waiting = deque(its)
        while waiting:
            at = waiting.popleft()
            for unit in on.get(at, ()):
                found[index, unit] = min(found[index, unit], reached[at])
            for other in graph.links[at]:
                if other not in reached and graph.kinds[other] == "switch":
                    reached[other] = reached[at] + 1
                    waiting.append(other)
    return found


def _linkage(hops: npt.NDArray[np.float64]) -> tuple[list[float], list[tuple[int, int]]]:
    """Join the nearest two until what is left is not connected; a joined unit has the lower number."""
    count = len(hops)
    near = hops.copy()
    np.fill_diagonal(near, np.inf)
    sizes = np.ones(count)
    heights: list[float] = []
    joins: list[tuple[int, int]] = []
    for _ in range(count - 1):
        one, two = sorted(int(i) for i in np.unravel_index(int(near.argmin()), near.shape))
        height = float(near[one, two])
        if height >= _FAR / count:
            break
        heights.append(height)
        joins.append((one, two))
        mean = (near[one] * sizes[one] + near[two] * sizes[two]) / (sizes[one] + sizes[two])
        near[one], near[:, one] = mean, mean
        near[one, one] = np.inf
        near[two], near[:, two] = np.inf, np.inf
        sizes[one] += sizes[two]
    return heights, joins


def _cut(heights: Sequence[float]) -> float | None:
    """The distance from which on units are apart: above the largest step; None where there is no border."""
    rising = np.maximum.accumulate(np.array(heights)) if heights else np.zeros(0)
    if len(rising) < 2:
        return None
    steps = rising[1:] / np.maximum(rising[:-1], 1)
    at = int(steps.argmax())
    return float(rising[at + 1]) if steps[at] >= _STEP else None
