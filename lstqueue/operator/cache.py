"""Everything the operator knows of the cluster, as projections, with what it has in flight on top.

Handlers call `apply_*` and nothing else; the loop reads. Never calls the API. Objects are compared by
resourceVersion, so that a late watch event never undoes what a write's own reply has shown already.
Indexes by gang and by node make a change cost what it touches, not the size of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lstqueue.api import names
from lstqueue.engine import model
from lstqueue.jobs import inline, pytorch, views
from lstqueue.kube import port
from lstqueue.operator import allowances, fitting, guard, histories, namespaces, occasions, records, units
from lstqueue.operator import ledger as ledgers
from lstqueue.operator import occupancy as occupancies
from lstqueue.operator import queues as queue_views
from lstqueue.topology import model as topology
from lstqueue.topology.domains import Domains

Object = Mapping[str, Any]

BURIED = 20_000
"""How many deleted UIDs are remembered: far more than can be between a reply and its watch event."""

Record = records.Record
Read = Callable[[Object, ledgers.Ledger | None], ledgers.Ledger]


class Cache:
    """Projections of DeadlineJobs, GPUQueues, child Jobs, pods and nodes.

    `touched` collects the UIDs of DeadlineJobs to look at again, and `touches` is set when there are any;
    `changed` says that a pass could decide something new. `strays` are UIDs of pods behind our gate that may
    belong to nobody, and `strayed` is set when one is added. `ring` is called on every meaningful change.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self.guard = guard.Guard()
        self.records: dict[str, Record] = {}
        self.queues: dict[str, queue_views.QueueView] = {}
        self.occasions = occasions.Occasions(self.queues, self.apply_queue)
        self.occupancy = occupancies.Occupancy()
        self.nodes = self.occupancy.nodes
        self.namespaces = namespaces.Namespaces()
        self.touched: set[str] = set()
        self.touches = asyncio.Event()
        self.changed = True
        self.units = units.Units(self._fit, self._touch)
        self.histories = histories.Histories(self._predicted)
        self.allowances = allowances.Allowances(self.records, self._stir, self.guard)
        self.domains: Domains | None = None
        self._pods: dict[str, views.PodView] = {}
        self._pods_of: dict[str, set[str]] = {}
        self._orphans: dict[str, dict[str, views.PodView]] = {}
        self.strays: set[str] = set()
        self.strayed = asyncio.Event()
        self._children: dict[str, views.ChildView] = {}
        self._children_of: dict[str, dict[str, views.ChildView]] = {}
        self._buried: dict[str, int] = {}

    # DeadlineJobs

    @guard.one("DeadlineJob")
    def apply_ledger(self, event: str, raw: Object) -> None:
        """Take in a DeadlineJob as a watch or a write's reply shows it; hold back one that cannot be read."""
        problem = self.guard.attempt(
            "DeadlineJob", guard.named(raw), lambda: self._apply_ledger(event, raw, ledgers.read)
        )
        if problem:
            self._apply_ledger(event, raw, ledgers.unread)
            self.records[raw["metadata"]["uid"]].unreadable = guard.words(problem)

    def _apply_ledger(self, event: str, raw: Object, read: Read) -> None:
        uid, version = raw["metadata"]["uid"], int(raw["metadata"]["resourceVersion"])
        record = self.records.get(uid)
        if event == "DELETED":
            # An end told by a list has no version: replies of ours may have shown later ones than its watch.
            self._bury(uid, version if "spec" in raw else units.FOR_EVER)
            return
        if version <= self._buried.get(uid, -1) or (record and version <= record.ledger.version):
            return
        seen = read(raw, record.ledger if record else None)
        self.occupancy.place(uid, record.ledger.status.admission if record else None, seen.status.admission)
        self.occupancy.claim(uid, seen.status.claim)
        if record is None:
            record = self.records[uid] = Record(seen)
            self.namespaces.enter(seen.namespace, uid)
            self._adopt(record)
        if seen.generation != record.ledger.generation:
            record.told_at = 0
        if seen.status.back_off.avoid != record.ledger.status.back_off.avoid:
            # Which nodes it avoids is part of why it waits.
            record.told_at = 0
        if record.evicted and seen.status.restarts != record.ledger.status.restarts:
            record.evicted.clear()
        record.ledger, record.unreadable = seen, ""
        record.engine_job = None
        if seen.final:
            record.templates = {}
        elif seen.spec is not None and not record.templates:
            groups = raw["spec"].get("groups") or ()
            record.templates = {group["name"]: inline.without_nulls(group["template"]) for group in groups}
        self.units.refer(seen)
        fitting.fit(record, self.units)
        self.histories.saw(record.ledger)
        if seen.status.admission is not None:
            record.assumed = record.claiming = None
        if seen.status.claim is not None:
            record.claiming = None
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
        self.units.forget(uid)
        self.histories.forget(uid)
        if record is not None:
            self.namespaces.leave(record.ledger.namespace, uid)
            self.occupancy.place(uid, record.ledger.status.admission, None)
            self.occupancy.claim(uid, None)
            if record.pods:
                self._orphans[uid] = {**self._orphans.get(uid, {}), **record.pods}
                for pod in record.pods.values():
                    self._note_stray(pod)
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
            self._remember_end(uid, version if "spec" in raw else units.FOR_EVER)
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

    @guard.one("PyTorchJob")
    def apply_pytorch_job(self, event: str, raw: Object) -> None:
        """Take in any PyTorchJob of the cluster."""
        self.units.apply(event, raw, pytorch)

    def apply_unit(self, kind: str, raw: Object) -> None:
        """Take in an existing job of a kind as a reply shows it."""
        (self.apply_job if kind == port.JOBS.kind else self.apply_pytorch_job)("MODIFIED", raw)

    @guard.one("Job")
    def apply_job(self, event: str, raw: Object) -> None:
        """Take in any Job of the cluster: a child of ours, or one of a user's own.

        For a child that lost our label it is as if it had gone: it is found, and labelled again, by its name.
        """
        meta = raw["metadata"]
        if meta["uid"] in self._children or inline.owning_job(raw):
            labelled = names.LABEL_JOB in (meta.get("labels") or {})
            self.apply_child(event if labelled else "DELETED", raw)
        else:
            self.units.apply(event, raw)

    def _fit(self, uid: str) -> None:
        """Have a DeadlineJob look at the Job it refers to."""
        record = self.records.get(uid)
        if record is not None:
            fitting.fit(record, self.units)
            self.histories.saw(record.ledger)
            self._touch(uid)

    def _predicted(self, uids: Iterable[str]) -> None:
        """Have jobs looked at whose run times may be expected to be others now."""
        for uid in uids:
            self.records[uid].engine_job = None
            self._touch(uid)

    @guard.one("ConfigMap")
    def apply_history(self, event: str, raw: Object) -> None:
        """Take in what is stored of run times."""
        self.histories.apply(event, raw)

    def pods_made_by(self, owner: str) -> Iterator[views.PodView]:
        """Yield the pods, ours or not, that an object of this UID controls."""
        return (self._pods[uid] for uid in self._pods_of.get(owner, ()))

    def pods(self) -> Iterable[views.PodView]:
        """Return all pods, ours and anybody's."""
        return self._pods.values()

    def pods_named(self, namespace: str, wanted: frozenset[str]) -> list[views.PodView]:
        """Return the pods of a namespace that have one of these names."""
        return [pod for pod in self._pods.values() if pod.namespace == namespace and pod.name in wanted]

    def maker_of(self, namespace: str, job: str) -> str:
        """Return namespace/name of the DeadlineJob that made a Job, "" where none did."""
        made = (child for child in self._children.values() if child.name == job)
        return self.name_of(next((child.job for child in made if child.namespace == namespace), ""))

    def name_of(self, uid: str) -> str:
        """Return namespace/name of a DeadlineJob, "" where it is not known."""
        record = self.records.get(uid)
        return record.ledger.key if record is not None else ""

    def found_child(self, raw: Object) -> None:
        """Take in a child that a watch told was gone, and that is still there."""
        self._buried.pop(raw["metadata"]["uid"], None)
        self.apply_child("ADDED", raw)

    @guard.one("Pod")
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
            self._remember_end(uid, units.FOR_EVER if listed else version)
            if known is not None:
                self._put_pod(known, None)
        elif version >= self._buried.get(uid, 0) and (known is None or int(known.version) < version):
            self._put_pod(known, views.pod(raw))

    def _put_pod(self, known: views.PodView | None, seen: views.PodView | None) -> None:
        """Replace a pod and what was counted for it."""
        if known is not None:
            self.occupancy.count(known, -1)
            del self._pods[known.uid]
            self._disown(known)
            if known.job:
                self._leave(known)
        if seen is not None:
            self.occupancy.count(seen, 1)
            self._pods[seen.uid] = seen
            if seen.owner:
                self._pods_of.setdefault(seen.owner, set()).add(seen.uid)
                self.units.stir(seen.owner)
            if seen.job:
                self._enter(seen)
        # A foreign pod matters by the room it takes.
        if occupancies.taken(known) != occupancies.taken(seen):
            self._stir()

    def _disown(self, pod: views.PodView) -> None:
        siblings = self._pods_of.get(pod.owner)
        if siblings is not None:
            siblings.discard(pod.uid)
            if not siblings:
                del self._pods_of[pod.owner]
            self.units.stir(pod.owner)

    def _enter(self, pod: views.PodView) -> None:
        record = self._record_of(pod)
        home = record.pods if record is not None else self._orphans.setdefault(pod.job, {})
        home[pod.uid] = pod if record is None else fitting.member(record, pod)
        if record is None or not records.maker(record, pod):
            self._note_stray(pod)
        self._touch(pod.job)

    def _note_stray(self, pod: views.PodView) -> None:
        if pod.gated:
            self.strays.add(pod.uid)
            self.strayed.set()

    def stray(self, uid: str) -> views.PodView | None:
        """Return a pod behind our gate that no DeadlineJob of its label cares for, None when that is over."""
        pod = self._pods.get(uid)
        if pod is None or not pod.gated or pod.deleting or pod.gone:
            return None
        record = self.records.get(pod.job)
        led = record is not None and record.ledger.namespace == pod.namespace and records.maker(record, pod)
        return None if led else pod

    def _leave(self, pod: views.PodView) -> None:
        record = self._record_of(pod)
        if record is not None:
            record.pods.pop(pod.uid, None)
            if pod.disrupted and pod.phase != "Succeeded" and not records.replaces(record):
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

    # Nodes and queues

    @guard.one("Node")
    def apply_node(self, event: str, raw: Object) -> None:
        """Take in a node."""
        name = raw["metadata"]["name"]
        if not self.occupancy.apply(event, raw):
            return
        self.touched |= self.occupancy.admitted(name)
        for uid in self.occupancy.present(name):
            if uid in self.records:
                # Whether its pods there can end may have changed.
                self.records[uid].engine_job = None
                self.touched.add(uid)
        self._stir()

    def see(self, domains: Domains | None) -> None:
        """Take in the domains of the interconnect, None where nothing is known of one."""
        self.domains = domains
        self._stir()

    def on_nodes(self, nodes: Iterable[str]) -> list[Record]:
        """Return the gangs that are admitted on any of these nodes, or have live pods there, by UID."""
        uids: set[str] = set()
        for node in nodes:
            uids.update(self.occupancy.admitted(node), self.occupancy.present(node))
        return [self.records[uid] for uid in sorted(uids) if uid in self.records]

    def claimants(self, nodes: Iterable[str]) -> list[Record]:
        """Return the gangs that claim room on any of these nodes, by UID."""
        return [self.records[uid] for uid in self.occupancy.claimants(nodes) if uid in self.records]

    def stale(self, node: str) -> bool:
        """Whether a node is gone or silent: pods on it cannot end, and nobody knows what they do."""
        view = self.nodes.get(node)
        return bool(node) and (view is None or not view.ready)

    def left_behind(self, record: Record) -> dict[str, views.PodView]:
        """Return the pods, by UID, that an earlier run left on stale nodes: they block those nodes only."""
        status = record.ledger.status
        if status.phase is ledgers.Phase.SUSPENDING or record.ledger.final:
            return {}
        return {
            uid: pod
            for uid, pod in record.pods.items()
            if not pod.gone and records.of_earlier_run(record, pod) and self.stale(pod.node or pod.aim)
        }

    @guard.one("GPUQueue")
    def apply_queue(self, event: str, raw: Object) -> None:
        """Take in a GPUQueue."""
        name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
        known = self.queues.get(name)
        if event == "DELETED":
            self._remember_end(uid, units.FOR_EVER)
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
            if self.queue_of(record.ledger) == name:
                record.engine_job, record.told_at = None, 0
                self.touched.add(record.ledger.uid)
        self._stir()

    # Namespaces

    @guard.one("Namespace")
    def apply_namespace(self, event: str, raw: Object) -> None:
        """Take in the labels of a namespace, which name its default queue and let queues choose it."""
        name = raw["metadata"]["name"]
        if not self.namespaces.apply(event, raw):
            return
        if event == "DELETED" and not self.namespaces.jobs(name):
            self.histories.drop(name)
        for uid in self.namespaces.jobs(name):
            self.records[uid].engine_job, self.records[uid].told_at = None, 0
            self.touched.add(uid)
        self._stir()

    def queue_of(self, job: ledgers.Ledger) -> str:
        """Return the queue a job is in: the one that holds it, that it names, or its namespace's default."""
        if job.status.admission is not None:
            return job.status.admission.queue
        named = job.spec.queue if job.spec is not None else ""
        return named or self.namespaces.default_queue(job.namespace)

    def spec_of(self, job: ledgers.Ledger) -> ledgers.Spec | None:
        """Return the spec of a job with what its queue says where it says nothing itself."""
        queue = self.queues.get(self.queue_of(job))
        return queue.defaults.fill(job.spec) if queue is not None and job.spec is not None else job.spec

    def min_run(self, job: ledgers.Ledger) -> int:
        """Return how long (ms) a job runs at least before it may be suspended for another."""
        if job.spec is not None and job.spec.min_run is not None:
            return job.spec.min_run
        queue = self.queues.get(self.queue_of(job))
        return queue.engine.min_run if queue is not None else model.Queue("").min_run

    # What a relist compares with

    def queue_versions(self) -> dict[str, str]:
        """Return the resourceVersion of every GPUQueue by UID."""
        return {queue.uid: str(queue.version) for queue in self.queues.values()}

    def remains(self, uid: str) -> Object:
        """Return the metadata of a GPUQueue that a list did not show, as a deletion event has it."""
        name = next((queue.name for queue in self.queues.values() if queue.uid == uid), "")
        return {"metadata": {"uid": uid, "name": name}}

    # Reading

    def engine_nodes(self) -> Iterator[topology.Node]:
        """Yield the nodes with what is used on them."""
        return self.occupancy.engine_nodes()

    def engine_node(self, name: str) -> topology.Node | None:
        """Return a node with what is used on it, None for one that is not there."""
        return self.occupancy.engine_node(name)

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
