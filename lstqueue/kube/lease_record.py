"""What a Lease says, what a candidate makes of it, and how it is written. Pure: no server, no clock.

The fields are those of client-go's elector, so that `kubectl get lease` reads as for Kubernetes' own
components. Times in the Lease are written for people and never compared with anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lstqueue.api import times
from lstqueue.kube import port

JITTER = 0.2
"""Part of the retry period that varies, so that replicas do not ask in step."""

GIVEN_BACK = 1
"""Seconds of duration in a Lease without a holder that was given back, as client-go does it. One whose holder
was only removed by hand has the old duration, and its leader may well live."""

LONGEST = 60
"""Seconds of duration above which a Lease is not believed: nobody waits for a slip of the hand."""

_TRANSITIONS = 2**31
"""Where the counter of holders wraps; the server keeps it in 32 bits."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Which Lease, as whom, and its times.

    Attributes:
        namespace: of the Lease.
        name: of the Lease.
        identity: of this process; must be no other's, past ones of the same pod included.
        duration: seconds that others wait after the last sign of life.
        deadline: seconds after its last renewal at which a leader gives up by itself.
        retry: seconds between two looks or renewals, up to a fifth more.
    """

    namespace: str
    name: str
    identity: str
    duration: int = 15
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("terms.identity is empty; it must name this process")
        if not 1 < self.duration <= LONGEST:
            raise ValueError(f"terms.duration is {self.duration}; it must be from 2 to {LONGEST} seconds")
        if not 0 < self.retry * (1 + JITTER) < self.deadline < self.duration:
            raise ValueError(
                f"terms.retry {self.retry}, deadline {self.deadline} and duration {self.duration} "
                "must ascend, the first by more than a fifth"
            )

    @property
    def answer(self) -> float:
        """Seconds that one try may take, and in which a leader that lives and reaches the server writes."""
        return 2 * self.retry

    def __str__(self) -> str:
        return f"Lease {self.namespace}/{self.name}"


class Watchman:
    """Tells when a candidate may take the Lease, by the candidate's own clock.

    Signs of life are changes, and their age counts from when they were seen. A Lease that is not there, or
    that lost its holder by hand, says nothing about a leader. It may live, and is given the time to write the
    Lease anew. Then it is only claimed, which lets no renewal through any more; and when every leader's time
    must be over by that, it is taken.

    Attributes:
        free_at: time (s) from which on the Lease may be taken.
        unsure: whether it may only be claimed.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._looked = False
        self._seen: tuple[str, Any] | None = None
        self.free_at = float("-inf")
        self.unsure = False
        self._claiming = False

    def see(self, raw: port.Object | None, at: float) -> None:
        """Note what the Lease looked like at a time (s), None for not there; only a change counts."""
        state = None if raw is None else (raw["metadata"]["uid"], raw.get("spec") or {})
        first = not self._looked
        if not first and state == self._seen:
            return
        self._looked, self._seen = True, state
        spec = state[1] if state else {}
        told, holder = spec.get("leaseDurationSeconds") or 0, holder_of(raw)
        self.unsure = not holder and told != GIVEN_BACK
        if holder == self._terms.identity:
            # A claim, or a write of ours whose answer was lost.
            self.free_at = at + self._terms.deadline if self._claiming else at
        elif holder:
            self._claiming = False
            # Another version's longer duration is honoured, as long as it may be meant.
            believed = self._terms.duration <= told <= LONGEST
            self.free_at = at + (told if believed else self._terms.duration)
        elif first or not self.unsure:
            self.free_at = at
        else:
            self.free_at = max(self.free_at - self._terms.deadline, at + self._terms.answer)

    def claim(self) -> None:
        """Note that a claim is about to be sent; it counts from when it is seen."""
        self._claiming = True


def holder_of(raw: port.Object | None) -> str:
    """Return who holds a Lease, "" for nobody."""
    return str(((raw or {}).get("spec") or {}).get("holderIdentity") or "")


def tenure_of(raw: port.Object | None) -> tuple[str, int] | None:
    """Return what two holders in a row never have in common: the Lease itself and its count of holders."""
    if raw is None:
        return None
    return raw["metadata"]["uid"], (raw.get("spec") or {}).get("leaseTransitions") or 0


def claim(raw: port.Object | None, terms: Terms, *, now: int, again: bool) -> port.Object:
    """Return a Lease as its holder writes it, with the version that was read.

    Args:
        raw: as read, None when it is not there.
        terms: of the holder.
        now: ms since the epoch.
        again: whether it was the holder before.
    """
    spec = dict((raw or {}).get("spec") or {})
    count = spec.get("leaseTransitions") or 0
    spec |= {
        "holderIdentity": terms.identity,
        "leaseDurationSeconds": terms.duration,
        "renewTime": _moment(now),
        "acquireTime": (spec.get("acquireTime") if again else None) or _moment(now),
        "leaseTransitions": count if again or raw is None else (count + 1) % _TRANSITIONS,
    }
    if raw is not None:
        return {**raw, "spec": spec}
    return {
        "apiVersion": port.LEASES.api_version,
        "kind": port.LEASES.kind,
        "metadata": {"name": terms.name, "namespace": terms.namespace},
        "spec": spec,
    }


def given_back(raw: port.Object, *, now: int) -> port.Object:
    """Return a Lease as its holder leaves it behind at a time (ms)."""
    spec = {**raw["spec"], "holderIdentity": "", "leaseDurationSeconds": GIVEN_BACK}
    return {**raw, "spec": {**spec, "renewTime": _moment(now)}}


def _moment(now: int) -> str:
    return f"{times.format(now - now % 1000)[:-1]}.{now % 1000:03}000Z"
