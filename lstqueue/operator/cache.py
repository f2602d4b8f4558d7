"""Everything the operator knows of the cluster, as projections, with what it has in flight on top.

Handlers call `apply_*` and nothing else; the loop reads. Never calls the API. Objects are compared by
resourceVersion, so that a late watch event never undoes what a write's own reply has shown already.
Indexes by gang and by node make a change cost what it touches, not the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger as ledgers
from lstqueue.operator import nodes as node_views
from lstqueue.operator import queues as queue_views
from lstqueue.topology import model as topology

Object = Mapping[str, Any]

BURIED = 20_000
"""How many deleted UIDs are remembered: far more than can be between a reply and its watch event."""


@dataclass(slots=True)
class Record:
    """One DeadlineJob and what this process has under way for it.

    `assumed` is an admission that was decided and not confirmed yet: its room is charged at once. `said` is
    what the newest status write on its way will publish. `shapes` come from intake; None until it is done,
    and it is asked again at `ask_at`.
    `held_back` tells the engine not to admit, and the user why. `retry_at` (ms) delays the next
    write after one that failed `failures` times in a row. `templates` are kept while they may be needed.
    """

    ledger: ledgers.Ledger
    templates: Mapping[str, Object] = field(default_factory=dict)
    children: dict[str, views.ChildView] = field(default_factory=dict)
    pods: dict[str, views.PodView] = field(default_factory=dict)
    assumed: ledgers.Admission | None = None
    said: model.Published | None = None
    shapes: tuple[model.Group, ...] | None = None
    held_back: str = ""
    held_code: str = ""
    ungated_at: int = 0
    retry_at: int = 0
    ask_at: int = 0
    failures: int = 0
    engine_job: model.Job | None = None


class Cache:
    """Projections of DeadlineJobs, GPUQueues, child Jobs, pods and nodes.

    `touched` collects the UIDs of DeadlineJobs to look at again; `changed` says that a pass could decide
    something new. `ring` is called on every meaningful change.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self.records: dict[str, Record] = {}
        self.queues: dict[str, queue_views.QueueView] = {}
        self.nodes: dict[str, node_views.NodeView] = {}
        self.touched: set[str] = set()
        self.changed = True
        self._node_used: dict[str, dict[str, int]] = {}
        self._engine_nodes: dict[str, topology.Node] = {}
        self._pods: dict[str, views.PodView] = {}
        self._orphans: dict[str, dict[str, views.PodView]] = {}
        self._children: dict[str, views.ChildView] = {}
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
        seen = ledgers.read(raw)
        if record is None:
            record = Record(seen)
            record.pods = self._orphans.pop(uid, {})
            record.children = {child.uid: child for child in self._children.values() if child.job == uid}
            self.records[uid] = record
        record.ledger = seen
        record.engine_job = None
        if seen.final:
            record.templates, record.shapes = {}, record.shapes
        elif seen.spec is not None and not record.templates:
            record.templates = {group["name"]: group["template"] for group in raw["spec"]["groups"]}
        if seen.status.admission is not None:
            record.assumed = None
        self._touch(uid)

    def _bury(self, uid: str, version: int) -> None:
        record = self.records.pop(uid, None)
        self._remember_end(uid, version)
        if record is not None:
            if record.pods:
                self._orphans[uid] = record.pods
            self._touch(uid)

    def _remember_end(self, uid: str, version: int) -> None:
        """A write's reply may arrive after the watch told of the deletion; it must not revive the object."""
        self._buried[uid] = version
        if len(self._buried) > BURIED:
            self._buried.pop(next(iter(self._buried)))

    # Children and pods

    def apply_child(self, event: str, raw: Object) -> None:
        """Take in a child Job."""
        seen = views.child(raw)
        known = self._children.get(seen.uid)
        if event == "DELETED":
            self._children.pop(seen.uid, None)
            self._remember_end(seen.uid, int(seen.version))
        elif seen.uid in self._buried or (known is not None and int(known.version) >= int(seen.version)):
            return
        else:
            self._children[seen.uid] = seen
        record = self.records.get(seen.job)
        if record is not None:
            if event == "DELETED":
                record.children.pop(seen.uid, None)
            else:
                record.children[seen.uid] = seen
            record.engine_job = None
            self._touch(seen.job)

    def apply_pod(self, event: str, raw: Object) -> None:
        """Take in a pod, ours or anybody's."""
        uid = raw["metadata"]["uid"]
        known = self._pods.get(uid)
        if event == "DELETED":
            self._remember_end(uid, int(raw["metadata"]["resourceVersion"]))
            if known is not None:
                self._put_pod(known, None)
            return
        if uid in self._buried:
            return
        seen = views.pod(raw)
        if known is not None and int(known.version) >= int(seen.version):
            return
        self._put_pod(known, seen)

    def _put_pod(self, known: views.PodView | None, seen: views.PodView | None) -> None:
        """Replace a pod and what was counted for it."""
        pod = seen or known
        assert pod is not None
        for view, sign in ((known, -1), (seen, 1)):
            if view is not None and view.node and not view.gone:
                self._charge(view, sign)
        if seen is None:
            self._pods.pop(pod.uid, None)
        else:
            self._pods[pod.uid] = seen
        if not pod.job:
            # A foreign pod matters by the room it takes.
            if known is None or seen is None or (known.node, known.gone) != (seen.node, seen.gone):
                self._stir()
            return
        record = self.records.get(pod.job)
        home = record.pods if record is not None else self._orphans.setdefault(pod.job, {})
        if seen is None:
            home.pop(pod.uid, None)
            if record is None and not home:
                del self._orphans[pod.job]
        else:
            home[pod.uid] = seen
        if record is not None:
            record.engine_job = None
        self._touch(pod.job)

    def _charge(self, pod: views.PodView, sign: int) -> None:
        used = self._node_used.setdefault(pod.node, {})
        for name, amount in pod.requests:
            used[name] = used.get(name, 0) + sign * amount
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
            if held is not None and name in held.nodes:
                self.touched.add(record.ledger.uid)
        self._stir()

    def apply_queue(self, event: str, raw: Object) -> None:
        """Take in a GPUQueue."""
        name = raw["metadata"]["name"]
        known = self.queues.get(name)
        if event == "DELETED":
            self.queues.pop(name, None)
        else:
            seen = queue_views.read(raw)
            if known is not None and known.version >= seen.version and known.uid == seen.uid:
                return
            self.queues[name] = seen
            if known is not None and known.same_spec(seen):
                return
        for record in self.records.values():
            if record.ledger.spec is not None and record.ledger.spec.queue == name:
                record.engine_job = None
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
        names = [queue.name for queue in self.queues.values() if queue.uid == uid]
        name = names[0] if names else ""
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
        self._ring()
