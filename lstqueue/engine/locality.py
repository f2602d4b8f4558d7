"""What a gang asks of the interconnect. Values only; `model` has it under the same name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Locality:
    """Which domains the pods of a gang are to share.

    All of them share one of the level `required`, and no node without such a domain is used. Every
    `slice_size` pods of a group, in rank order, share one of `slice_level` (the innermost level when empty);
    groups of a single pod have no slices. `min_bandwidth` is what every edge of its ring needs, in MB/s; 0:
    anything.

    A domain of the level `preferred` is worth waiting for, for `max_wait` ms after submission at most (None:
    as long as that is sooner done). `communication` is the part of a step (ppm) that communicates in the best
    place, by which a place makes it slower; 0: none, or not known.
    """

    required: str = ""
    slice_size: int = 1
    slice_level: str = ""
    min_bandwidth: int = 0
    preferred: str = ""
    max_wait: int | None = None
    communication: int = 0


ANYWHERE = Locality()
