"""Room that jobs are given, claim, are promised or have kept for them: whole gangs, in the words of a plan.

Values only, as in `model`, which has them under the same names.
"""

from __future__ import annotations

import enum
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


@dataclass(frozen=True, slots=True)
class Slot:
    """Room that a job owns from `start` to `finish` (ms since the epoch), parallel to its groups.

    In it the job ends by its deadline, should nothing else come of it before: `finish` is no later than the
    deadline and leaves time for others to leave, for the launch, and for `hi`, the most run time in ms that
    the job was thought to have before it when this was promised. Others may be there until `start`.
    """

    groups: tuple[GroupPlacement, ...]
    start: int
    finish: int
    hi: int


class Cause(enum.Enum):
    """Why a promise could not be kept."""

    RAN_PAST_HI = "ran past hi"  # it ran longer than it was thought to at most
    CAPACITY = "capacity lost"  # nodes or quota went
    STUCK = "stuck termination"  # those in its slot did not leave in time
    EDIT = "edit"  # of the job or its queue


@dataclass(frozen=True, slots=True)
class Promise:
    """A slot that a job owns from now on, instead of any that it owned."""

    uid: str
    slot: Slot


@dataclass(frozen=True, slots=True)
class Revoke:
    """A promise to be taken back, in words `why`."""

    uid: str
    cause: Cause
    why: str


@dataclass(frozen=True, slots=True)
class Round:
    """How far those who have no promise were looked at again, in the order of their uids.

    The last was `after`, `at` ms since the epoch; it goes on from there, at the last uid to the first, until
    `until` was.
    """

    after: str
    until: str
    at: int
