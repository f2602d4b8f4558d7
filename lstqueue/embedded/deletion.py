"""What a DELETE does to an object: it goes at once, or is marked and waits.

The steps of a real server: garbage-collection finalizers by propagation policy, a grace period for kinds that
end gracefully (pods), finalizers that hold the object, and removal by a later write once nothing holds it.
Collecting dependents is a controller's work, not done here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lstqueue.embedded import metadata
from lstqueue.kube import port

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object as marked (None: unchanged), and whether it goes now."""

    marked: port.Object | None
    remove: bool


def decide(
    old: port.Object, *, now_ms: int, grace: int | None, asked: int | None, propagation: str
) -> Outcome:
    """Work out what a DELETE does.

    Args:
        old: the stored object.
        now_ms: time of the request.
        grace: seconds that the kind grants this object, None for a kind that does not end gracefully.
        asked: grace period in the request, seconds, None when not stated.
        propagation: Background, Foreground or Orphan; empty leaves the finalizers as they are.
    """
    meta: dict[str, Any] = dict(old["metadata"])
    graceful = False
    if grace is not None:
        if "deletionTimestamp" not in meta:
            _mark(meta, now_ms + grace * 1000, grace)
            graceful = True
        elif meta.get("deletionGracePeriodSeconds"):
            if asked is None or asked >= meta["deletionGracePeriodSeconds"]:
                return Outcome(None, remove=False)
            start = (
                metadata.parse_timestamp(meta["deletionTimestamp"])
                - meta["deletionGracePeriodSeconds"] * 1000
            )
            meta["deletionTimestamp"] = metadata.timestamp(start + asked * 1000)
            meta["deletionGracePeriodSeconds"] = asked
            graceful = True
    _set_finalizers(meta, propagation)
    new = {**old, "metadata": meta}
    held = _held(new)
    if held and not graceful:
        _hold(meta, now_ms)
    if not held and not graceful:
        return Outcome(None, remove=True)
    if old["kind"] == "Namespace":
        new["status"] = {**old["status"], "phase": "Terminating"}
    remove = not held and meta["deletionGracePeriodSeconds"] == 0
    return Outcome(new if new != old else None, remove=remove)


def _mark(meta: dict[str, Any], at_ms: int, grace: int) -> None:
    meta["deletionTimestamp"] = metadata.timestamp(at_ms)
    meta["deletionGracePeriodSeconds"] = grace
    # Deletion changes what controllers must do with the object, so its generation moves as for a spec change.
    if meta.get("generation"):
        meta["generation"] += 1


def _hold(meta: dict[str, Any], now_ms: int) -> None:
    if "deletionTimestamp" not in meta:
        _mark(meta, now_ms, 0)
        return
    if metadata.parse_timestamp(meta["deletionTimestamp"]) > now_ms:
        meta["deletionTimestamp"] = metadata.timestamp(now_ms)
    meta["deletionGracePeriodSeconds"] = 0


def _set_finalizers(meta: dict[str, Any], propagation: str) -> None:
    if not propagation:
        return
    kept = [item for item in meta.get("finalizers") or () if item not in (FOREGROUND, ORPHAN)]
    if propagation in _POLICIES:
        kept.append(_POLICIES[propagation])
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)


def finished(new: port.Object) -> bool:
    """Whether a write has taken away the last thing that held an object marked for deletion."""
    meta = new["metadata"]
    return "deletionTimestamp" in meta and not _held(new) and not meta.get("deletionGracePeriodSeconds")


def _held(new: port.Object) -> bool:
    # Namespaces have a list of their own, in their spec, emptied through a subresource.
    own = new.get("spec", {}).get("finalizers") if new["kind"] == "Namespace" else None
    return bool(new["metadata"].get("finalizers") or own)
