"""Rows that are kept in order for things that come, change and go: a few lists and columns of integers.

A register is never written to: one with others in it is another, so that a plan may keep what it was made of.
What keys, things and columns mean is their owners' business (`demand`, `flock`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from lstqueue.topology.table import Ints

MANY = 4096
"""Changes that are noted one by one; of more everybody is put in anew."""

Key = TypeVar("Key", str, tuple[int, str])
Row = tuple[Key, tuple[Any, ...], Sequence[int]]
"""(key, an item for each list, an integer for each column)."""


class Changes:
    """Whose rows are to be made anew (uids), until somebody asks: `some`, None for everybody's.

    Nobody may ask for long, so what is noted of those who are gone has a bound.
    """

    __slots__ = ("some",)

    def __init__(self) -> None:
        self.some: set[str] | None = None

    def note(self, uids: Iterable[str]) -> None:
        """Note some more."""
        if self.some is not None:
            self.some.update(uids)
            if len(self.some) > MANY:
                self.some = None


@dataclass(frozen=True, slots=True)
class Register(Generic[Key]):
    """`keys` ascending, none twice; `lists` and the columns of `figures` are in their order."""

    keys: list[Key]
    lists: tuple[list[Any], ...]
    figures: Ints

    def place(self, key: Key) -> int | None:
        """Where a key is; None: nowhere."""
        place = bisect.bisect_left(self.keys, key)
        return place if place < len(self.keys) and self.keys[place] == key else None

    def changed(self, out: Sequence[int], come: Sequence[Row[Key]]) -> Register[Key]:
        """The same without those in some places (ascending) and with others (by ascending keys)."""
        keys, lists = self.keys.copy(), tuple([one.copy() for one in self.lists])
        places = [bisect.bisect_left(keys, key) for key, _, _ in come]
        figures = _pieced(self.figures, out, places, [row for _, _, row in come])
        for place in reversed(out):
            del keys[place]
            for one in lists:
                del one[place]
        for key, items, _ in come:
            place = bisect.bisect_left(keys, key)
            keys.insert(place, key)
            for one, item in zip(lists, items, strict=True):
                one.insert(place, item)
        return Register(keys, lists, figures)


def _pieced(figures: Ints, out: Sequence[int], places: Sequence[int], rows: Sequence[Sequence[int]]) -> Ints:
    """Columns without some, and with others in front of those in some places as they were.

    Numpy's own `delete` and `insert` take five times as long.
    """
    new: Ints = np.array(rows, dtype=np.int64).reshape(len(rows), len(figures)).T
    pieces: list[Ints] = []
    done = number = 0
    for place, gone in sorted([*((place, True) for place in out), *((place, False) for place in places)]):
        pieces.append(figures[:, done:place])
        done = place
        if gone:
            done += 1
        else:
            pieces.append(new[:, number : number + 1])
            number += 1
    pieces.append(figures[:, done:])
    return np.concatenate(pieces, axis=1)


def empty(width: int, lists: int) -> Register[Any]:
    """One of nothing."""
    return Register([], tuple([[] for _ in range(lists)]), np.zeros((width, 0), dtype=np.int64))
