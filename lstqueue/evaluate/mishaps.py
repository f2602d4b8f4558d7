"""What goes wrong with nodes: they fail, lose a GPU, or are drained, and are put right again.

Each node has its own times for each kind of mishap, drawn from the seed alone, so that every policy meets the
same ones: a Poisson process, and repairs whose length is log-normal. One that meets a node that is out of
service already, in the same way, is passed over. Nothing here knows what runs; `world` says what a mishap
does to gangs.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from lstqueue.engine import model

DAY = 24 * model.HOUR
WILDEST = 10_000.0
"""The highest rate: ten a day for each node."""


class Kind(enum.Enum):
    """What may happen to a node."""

    FAILURE = "failure"  # all of it is gone at once
    GPU = "gpu"  # one GPU of it is
    DRAIN = "drain"  # its pods are asked to leave, and no others come
    MAINTENANCE = "maintenance"  # the same, by a plan


@dataclass(frozen=True, slots=True)
class Rates:
    """How often each kind happens in 1,000 node-days, and how long it lasts.

    Attributes:
        failures: Of whole nodes.
        gpu_failures: Of single GPUs.
        drains: Of nodes that are emptied on purpose.
        repair: Median time in ms until a node is whole again.
        spread: Sigma of the log-normal distribution of that time.
    """

    failures: float = 0.0
    gpu_failures: float = 0.0
    drains: float = 0.0
    repair: int = 4 * model.HOUR
    spread: float = 1.0

    def __post_init__(self) -> None:
        """Refuse rates and times that cannot be.

        Raises:
            ValueError: Names the field and what it must be.
        """
        for name in ("failures", "gpu_failures", "drains"):
            if not 0 <= (value := getattr(self, name)) <= WILDEST:
                raise ValueError(f"rates.{name} is {value}; it must be 0 to {WILDEST:.0f} in 1,000 node-days")
        if self.repair < 1:
            raise ValueError(f"rates.repair is {self.repair} ms; it must be 1 or more")
        if not 0 <= self.spread <= 5:
            raise ValueError(f"rates.spread is {self.spread}; it must be 0 to 5")

    def of(self, kind: Kind) -> float:
        """The rate of one kind."""
        known = {Kind.FAILURE: self.failures, Kind.GPU: self.gpu_failures, Kind.DRAIN: self.drains}
        return known.get(kind, 0.0)


LEAST_EVERY = 60_000
"""Ms between two windows at least: anything shorter is a mistake of the unit, and a replay without an end."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Maintenance: `every` ms, counted from the beginning, nodes are drained for `length` ms.

    Each time it is the turn of the next `share` of the nodes, until all have had theirs and it begins anew.
    """

    every: int
    length: int
    share: float = 1.0

    def __post_init__(self) -> None:
        """Refuse windows that cannot be.

        Raises:
            ValueError: Names the field and what it must be.
        """
        if self.every < LEAST_EVERY:
            raise ValueError(f"windows.every is {self.every} ms; it must be {LEAST_EVERY} ms (1 min) or more")
        if not 0 < self.length < self.every:
            raise ValueError(
                f"windows.length is {self.length} ms; "
                f"it must be above 0 and below their distance, {self.every} ms"
            )
        if not 0 < self.share <= 1:
            raise ValueError(f"windows.share is {self.share}; it must be above 0, at most 1")

    def of(self, node: int, nodes: int, since: int) -> Iterator[Mishap]:
        """Those of one of so many nodes."""
        turns = math.ceil(1 / self.share)
        turn = node * turns // nodes
        for count in itertools.count(turn + 1, turns):
            at = since + self.every * count
            yield Mishap(at, at + self.length, node, Kind.MAINTENANCE, 0.0)


@dataclass(frozen=True, slots=True)
class Mishap:
    """One kind of mishap on a node (by its index) from `at` until `until` (ms since the epoch).

    `draw`, 0 to 1, says which of its GPUs is meant.
    """

    at: int
    until: int
    node: int
    kind: Kind
    draw: float


class Wear:
    """The mishaps of all nodes as time goes by. `down` are those that last, by node and kind."""

    def __init__(
        self, rates: Rates, nodes: int, *, seed: int, since: int, windows: Windows | None = None
    ) -> None:
        self.down: dict[tuple[int, Kind], Mishap] = {}
        self._repairs: list[tuple[int, int, str]] = []
        self._coming: list[tuple[int, int, str, Mishap, Iterator[Mishap]]] = []
        for node in range(nodes):
            for kind in Kind:
                if rates.of(kind):
                    self._draw(_mishaps(rates, kind, node, seed=seed, since=since))
            if windows is not None:
                self._draw(windows.of(node, nodes, since))
        heapq.heapify(self._coming)

    def _draw(self, source: Iterator[Mishap]) -> None:
        mishap = next(source)
        heapq.heappush(self._coming, (mishap.at, mishap.node, mishap.kind.value, mishap, source))

    @property
    def next_mishap(self) -> int | None:
        """When the next one begins, in ms since the epoch; None: never."""
        return self._coming[0][0] if self._coming else None

    @property
    def next_repair(self) -> int | None:
        """When the next one ends; None: all nodes are whole."""
        return self._repairs[0][0] if self._repairs else None

    def take(self, at: int) -> list[tuple[Mishap, bool]]:
        """Return the mishaps that end (False) and begin (True) by `at`, in the order of their times."""
        found: list[tuple[Mishap, bool]] = []
        while True:
            ends, begins = self.next_repair, self.next_mishap
            if ends is not None and ends <= at and (begins is None or ends <= begins):
                _, node, kind = heapq.heappop(self._repairs)
                found.append((self.down.pop((node, Kind(kind))), False))
            elif begins is not None and begins <= at:
                _, node, _, mishap, source = heapq.heappop(self._coming)
                self._draw(source)
                if (node, mishap.kind) not in self.down:
                    self.down[node, mishap.kind] = mishap
                    heapq.heappush(self._repairs, (mishap.until, node, mishap.kind.value))
                    found.append((mishap, True))
            else:
                return found


def _mishaps(rates: Rates, kind: Kind, node: int, *, seed: int, since: int) -> Iterator[Mishap]:
    draw = random.Random(f"{seed}/{kind.value}/{node}")  # noqa: S311 - a simulation, no secret
    at = since
    while True:
        at += max(1, round(draw.expovariate(rates.of(kind) / 1000) * DAY))
        lasts = max(1, round(rates.repair * math.exp(rates.spread * draw.gauss(0, 1))))
        yield Mishap(at, at + lasts, node, kind, draw.random())
