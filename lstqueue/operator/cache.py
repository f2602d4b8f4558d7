"""Everything the operator knows of the cluster, as projections, with what it has in flight on top.

Handlers call `apply_*` and nothing else; the loop reads. Never calls the API. Objects are compared by
resourceVersion, so that a late watch event never undoes what a write's own reply has shown already.
Indexes by gang and by node make a change cost what it touches, not the size of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lstqueue.api import names
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger as ledgers
from lstqueue.operator import nodes as node_views
from lstqueue.operator import queues as queue_views
from lstqueue.topology import model as topology

Object = Mapping[str, Any]

BURIED = 20_000
"""How many deleted UIDs are remembered: far more than can be between a reply and its watch event."""
FOR_EVER = 1 << 64
"""Above every resourceVersion."""


@dataclass(slots=True)
class Record:
    """One DeadlineJob and what this process has under way for it.

    `assumed` is an admission that was decided and not confirmed yet: its room is charged at once. `said` is
    what the newest status write on its way will publish. `shapes` come from intake; None until it is done,
    and it is asked again at `ask_at`. `lost` holds children that the watch said are gone; they may only have
    lost our label. `told_at` (ms) is when its user was last told why it waits; 0 calls for telling it anew.
    `held_back` tells the engine not to admit, and the user why. `retry_at` (ms) delays the next write after
    `failures` in a row did not go through; `doubtful` says that it must be read before that, since what it
    looks like now is not known. `templates` are kept while they may be needed, `evicted` are pods that had
    to leave and did: their Job shows only that a pod is gone, which would be the gang's own fault.
    """

    ledger: ledgers.Ledger
    templates: Mapping[str, Object] = field(default_factory=dict)
    children: dict[str, views.ChildView] = field(default_factory=dict)
    pods: dict[str, views.PodView] = field(default_factory=dict)
    evicted: dict[str, views.PodView] = field(default_factory=dict)
    assumed: ledgers.Admission | None = None
    said: model.Published | None = None
    shapes: tuple[model.Group, ...] | None = None
    held_back: str = ""
    held_code: str = ""
    ungated_at: int = 0
    retry_at: int = 0
    ask_at: int = 0
    failures: int = 0
    doubtful: bool = False
    lost: dict[str, views.ChildView] = field(default_factory=dict)
    told_at: int = 0
    engine_job: model.Job | None = None


class Cache:
    """Projections of DeadlineJobs, GPUQueues, child Jobs, pods and nodes.

    `touched` collects the UIDs of DeadlineJobs to look at again, and `touches` is set when there are any;
    `changed` says that a pass could decide something new. `ring` is called on every meaningful change.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self.records: dict[str, Record] = {}
        self.queues: dict[str, queue_views.QueueView] = {}
        self.nodes: dict[str, node_views.NodeView] = {}
        self.touched: set[str] = set()
        self.touches = asyncio.Event()
        self.changed = True
        self._node_used: dict[str, dict[str, int]] = {}
        self._engine_nodes: dict[str, topology.Node] = {}
        self._pods: dict[str, views.PodView] = {}
        self._orphans: dict[str, dict[str, views.PodView]] = {}
        self._children: dict[str, views.ChildView] = {}
        self._children_of: dict[str, dict[str, views.ChildView]] = {}
        self._buried: dict[str, int] = {}

    # DeadlineJobs

    def apply_ledger(self, event: str, raw: Object) -> None:
        """Take in a DeadlineJob as a watch or a write's reply shows it."""
        uid, version = raw["metadata"]["uid"], int(raw["metadata"]["resourceVersion"])
        record = self.records.get(uid)
        if event == "DELETED":
            self._bury(uid, version)
            return
        if version <= self._buried.get(uid, -1) or (record and version <= record.ledger.version):
            return
        seen = ledgers.read(raw, record.ledger if record else None)
        if record is None:
            record = self.records[uid] = Record(seen)
            self._adopt(record)
        if record.evicted and seen.status.restarts != record.ledger.status.restarts:
            record.evicted.clear()
        record.ledger = seen
        record.engine_job = None
        if seen.final:
            record.templates = {}
        elif seen.spec is not None and not record.templates:
            record.templates = {group["name"]: group["template"] for group in raw["spec"]["groups"]}
        if seen.status.admission is not None:
            record.assumed = None
        self._touch(uid)

    def _adopt(self, record: Record) -> None:
        """Give a new record what arrived before it; claims from other namespaces are void."""
        uid, namespace = record.ledger.uid, record.ledger.namespace
        waiting = self._orphans.get(uid, {})
        record.pods = {pod.uid: pod for pod in waiting.values() if pod.namespace == namespace}
        left = {pod.uid: pod for pod in waiting.values() if pod.namespace != namespace}
        if left:
            self._orphans[uid] = left
        else:
            self._orphans.pop(uid, None)
        children = self._children_of.get(uid, {}).values()
        record.children = {child.uid: child for child in children if child.namespace == namespace}

    def _bury(self, uid: str, version: int) -> None:
        record = self.records.pop(uid, None)
        self._remember_end(uid, version)
        if record is not None:
            if record.pods:
                self._orphans[uid] = {**self._orphans.get(uid, {}), **record.pods}
            self._touch(uid)

    def _remember_end(self, uid: str, version: int) -> None:
        """A write's reply may arrive after the watch told of the deletion; it must not revive the object."""
        self._buried[uid] = version
        if len(self._buried) > BURIED:
            self._buried.pop(next(iter(self._buried)))

    # Children and pods

    def apply_child(self, event: str, raw: Object) -> None:
        """Take in a child Job."""
        uid, version = raw["metadata"]["uid"], int(raw["metadata"]["resourceVersion"])
        known = self._children.get(uid)
        if event == "DELETED":
            # One that loses our label ends for the watch, and may get it back. A list's end has no version.
            self._remember_end(uid, version if "spec" in raw else FOR_EVER)
            self._put_child(known, None)
        elif version > self._buried.get(uid, -1) and (known is None or int(known.version) < version):
            self._put_child(known, views.child(raw))

    def _put_child(self, known: views.ChildView | None, seen: views.ChildView | None) -> None:
        if known is not None:
            del self._children[known.uid]
            del self._children_of[known.job][known.uid]
            if not self._children_of[known.job]:
                del self._children_of[known.job]
        if seen is not None:
            self._children[seen.uid] = seen
            self._children_of.setdefault(seen.job, {})[seen.uid] = seen
        for view in (known, seen):
            record = self._record_of(view) if view is not None else None
            if view is not None and record is not None:
                record.children.pop(view.uid, None)
                record.lost.pop(view.uid, None)
                if view is seen:
                    record.children[view.uid] = view
                elif seen is None and view.restart == record.ledger.status.restarts:
                    record.lost[view.uid] = view
                self._touch(view.job)

    def found_child(self, raw: Object) -> None:
        """Take in a child that a watch told was gone, and that is still there."""
        self._buried.pop(raw["metadata"]["uid"], None)
        self.apply_child("ADDED", raw)

    def apply_pod(self, event: str, raw: Object) -> None:
        """Take in a pod, ours or anybody's.

        One that loses our label, or gets it, leaves one watch as DELETED and enters another, in any order and
        at one version. An end told by a list has no labels, and no version that means anything.
        """
        meta = raw["metadata"]
        uid, version = meta["uid"], int(meta["resourceVersion"])
        known = self._pods.get(uid)
        if event == "DELETED":
            listed = "spec" not in raw
            if known is not None and not listed and _only_moved(known, meta):
                return
            self._remember_end(uid, FOR_EVER if listed else version)
            if known is not None:
                self._put_pod(known, None)
        elif version >= self._buried.get(uid, 0) and (known is None or int(known.version) < version):
            self._put_pod(known, views.pod(raw))

    def _put_pod(self, known: views.PodView | None, seen: views.PodView | None) -> None:
        """Replace a pod and what was counted for it."""
        if known is not None:
            self._count(known, -1)
            del self._pods[known.uid]
            if known.job:
                self._leave(known)
        if seen is not None:
            self._count(seen, 1)
            self._pods[seen.uid] = seen
            if seen.job:
                self._enter(seen)
        # A foreign pod matters by the room it takes.
        if _taken(known) != _taken(seen):
            self._stir()

    def _enter(self, pod: views.PodView) -> None:
        record = self._record_of(pod)
        home = record.pods if record is not None else self._orphans.setdefault(pod.job, {})
        home[pod.uid] = pod
        self._touch(pod.job)

    def _leave(self, pod: views.PodView) -> None:
        record = self._record_of(pod)
        if record is not None:
            record.pods.pop(pod.uid, None)
            if pod.disrupted and pod.phase != "Succeeded":
                record.evicted[pod.uid] = replace(pod, phase="Failed", deleting=True)
        else:
            home = self._orphans.get(pod.job, {})
            home.pop(pod.uid, None)
            if not home:
                self._orphans.pop(pod.job, None)
        self._touch(pod.job)

    def _record_of(self, view: views.PodView | views.ChildView) -> Record | None:
        """Return the record a pod or Job belongs to, to be changed; claims across namespaces are void."""
        record = self.records.get(view.job)
        if record is None or record.ledger.namespace != view.namespace:
            return None
        record.engine_job = None
        return record

    def _count(self, pod: views.PodView, sign: int) -> None:
        """Count a pod where it is bound, until it has ended."""
        if pod.node and not pod.gone:
            used = self._node_used.setdefault(pod.node, {})
            for name, amount in pod.requests:
                used[name] = used.get(name, 0) + sign * amount
            if not any(used.values()):
                # Names of nodes that came and went would add up.
                del self._node_used[pod.node]
            self._engine_nodes.pop(pod.node, None)

    # Nodes and queues

    def apply_node(self, event: str, raw: Object) -> None:
        """Take in a node; heartbeats, which change nothing that matters, are dropped here."""
        name = raw["metadata"]["name"]
        if event == "DELETED":
            self.nodes.pop(name, None)
        else:
            seen = node_views.read(raw)
            if self.nodes.get(name) == seen:
                return
            self.nodes[name] = seen
        self._engine_nodes.pop(name, None)
        for record in self.records.values():
            held = record.ledger.status.admission
            if held is not None and held.names(name):
                self.touched.add(record.ledger.uid)
        self._stir()

    def apply_queue(self, event: str, raw: Object) -> None:
        """Take in a GPUQueue."""
        name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
        known = self.queues.get(name)
        if event == "DELETED":
            self._remember_end(uid, FOR_EVER)
            if known is None or known.uid != uid:
                return
            del self.queues[name]
        else:
            seen = queue_views.read(raw)
            if uid in self._buried or (known is not None and known.version >= seen.version):
                return
            self.queues[name] = seen
            if known is not None and known.same_spec(seen):
                return
        for record in self.records.values():
            if record.ledger.spec is not None and record.ledger.spec.queue == name:
                record.engine_job, record.told_at = None, 0
                self.touched.add(record.ledger.uid)
        self._stir()

    # What a sweep compares with

    def ledger_versions(self) -> dict[str, str]:
        """Return the resourceVersion of every DeadlineJob by UID."""
        return {uid: str(record.ledger.version) for uid, record in self.records.items()}

    def queue_versions(self) -> dict[str, str]:
        """Return the resourceVersion of every GPUQueue by UID."""
        return {queue.uid: str(queue.version) for queue in self.queues.values()}

    def remains(self, uid: str, version: str) -> Object:
        """Return the metadata of an object of ours that a list did not show, as a deletion event has it."""
        name = next((queue.name for queue in self.queues.values() if queue.uid == uid), "")
        return {"metadata": {"uid": uid, "name": name, "resourceVersion": version}}

    # Reading

    def engine_nodes(self) -> Iterator[topology.Node]:
        """Yield the nodes with what is used on them; only those that changed are built anew."""
        for name, view in self.nodes.items():
            node = self._engine_nodes.get(name)
            if node is None:
                node = view.engine_node(self._node_used.get(name, {}))
                self._engine_nodes[name] = node
            yield node

    def orphan_pods(self) -> Iterable[tuple[str, dict[str, views.PodView]]]:
        """Return pods of ours whose DeadlineJob is gone, by its UID; they hold room until they go."""
        return self._orphans.items()

    def take_touched(self) -> list[str]:
        """Return the UIDs to look at, in a stable order, and forget them."""
        uids = sorted(self.touched)
        self.touched.clear()
        return uids

    def touch(self, uid: str) -> None:
        """Have a DeadlineJob looked at in the next pass."""
        self._touch(uid)

    def _touch(self, uid: str) -> None:
        self.touched.add(uid)
        self._stir()

    def _stir(self) -> None:
        self.changed = True
        if self.touched:
            self.touches.set()
        self._ring()


def _only_moved(known: views.PodView, meta: Object) -> bool:
    """Whether a watch reports the end of a pod that another one has shown with another label of ours."""
    label = (meta.get("labels") or {}).get(names.LABEL_JOB, "")
    return bool(label != known.job and int(known.version) >= int(meta["resourceVersion"]))


def _taken(pod: views.PodView | None) -> tuple[str, topology.Resources]:
    """Return where a pod takes what; a pod that takes nothing is as good as none."""
    return (pod.node, pod.requests) if pod is not None and pod.node and not pod.gone else ("", ())
