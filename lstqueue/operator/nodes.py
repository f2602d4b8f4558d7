"""Nodes as the cache keeps them: what placement needs, without heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, quantities
from lstqueue.topology import model


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node without its heartbeats, so that equality means that nothing of interest changed."""

    name: str
    allocatable: model.Resources
    labels: tuple[tuple[str, str], ...]
    taints: tuple[model.Taint, ...]
    ready: bool
    unschedulable: bool

    def engine_node(self, used: Mapping[str, int]) -> model.Node:
        """Combine it with the sum of its bound pods' requests."""
        return model.Node(
            name=self.name,
            allocatable=self.allocatable,
            used=model.resources(used),
            labels=self.labels,
            taints=self.taints,
            ready=self.ready,
            unschedulable=self.unschedulable,
        )


def read(raw: Mapping[str, Any]) -> NodeView:
    """Project a node. A device plugin's negative or missing amounts count as none."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = any(
        item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions") or []
    )
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
    )


def _amount(name: str, value: object) -> int:
    try:
        return quantities.parse(name, str(value))
    except errors.BadValueError:
        return 0
