"""What is near in a fabric whose domains do not nest: average linkage over what leaf groups are cabled to.

A dragonfly's groups and a torus's corners have no switch above them. Hops do not tell a cable within a group
from one between groups, and one dead cable changes them; who has the same neighbours belongs together, and
one cable more or less changes that little. So the distance of two units is one minus their overlap, which is
Ružička's index of the cables to each neighbour: wide and short ones weigh more, where all tell how wide or
how short they are. Units whose mean distance is least are joined again and again (UPGMA: Sokal and Michener,
1958). Borders are where the distance grows by a step; of several that one counts which leaves most of what
is near within parts (modularity: Newman and Girvan, 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import networkx
import numpy as np
import numpy.typing as npt

from lstqueue.topology import graph as graphs
from lstqueue.topology.graph import Graph

MOST = 500
"""Units up to which distances are looked at: the work grows with the cube."""
_MOST_STEPS = 400_000_000
"""Cables compared, some seconds of them."""
_STEP = 1.3
"""How much larger than the one before a distance must be to be a border; in a torus none is."""
_LEAST = 0.05
"""Distances below count as equal: a cable in twenty."""
_FAR = 1e6

_Floats = npt.NDArray[np.float64]


def components(graph: Graph, tops: Sequence[frozenset[str]]) -> list[int]:
    """By unit, the first unit that is connected with it by switches, itself included."""
    switches = graph.subgraph(graphs.of(graph, "switch")).copy()
    # What shares a unit is connected by it.
    for its in tops:
        networkx.add_path(switches, sorted(its))
    first: dict[str, int] = {}
    for reached in networkx.connected_components(switches):
        home = next((index for index, its in enumerate(tops) if its & reached), len(tops))
        first.update(dict.fromkeys(reached, home))
    return [min((first[top] for top in its), default=index) for index, its in enumerate(tops)]


def clusters(graph: Graph, tops: Sequence[frozenset[str]], *, parts: Sequence[int]) -> list[int] | None:
    """By unit, the first that is near it; `parts` where all are alike near, None where there are too many."""
    if len(tops) > MOST:
        return None
    cables = _cables(graph, tops)
    if len(tops) ** 2 * cables.shape[1] > _MOST_STEPS:
        return None
    near = _overlaps(cables)
    apart = np.array(parts)[:, None] != np.array(parts)[None, :]
    heights, joins = _linkage(np.where(apart, _FAR, 1 - near))
    best, found = 0.0, list(parts)
    for cut in _steps(heights):
        roots = list(range(len(tops)))
        for height, (one, two) in zip(heights, joins, strict=True):
            if height < cut:
                roots = [one if root == two else root for root in roots]
        if (worth := _modularity(near, roots)) > best:
            best, found = worth, roots
    return found


def _cables(graph: Graph, tops: Sequence[frozenset[str]]) -> _Floats:
    """By unit, how it is cabled to each unit and to each switch that is in none or in several."""
    kinds = graphs.kinds(graph)
    owners: dict[str, list[int]] = {}
    for index, its in enumerate(tops):
        for top in its:
            owners.setdefault(top, []).append(index)
    others = [
        vertex for vertex, kind in kinds.items() if kind == "switch" and len(owners.get(vertex, ())) != 1
    ]
    column = {vertex: len(tops) + number for number, vertex in enumerate(others)}
    column |= {vertex: its[0] for vertex, its in owners.items() if len(its) == 1}
    weigh = _weigher(graph, kinds)
    found = np.zeros((len(tops), len(tops) + len(others)))
    for index, its in enumerate(tops):
        for top in sorted(its):
            for other in graph[top]:
                if kinds[other] == "switch" and column[other] != index:
                    found[index, column[other]] += weigh(graph.edges[top, other])
    most = found.max(initial=1.0)
    for index, its in enumerate(tops):
        found[index, index] = found[index].max() or most  # it is its own neighbour, as near as any
        for top in its:
            if column[top] != index:
                found[index, column[top]] = found[index, index]
    return found


def _weigher(graph: Graph, kinds: dict[str, str]) -> Callable[[Mapping[str, int]], float]:
    """How much a cable counts: its bandwidth, by its latency, each where all cables of switches tell it."""
    cables = [its for one, two, its in graph.edges(data=True) if kinds[one] == kinds[two] == "switch"]
    wide = all(its["bandwidth"] for its in cables)
    late = all(its["latency"] for its in cables)
    return lambda its: (its["bandwidth"] if wide else 1) / (its["latency"] if late else 1)


def _overlaps(cables: _Floats) -> _Floats:
    """Between units, what the cables of both have in common of all: 1 for the same ones, 0 for none."""
    found = np.zeros((len(cables), len(cables)))
    for index, its in enumerate(cables):
        found[index] = np.minimum(its, cables).sum(axis=1) / np.maximum(its, cables).sum(axis=1)
    return found


def _linkage(distances: _Floats) -> tuple[list[float], list[tuple[int, int]]]:
    """Join the nearest two until what is left is not connected; a joined unit has the lower number."""
    count = len(distances)
    near = distances.copy()
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


def _steps(heights: Sequence[float]) -> list[float]:
    """The distances at which a border may be: those a step above the one before."""
    rising = np.maximum.accumulate(np.maximum(np.array(heights), _LEAST)) if heights else np.zeros(0)
    steps = rising[1:] >= _STEP * rising[:-1]
    return [float(height) for height in rising[1:][steps]]


def _modularity(near: _Floats, roots: Sequence[int]) -> float:
    """How much more of what is near lies within parts than by chance, of 1 at most."""
    weights = near.copy()
    np.fill_diagonal(weights, 0)
    degrees = weights.sum(axis=1)
    total = float(degrees.sum())
    if not total:
        return 0.0
    same = np.array(roots)[:, None] == np.array(roots)[None, :]
    return float((weights - np.outer(degrees, degrees) / total)[same].sum()) / total
