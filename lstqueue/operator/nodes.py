"""Nodes as the cache keeps them: what placement needs, without heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, quantities
from lstqueue.operator import lenient
from lstqueue.topology import model


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node without its heartbeats, so that equality means that nothing of interest changed.

    `since` is when it last became ready, or ceased to be, and `created` when it was made (ms since the epoch,
    0 where nobody says): one that is made anew under its name is another machine, as its `uid` says.
    """

    name: str
    allocatable: model.Resources
    labels: tuple[tuple[str, str], ...]
    taints: tuple[model.Taint, ...]
    ready: bool
    unschedulable: bool
    since: int = 0
    uid: str = ""
    created: int = 0

    def engine_node(self, used: Mapping[str, int], *, suspect: bool = False) -> model.Node:
        """Combine it with the sum of its bound pods' requests, and what is thought of its domain."""
        return model.Node(
            name=self.name,
            allocatable=self.allocatable,
            used=model.resources(used),
            labels=self.labels,
            taints=self.taints,
            ready=self.ready,
            unschedulable=self.unschedulable,
            suspect=suspect,
        )


def read(raw: Mapping[str, Any]) -> NodeView:
    """Project a node. A device plugin's negative or missing amounts count as none."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = status.get("conditions") or []
    said = next((item for item in conditions if item["type"] == "Ready"), None)
    ready = said is not None and said["status"] == "True"
    amounts = {name: _amount(name, value) for name, value in (status.get("allocatable") or {}).items()}
    return NodeView(
        name=meta["name"],
        allocatable=model.resources(amounts),
        labels=tuple(sorted((meta.get("labels") or {}).items())),
        taints=tuple(
            model.Taint(taint["key"], taint.get("value") or "", taint["effect"])
            for taint in spec.get("taints") or []
        ),
        ready=ready and "deletionTimestamp" not in meta,
        unschedulable=bool(spec.get("unschedulable")),
        since=lenient.time((said or {}).get("lastTransitionTime")),
        uid=meta.get("uid") or "",
        created=lenient.moment(meta.get("creationTimestamp")) or 0,
    )


def _amount(name: str, value: object) -> int:
    try:
        return quantities.parse(name, str(value))
    except errors.BadValueError:
        return 0
