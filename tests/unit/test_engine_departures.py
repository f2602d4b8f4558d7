"""What becomes free when, in columns: sums are exact, whatever the amounts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lstqueue.engine import departures, model, quota, room
from lstqueue.topology import capacity

QUEUE = model.Queue("q", pools=(model.Pool("p", nominal=(("memory", 1 << 62), ("cpu", 10))),))
NODES = np.array([0, 2])


def a_room() -> room.Room:
    rows = capacity.Rows((), ("cpu",), np.full((1, 3), 10))
    free = room.Room(capacity.Ledger(rows, np.zeros((1, 3), dtype=np.int64)), quota.Quota((QUEUE,), ()))
    free.quota.free = [0, 0]
    return free


def leaves(amount: int, *, cpu: int) -> list[room.Release]:
    return [room.Release("q", NODES, np.full((1, 2), cpu), ((0, amount), (1, cpu)))]


@pytest.mark.parametrize("amount", [1, 1 << 43, 1 << 62])
def test_amounts_add_up_beyond_64_bits(amount: int) -> None:
    several = departures.Departures((at, leaves(amount, cpu=1)) for at in range(5))
    several.insert(2, (2, leaves(3, cpu=2)))
    several.remove(0)
    found: list[Any] = []
    for count in range(6):
        free = a_room()
        several.leave(free, 0, count)
        found.append((free.quota.free, free.ledger.free.tolist()))
    assert found == [
        ([0, 0], [[0, 0, 0]]),
        ([amount, 1], [[1, 0, 1]]),
        ([amount + 3, 3], [[3, 0, 3]]),
        ([2 * amount + 3, 4], [[4, 0, 4]]),
        ([3 * amount + 3, 5], [[5, 0, 5]]),
        ([4 * amount + 3, 6], [[6, 0, 6]]),
    ]
