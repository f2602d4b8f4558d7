"""Growing delays between tries, with a jitter that is the same in every run.

Deterministic on purpose: a simulation that is replayed must wait for the same times. Whoever needs replicas
to differ injects a random source.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

_ENOUGH = 64
"""Failures beyond which the step no longer grows; floats overflow at about a thousand."""


def hashed(key: str, number: int) -> float:
    """Return a number in [0, 1) that looks random and depends on the arguments only."""
    return zlib.crc32(f"{key}/{number}".encode()) / 2**32


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds, each between half and all of its step.

    Attributes:
        base: first step.
        factor: growth per failure in a row.
        limit: longest step; also the longest Retry-After that is honoured.
        jitter: maps (what is retried, number) to [0, 1).
    """

    base: float = 0.5
    factor: float = 2.0
    limit: float = 30.0
    jitter: Callable[[str, int], float] = hashed

    def delay(self, key: str, failures: int, *, retry_after: float | None = None) -> float:
        """Return the seconds to wait after a number of failures in a row, from 1."""
        step = min(self.limit, self.base * self.factor ** min(failures - 1, _ENOUGH))
        wait = step * (1 + self.jitter(key, failures)) / 2
        return max(wait, min(retry_after or 0.0, self.limit))
