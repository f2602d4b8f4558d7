"""Which object is the queued unit: the topmost supported kind on the way up the controllers of a Job.

`walk` is pure: it is given what was read so far, and answers, or names the owner to read next. Owners are
known by UID: one that was deleted and created again under its name is another object. What cannot be read
ends the walk and counts as transparent, so that tools nobody has heard of may create queued Jobs.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import names

DEEPEST = 10
"""Owners above a Job that are looked at; a longer chain is a loop or a mistake."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of an object, as its owner reference names it."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """Its API group, "" for the core."""
        return self.api_version.rpartition("/")[0]


class Role(enum.Enum):
    """What a kind of owner means for the Jobs below it."""

    UNIT = "unit"  # a kind that is queued itself
    TRANSPARENT = "transparent"  # looked through, up to its own owner
    OURS = "ours"  # a DeadlineJob: the Job is a child of an inline gang
    UNSUPPORTED = "unsupported"  # suspends and resumes its Jobs by itself
    UNKNOWN = "unknown"  # not readable


ROLES: Mapping[tuple[str, str], Role] = {
    ("batch", "Job"): Role.UNIT,
    ("kubeflow.org", "PyTorchJob"): Role.UNIT,
    ("batch", "CronJob"): Role.TRANSPARENT,
    (names.GROUP, "DeadlineJob"): Role.OURS,
    ("jobset.x-k8s.io", "JobSet"): Role.UNSUPPORTED,
    ("trainer.kubeflow.org", "TrainJob"): Role.UNSUPPORTED,
    ("ray.io", "RayJob"): Role.UNSUPPORTED,
    ("ray.io", "RayCluster"): Role.UNSUPPORTED,
    ("kubeflow.org", "MPIJob"): Role.UNSUPPORTED,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Role.UNSUPPORTED,
}
"""By API group and kind; the admission policies list those whose jobs are left alone, too."""


@dataclass(frozen=True, slots=True)
class Known:
    """An owner as it was read: its own controller, None without one. `gone`: no object has that UID."""

    owner: Owner | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """Where a walk ended.

    `ask` names an owner to be read before there is an answer. Else `top` is the unit above, None where the
    Job itself is the unit. `ours` says that a DeadlineJob made it. `unsupported` is the owner whose kind
    queues its children by itself, `unread` the owner at which the walk had to end.
    """

    ask: Owner | None = None
    top: Owner | None = None
    ours: bool = False
    unsupported: Owner | None = None
    unread: Owner | None = None


def role(owner: Owner) -> Role:
    """Return what the kind of an owner means."""
    return ROLES.get((owner.group, owner.kind), Role.UNKNOWN)


def walk(owner: Owner | None, known: Mapping[str, Known]) -> Found:
    """Find the unit that a Job with this controller belongs to; `known` holds what was read, by UID."""
    top: Owner | None = None
    for _ in range(DEEPEST):
        if owner is None:
            break
        kind = role(owner)
        if kind is Role.OURS:
            return Found(ours=True)
        if kind is Role.UNSUPPORTED:
            return Found(top=top, unsupported=owner)
        if kind is Role.UNKNOWN:
            return Found(top=top, unread=owner)
        seen = known.get(owner.uid)
        if seen is None:
            return Found(ask=owner, top=top)
        if seen.gone:
            # What is left of it will be collected; nobody above speaks for the Job any more.
            break
        if kind is Role.UNIT:
            top = owner
        owner = seen.owner
    return Found(top=top)


def controller(meta: Mapping[str, Any]) -> Owner | None:
    """Return the controller that the metadata of an object names, None without one; nothing is its own."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller") and reference.get("uid") != meta.get("uid"):
            return Owner(
                api_version=str(reference.get("apiVersion") or ""),
                kind=str(reference.get("kind") or ""),
                name=str(reference.get("name") or ""),
                uid=str(reference.get("uid") or ""),
            )
    return None


def read(owner: Owner, raw: Mapping[str, Any] | None) -> Known:
    """Return what reading an owner by its name has shown; None for an object that is not there."""
    if raw is None or raw["metadata"]["uid"] != owner.uid:
        return Known(gone=True)
    return Known(owner=controller(raw["metadata"]))
