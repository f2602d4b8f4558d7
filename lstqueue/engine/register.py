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
        places: list[int] = [bisect.bisect_left(keys, key) for key, _, _ in come]
        edits = sorted([*((place, True) for place in out), *((place, False) for place in places)])
        figures = _pieced(self.figures, edits, [row for _, _, row in come])
        if not keys:
            return Register([key for key, _, _ in come], _columns(come, len(lists)), figures)
        number = len(come)
        for place, gone in reversed(edits):
            if gone:
                del keys[place]
                for one in lists:
                    del one[place]
            else:
                number -= 1
                key, items, _ = come[number]
                keys.insert(place, key)
                for one, item in zip(lists, items, strict=True):
                    one.insert(place, item)
        return Register(keys, lists, figures)


def _columns(rows: Sequence[Row[Key]], lists: int) -> tuple[list[Any], ...]:
    return tuple([[items[which] for _, items, _ in rows] for which in range(lists)])


Edit = tuple[int, bool]
"""(a place as it was, whether what was there goes; else something comes in front of it)."""


def _pieced(figures: Ints, edits: Sequence[Edit], rows: Sequence[Sequence[int]]) -> Ints:
    """Columns without some, and with others, in the order of the edits.

    Numpy's own `delete` and `insert` take five times as long.
    """
    new: Ints = np.array(rows, dtype=np.int64).reshape(len(rows), len(figures)).T
    if not figures.shape[1]:
        return new
    pieces: list[Ints] = []
    done = number = 0
    for place, gone in edits:
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
