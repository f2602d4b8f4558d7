"""Room that jobs are given, claim or have kept for them: placements of whole gangs, in the words of a plan.

Values only, as in `model`, which has them under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """Where the pods of one group go: one pool, and (node, count) pairs in rank order."""

    pool: str
    nodes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Victim:
    """A job to be suspended for another, in that one attempt (`Job.attempt`) and no later one."""

    uid: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Capacity that a job owns while its victims leave: its whole placement, parallel to its groups.

    It is charged, per node and in its queue's usage, only beyond what its own victims still hold there.
    `expires` is in ms since the epoch. Victims are suspended only once the claim is `committed`: written.
    """

    groups: tuple[GroupPlacement, ...]
    victims: tuple[Victim, ...]
    expires: int
    committed: bool = True


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room kept for a job that waits: its whole placement, parallel to its groups, to be free at `start`.

    `start` is in ms since the epoch. Others may be there until then. `slips` counts how often it was put off.
    """

    groups: tuple[GroupPlacement, ...]
    start: int
    slips: int = 0


@dataclass(frozen=True, slots=True)
class Reserve:
    """Room to be kept for a job from now on, instead of any that was."""

    uid: str
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Unreserve:
    """A reservation to be given up, in words `why`."""

    uid: str
    why: str
