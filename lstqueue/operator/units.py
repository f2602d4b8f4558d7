"""The users' own jobs that concern lstqueue: those with the queue label, and those a DeadlineJob refers to.

An index of projections, fed by the watches of all jobs of the cluster; what concerns nobody is dropped at
once, except at the start, when nobody knows yet which jobs the DeadlineJobs will turn out to refer to.
It knows which job a DeadlineJob speaks for, and which DeadlineJob may speak for it: one per job, the oldest.
Never calls the API and decides nothing about capacity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import names
from lstqueue.jobs import batch, existing, kinds, owners, views
from lstqueue.operator import gone, lenient, siblings
from lstqueue.operator import ledger as ledgers

Object = Mapping[str, Any]
Name = tuple[str, str, str]
"""The kind of a job, its namespace and its name."""

STANDOFF = 10 * 60_000
"""Ms within which suspensions of ours that were undone count as a dispute."""
MOST_UNDONE = 2
"""So many of them end it: from then on the Job is left as its user, or whoever else, has it."""
UNDONE = "SuspensionUndone"
"""What that is called."""
LEFT_RUNNING = "LeftRunning"
"""What it is called when pods of a Job that is left alone are let go where they will."""
DUPLICATE = "DuplicateReference"
"""What it is called when another DeadlineJob speaks for a Job."""
OWNERS = 10_000
"""How many owners are remembered."""
BURIED = 5_000
"""How many deleted Jobs are, against replies of writes that come late."""
FOR_EVER = 1 << 64
"""Above every resourceVersion: later than any reply, however late."""

NOBODY: Name = ("", "", "")
_WAITING = ledgers.FINAL | {ledgers.Phase.PENDING}

Told = tuple[str, str]
"""A reason in one word, and a sentence."""


@dataclass(slots=True)
class Entry:
    """A job that concerns us. `templates`, those of its pods by group, are kept until it ends.

    `place` is where the walk up its owners ended, None until that is known. `stops` are the times (ms) at
    which it was suspended although nobody had asked it to stop, `disputed` that somebody will not have it,
    `excused` that it runs because its user has ended a pause of theirs.
    `let_go` that pods of it were freed of our gate without a place.
    `told` are the last words said to its user by reason, `told_until` the last stop (ms) told of, `retry_at`
    and `failures` those of the keeper.
    """

    view: existing.UnitView
    templates: Mapping[str, Object]
    place: owners.Found | None = None
    stops: list[int] = field(default_factory=list)
    disputed: bool = False
    excused: bool = False
    let_go: bool = False
    told: dict[str, str] = field(default_factory=dict)
    told_until: int = 0
    retry_at: int = 0
    failures: int = 0

    @property
    def labelled(self) -> bool:
        """Whether its user wants it in a queue."""
        return self.view.queue is not None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the lifecycle looks at beside ledger entry and pods.

    `view` is the Job that the DeadlineJob speaks for, None while there is none. `vanished`: the one it spoke
    for is gone, whatever has its name now, and `last` says what was known of it at its end. `refusal` says
    why it cannot be queued at all, ("", "") when it can. `unseen`: nobody has looked yet whether there is a
    Job of that name, so that nothing may be concluded from there being none here. `hands_off`: its queue only
    observes, does not take jobs of its namespace, or is not known. `child_of` names the DeadlineJob that made
    the Job of that name, nobody else's to refer to. `loose` are its pods that have not ended and do
    not carry the labels of this DeadlineJob. `namesakes()` returns pods of others that have the names
    which its own will have. `pool_of` names the pool of the `queue` in which a node is.
    `now` is in ms.
    """

    view: existing.UnitView | None = None
    vanished: bool = False
    unseen: bool = False
    last: gone.Last = gone.NEVER_SEEN
    child_of: str = ""
    refusal: Told = ("", "")
    hands_off: bool = True
    disputed: bool = False
    excused: bool = False
    loose: tuple[views.PodView, ...] = ()
    namesakes: Callable[[], list[views.PodView]] = list
    pool_of: Callable[[str], str] = lambda _: ""
    queue: str = ""
    now: int = 0


NOTHING = Facts()
"""What is known where there is no existing job."""


class Units:
    """Jobs by UID and by name, and the DeadlineJobs that refer to them.

    `fit` is called with the UID of each DeadlineJob whose Job changed, `touch` where only its pods or rivals
    did. `touched` are the Jobs for the keeper to look at. `unseen` are names that DeadlineJobs refer to and
    nobody has looked up yet. Until `settled` is called, Jobs that concern nobody are put aside: the
    DeadlineJobs that refer to them may be listed after them.
    """

    def __init__(self, fit: Callable[[str], None], touch: Callable[[str], None]) -> None:
        self._fit = fit
        self._touch = touch
        self.entries: dict[str, Entry] = {}
        self.known_owners: dict[str, owners.Known] = {}
        self.touched: set[str] = set()
        self.unseen: set[Name] = set()
        self.touches = asyncio.Event()
        self._by_name: dict[Name, str] = {}
        self._refs: dict[Name, dict[str, ledgers.Ledger]] = {}
        self._ref_of: dict[str, Name] = {}
        self._expected: dict[str, str] = {}
        self._siblings = siblings.Siblings()
        self._buried: dict[str, int] = {}
        self._gone = gone.Gone(touch)
        self._aside: dict[Name, Object] | None = {}

    # Jobs

    def apply(self, event: str, raw: Object, kind: kinds.Adapter = batch) -> None:
        """Take in a job of a `kind` that is no child of ours; one that concerns nobody is forgotten."""
        meta = raw["metadata"]
        uid, version = meta["uid"], int(meta["resourceVersion"])
        entry = self.entries.get(uid)
        if event == "DELETED":
            self._forget_aside(uid)
            since = lenient.time(meta.get("deletionTimestamp"))
            self._bury(uid, FOR_EVER, last=kind.unit(raw) if "spec" in raw else None, since=since)
            return
        name = (kind.RESOURCE.kind, meta["namespace"], meta["name"])
        known = int(entry.view.version) if entry else self._buried.get(uid, -1)
        if version <= known or (entry is None and self._has_successor(name, version)):
            return
        labelled = names.LABEL_QUEUE in (meta.get("labels") or {})
        if entry is None and not labelled and name not in self._refs:
            if self._aside is not None:
                self._aside[name] = raw
            return
        view = kind.unit(raw)
        if entry is None:
            entry = self._enter(Entry(view, {}))
        if (view.queue, view.annotations) != (entry.view.queue, entry.view.annotations):
            # What the API server would not have may be mended by this.
            entry.retry_at = entry.failures = 0
        if entry.labelled and view.queue is None:
            self._leave_owner(entry)
        if view.suspended and not entry.view.suspended and entry.disputed:
            # Whoever would not have it suspended has changed their mind.
            entry.disputed = False
            entry.stops.clear()
        entry.excused = entry.excused and not view.suspended
        entry.view, entry.templates = view, {} if view.over else kind.templates(raw)
        if view.over:
            self._leave_owner(entry)
        if not entry.labelled and name not in self._refs:
            # It has lost its label, and nobody speaks for it. An older reply must not bring that back.
            self._outdate(uid, version - 1)
            self._drop(uid)
            if self._aside is not None:
                self._aside[name] = raw
            return
        self._changed(uid)

    def settled(self) -> None:
        """Note that every DeadlineJob there is was taken in: from now on what concerns nobody is dropped."""
        self._aside = None

    def _forget_aside(self, uid: str) -> None:
        # A deletion that a list tells does not say the name.
        if self._aside:
            self._aside = {name: raw for name, raw in self._aside.items() if raw["metadata"]["uid"] != uid}

    def _enter(self, entry: Entry) -> Entry:
        view = entry.view
        if self._aside is not None:
            self._aside.pop(_name(view), None)
        older = self._by_name.get(_name(view))
        if older is not None:
            self._outdate(older, FOR_EVER)  # its name was free, so it is gone, told or not
            self._drop(older)
        self.entries[view.uid] = entry
        self._by_name[_name(view)] = view.uid
        self.unseen.discard(_name(view))
        self._gone.came(view)
        return entry

    def _has_successor(self, name: Name, version: int) -> bool:
        """Whether another Job of the name is known, and later: this one was gone when that was created."""
        uid = self._by_name.get(name)
        return uid is not None and int(self.entries[uid].view.version) > version

    def was_deleted(self, view: existing.UnitView) -> None:
        """Take out a Job that we deleted; should a finalizer keep it, its next event brings it back."""
        self._bury(view.uid, int(view.version), last=None)

    def _bury(self, uid: str, version: int, *, last: existing.UnitView | None, since: int = 0) -> None:
        """Take a Job out; `last` is as what it was deleted, None where only its absence was seen.

        `since` is when it was marked as deleted (ms), 0 where it went at once.
        """
        entry = self.entries.get(uid)
        if entry is not None:
            spoke, others = self.ledgers_of(entry), (other.view for other in self.entries.values())
            self._gone.went(entry.view, [job.uid for job in spoke], last=last, since=since, others=others)
        self._outdate(uid, version)
        self._drop(uid)

    def _outdate(self, uid: str, version: int) -> None:
        """Take in nothing about a Job that is as old as this."""
        self._buried[uid] = version
        if len(self._buried) > BURIED:
            self._buried.pop(next(iter(self._buried)))

    def _drop(self, uid: str) -> None:
        entry = self.entries.get(uid)
        if entry is None:
            return
        del self.entries[uid]
        name = _name(entry.view)
        if self._by_name.get(name) == uid:
            del self._by_name[name]
        self._leave_owner(entry)
        for job in self._refs.get(name, ()):
            self._fit(job)

    def _changed(self, uid: str) -> None:
        view = self.entries[uid].view
        for job in self._refs.get(_name(view), ()):
            self._fit(job)
        self.touch(uid)

    def touch(self, uid: str) -> None:
        """Have the keeper look at a Job."""
        self.touched.add(uid)
        self.touches.set()

    def clock_moved(self) -> None:
        """Have the keeper look at all Jobs, for its times were those of a clock that was wrong."""
        for uid, entry in self.entries.items():
            entry.retry_at = entry.told_until = 0
            entry.stops.clear()
            self.touch(uid)

    def missing(self, name: Name) -> None:
        """Note that a Job that a DeadlineJob refers to was looked up and does not exist."""
        self.unseen.discard(name)
        for job in self._refs.get(name, ()):
            self._touch(job)

    def was_suspended(self, uid: str, now: int) -> None:
        """Note that we suspended a Job that runs without an admission."""
        entry = self.entries.get(uid)
        if entry is not None:
            entry.stops = [at for at in entry.stops if at > now - STANDOFF] + [now]
            self.touch(uid)

    def was_let_go(self, uid: str) -> None:
        """Note that pods of a Job were let go outside of any queue."""
        entry = self.entries.get(uid)
        if entry is not None and not entry.let_go:
            entry.let_go = True
            self.touch(uid)

    def spoken_for(self, name: Name, uid: str) -> bool:
        """Whether there is a DeadlineJob for a Job, be it over: what its pods need is its business then."""
        return any(self._expected.get(job, uid) == uid for job in self._refs.get(name, ()))

    # DeadlineJobs

    def refer(self, job: ledgers.Ledger) -> None:
        """Take in a DeadlineJob, new or changed, that refers to a Job or to none."""
        ref = job.spec.ref if job.spec is not None else None
        if ref is None:
            return
        name = (ref.kind, job.namespace, ref.name)
        if job.uid not in self._ref_of:
            self._ref_of[job.uid] = name
            self._expect(job)
            if name not in self._by_name and (self._aside is None or name not in self._aside):
                self.unseen.add(name)
                self.touches.set()
            for other in self._refs.get(name, ()):
                self._touch(other)
        before = self._refs.setdefault(name, {}).get(job.uid)
        self._refs[name][job.uid] = job
        if job.status.unit:
            self._expected[job.uid] = job.status.unit
        self._excuse(before, job)
        if self._aside is not None and name in self._aside:
            self.apply("ADDED", self._aside.pop(name), kinds.named(ref.api_version, ref.kind))
        if before is None or before.final != job.final:
            for other in self._refs[name]:
                self._touch(other)
        if (before is None or before.status.phase is not job.status.phase) and name in self._by_name:
            self.touch(self._by_name[name])

    def _excuse(self, before: ledgers.Ledger | None, job: ledgers.Ledger) -> None:
        """Note that a pause ends and its Job runs: resuming it is how its user has ended it."""
        paused = before is not None and before.spec is not None and not before.spec.active
        entry = self.entry_of(job) if paused and job.spec is not None and job.spec.active else None
        if entry is not None:
            entry.excused = not entry.view.suspended

    def _expect(self, job: ledgers.Ledger) -> None:
        """Learn which Job a DeadlineJob of ours was written for: one of its name may come too late."""
        if job.unit_uid:
            self._expected[job.uid] = job.unit_uid

    def forget(self, job_uid: str) -> None:
        """Note that a DeadlineJob is gone."""
        name = self._ref_of.pop(job_uid, None)
        self._expected.pop(job_uid, None)
        self._gone.forget(job_uid)
        if name is None:
            return
        self._refs[name].pop(job_uid, None)
        for other in self._refs[name]:
            self._touch(other)
        if not self._refs[name]:
            del self._refs[name]
            self.unseen.discard(name)
        uid = self._by_name.get(name)
        if uid is None:
            return
        self.touch(uid)
        if name not in self._refs and not self.entries[uid].labelled:
            self._drop(uid)

    def entry_of(self, job: ledgers.Ledger) -> Entry | None:
        """Return the Job that a DeadlineJob speaks for, None when there is none or it is another one."""
        uid = self._by_name.get(self._ref_of.get(job.uid, NOBODY), "")
        entry = self.entries.get(uid)
        if entry is None or self._expected.get(job.uid, uid) != uid:
            return None
        return entry

    def seen_first(self, job: ledgers.Ledger) -> str:
        """Return the UID to fix in the first status of a DeadlineJob, "" while there is none to be fixed.

        A Job that runs already, and that nobody labelled, is not taken for its own yet.
        """
        entry = self.entry_of(job)
        if entry is None or not (entry.view.suspended or entry.labelled):
            return ""
        return entry.view.uid

    def vanished(self, job: ledgers.Ledger) -> bool:
        """Whether the Job that a DeadlineJob spoke for is gone for good."""
        expected, name = self._expected.get(job.uid), self._ref_of.get(job.uid, NOBODY)
        return expected is not None and name not in self.unseen and self._by_name.get(name) != expected

    def ledgers_of(self, entry: Entry) -> list[ledgers.Ledger]:
        """Return the DeadlineJobs that speak, or would speak, for this very Job, the first of them first.

        That is the oldest; but one under which it runs, or has a claim, goes before all that wait.
        """
        view = entry.view
        found = [
            job
            for job in self._refs.get(_name(view), {}).values()
            if self._expected.get(job.uid, view.uid) == view.uid
        ]
        return sorted(found, key=lambda job: (job.status.phase in _WAITING, job.created, job.uid))

    def facts(self, job: ledgers.Ledger, now: int) -> Facts:
        """Return what is known of the Job that a DeadlineJob refers to, its pods and queue apart."""
        entry, vanished = self.entry_of(job), self.vanished(job)
        if entry is None:
            unseen = self._ref_of.get(job.uid) in self.unseen
            last = self._gone.last(job.uid, now)
            return Facts(vanished=vanished, unseen=unseen, last=last, now=now)
        counted = len([at for at in entry.stops if at > now - STANDOFF])
        if not entry.view.suspended and counted >= MOST_UNDONE and _unasked(job, entry):
            if not entry.disputed:
                self.touch(entry.view.uid)
            entry.disputed = True
        return Facts(
            view=entry.view,
            refusal=self.refusal(job, entry),
            disputed=entry.disputed,
            excused=entry.excused,
            now=now,
        )

    def stir(self, uid: str) -> None:
        """Have the DeadlineJobs of a Job looked at again, for one of its pods changed."""
        entry = self.entries.get(uid)
        if entry is not None:
            for job in self._refs.get(_name(entry.view), ()):
                self._touch(job)

    # Who may be queued

    def refusal(self, job: ledgers.Ledger, entry: Entry) -> Told:
        """Say why a Job cannot be queued by this DeadlineJob, ("", "") when it can."""
        if entry.view.manager:
            return (
                "OtherManager",
                f"{entry.view.named} is managed by {entry.view.manager} and is left alone; remove that, "
                "or the reference to it",
            )
        first = next((other for other in self.ledgers_of(entry) if not other.final), None)
        if first is not None and first.uid != job.uid:
            return (
                DUPLICATE,
                f"DeadlineJob {first.key} speaks for {entry.view.named} already; delete one of them",
            )
        if entry.view.unfit:
            return ("UnsupportedConstraint", f"{entry.view.named}: {entry.view.unfit}")
        return self.misplaced(entry)

    def misplaced(self, entry: Entry) -> Told:
        """Say why a Job is no unit of its own, ("", "") when it is, or when its owners are not known yet."""
        found, view = entry.place, entry.view
        if found is None:
            return ("", "")
        if found.unsupported is not None:
            above = found.unsupported
            return (
                "UnsupportedOwner",
                f"{view.named} belongs to {above.kind} {above.name}, and lstqueue does not queue the kind "
                f"{above.kind} yet; remove the label {names.LABEL_QUEUE} from its templates",
            )
        if found.top is not None:
            return (
                "LabelIgnored",
                f"{view.named} belongs to {found.top.kind} {found.top.name} and is not queued by itself; "
                f"put the label {names.LABEL_QUEUE} there",
            )
        if found.unread is not None and self._siblings.several(found.unread.uid):
            above = found.unread
            return (
                "SharedOwner",
                f"{above.kind} {above.name} has several jobs with the label {names.LABEL_QUEUE}, and nobody "
                "can tell whether they need each other; label only one of them, or none",
            )
        return ("", "")

    def place(self, entry: Entry, found: owners.Found) -> None:
        """Note where the walk up the owners of a job ended."""
        entry.place = found
        if found.unread is not None and entry.labelled:
            for uid in self._siblings.enter(found.unread.uid, entry.view.uid) & self.entries.keys():
                self._changed(uid)

    def learn_owner(self, uid: str, known: owners.Known) -> None:
        """Remember what reading an owner has shown."""
        self.known_owners[uid] = known
        if len(self.known_owners) > OWNERS:
            self.known_owners.pop(next(iter(self.known_owners)))

    def _leave_owner(self, entry: Entry) -> None:
        above = entry.place.unread if entry.place is not None else None
        if above is not None:
            for uid in self._siblings.leave(above.uid, entry.view.uid) & self.entries.keys():
                self._changed(uid)


def _name(view: existing.UnitView) -> Name:
    return view.kind, view.namespace, view.name


def _unasked(job: ledgers.Ledger, entry: Entry) -> bool:
    """Whether it is an offence that its Job runs: not where we resumed it, nor where that ends a pause."""
    waits = job.status.phase in _WAITING or job.status.phase is ledgers.Phase.CLAIMING
    return waits and not entry.excused and (job.spec is None or job.spec.active)
