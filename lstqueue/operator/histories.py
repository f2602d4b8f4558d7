"""Run times of jobs that are over, by namespace and by what was alike: learnt, stored, asked.

A history is what its ConfigMap says and the ends of DeadlineJobs that it does not say yet. Each end is
known by when it was and by whose it was, so that one that is seen again, after a restart or a lost reply, is
not learnt twice; one that was not written is learnt anew from its DeadlineJob. Nothing here calls the API:
`archive` writes what `take` returns. Whatever stands in a ConfigMap was perhaps edited by hand: what cannot
be read of it counts as absent, and entries that are not ours stay.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.engine import history, model
from lstqueue.operator import ledger, lenient

Object = Mapping[str, Any]

NAME = "lstqueue-history"
"""Of the ConfigMap of each namespace."""
MISSES = "misses"
"""The entry of what all keys of a namespace have in common; no key, for those have 16 digits."""
KEYS = 300
"""How many keys a namespace keeps, those with the latest ends: less than a third of a ConfigMap's 1 MiB."""
SEEN = 16
"""How many ends a key remembers to have learnt. One that comes late, after so many others, is left out."""
LONGEST = 16_384
"""Characters of an entry that are read: what we write is shorter."""
LONGEST_RUN = 100 * 365 * 24 * model.HOUR
End = tuple[int, str]
"""When a job ended (ms) and 8 hex digits of whose end it was: their order is that of learning."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job that has done all of its work, in `ran` ms."""

    uid: str
    key: str
    end: int
    ran: int
    figure: int | None

    @property
    def stamp(self) -> End:
        """What tells it from other ends of its key."""
        return self.end, hashlib.sha256(self.uid.encode()).hexdigest()[:8]


@dataclass(slots=True)
class Shelf:
    """The history of a namespace: what was read, and on top of it the runs that are not written yet.

    `version` is the resourceVersion of what was read, "" while there is no ConfigMap, and `uid` its UID.
    """

    version: str = ""
    uid: str = ""
    stored: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Run] = field(default_factory=dict)
    book: history.Book = field(default_factory=history.Book)
    seen: dict[str, tuple[End, ...]] = field(default_factory=dict)

    def learns(self, run: Run) -> bool:
        """Whether a run is neither known nor too old to be told from those that are."""
        seen = self.seen.get(run.key)
        if seen is None:
            # So a key that had to go for want of room is not learnt anew from a job that is still there.
            return len(self.seen) < KEYS or run.stamp > min(ends[-1] for ends in self.seen.values())
        return run.stamp not in seen and (len(seen) < SEEN or run.stamp > seen[0])

    def learn(self, run: Run) -> None:
        """Take in a run."""
        self.book.learn(run.key, history.Asked(run.figure), run.ran)
        seen = sorted({*self.seen.get(run.key, ()), run.stamp})
        self.seen[run.key] = tuple(seen[-SEEN:])
        if len(self.seen) > KEYS:
            oldest = min(self.seen, key=lambda key: (self.seen[key][-1], key))
            del self.seen[oldest]
            self.book.pasts.pop(oldest, None)

    def rebuild(self) -> None:
        """Begin with what was read, and learn what waits; forget what turns out to be known."""
        self.book, self.seen = history.Book(), {}
        read_common(self.book, self.stored.get(MISSES, ""))
        for key, text in self.stored.items():
            if is_key(key) and (found := read_entry(text)) is not None:
                self.book.pasts[key], self.seen[key] = found
        for uid, run in sorted(self.waiting.items(), key=lambda item: item[1].stamp):
            if self.learns(run):
                self.learn(run)
            else:
                del self.waiting[uid]


class Histories:
    """All shelves.

    `news` is called with the UIDs of jobs whose prediction may be another now, and `there` is set when a run
    waits to be written.
    """

    def __init__(self, news: Callable[[Iterable[str]], None]) -> None:
        self._news = news
        self.there = asyncio.Event()
        self.shelves: dict[str, Shelf] = {}
        self._like: dict[tuple[str, str], set[str]] = {}
        self._key_of: dict[str, tuple[str, str]] = {}

    # What is known

    def predict(self, job: ledger.Ledger, asked: history.Asked, config: model.Config) -> history.Told | None:
        """Predict the run time of a job; None: neither the history of its key nor its user says."""
        shelf = self.shelves.get(job.namespace)
        book = shelf.book if shelf is not None else history.Book()
        return book.predict(key_of(job), asked, config)

    def saw(self, job: ledger.Ledger) -> None:
        """Take in a DeadlineJob: one that is over may be learnt from."""
        place = (job.namespace, "" if job.final else key_of(job))
        before = self._key_of.get(job.uid)
        if before != place:
            self._leave(job.uid)
            if place[1]:
                self._key_of[job.uid] = place
                self._like.setdefault(place, set()).add(job.uid)
        run = run_of(job)
        if run is None:
            return
        shelf = self.shelves.setdefault(job.namespace, Shelf())
        if run.uid not in shelf.waiting and shelf.learns(run):
            shelf.waiting[run.uid] = run
            shelf.learn(run)
            self._news(self._like.get((job.namespace, run.key), set()))
            self.there.set()

    def forget(self, uid: str) -> None:
        """Note that a DeadlineJob is gone; what was learnt of it stays."""
        self._leave(uid)

    def _leave(self, uid: str) -> None:
        place = self._key_of.pop(uid, None)
        if place is not None:
            self._like[place].discard(uid)
            if not self._like[place]:
                del self._like[place]

    # What is stored

    def apply(self, event: str, raw: Object) -> None:
        """Take in a ConfigMap as a watch or a write's reply shows it."""
        meta = raw["metadata"]
        if meta.get("name", NAME) != NAME:
            return
        namespace = meta.get("namespace", "")
        if event == "DELETED":
            self._gone(meta["uid"])
            return
        shelf = self.shelves.setdefault(namespace, Shelf())
        if shelf.uid == meta["uid"] and int(shelf.version) >= int(meta["resourceVersion"]):
            return
        data = raw.get("data")
        shelf.uid, shelf.version = meta["uid"], meta["resourceVersion"]
        self._read(namespace, shelf, dict(data) if isinstance(data, Mapping) else {})

    def _gone(self, uid: str) -> None:
        for namespace, shelf in list(self.shelves.items()):
            if shelf.uid == uid:
                shelf.uid = shelf.version = ""
                self._read(namespace, shelf, {})
                if not shelf.waiting:
                    del self.shelves[namespace]

    def _read(self, namespace: str, shelf: Shelf, stored: dict[str, str]) -> None:
        before = shelf.book.pasts
        shelf.stored = stored
        shelf.rebuild()
        after = shelf.book.pasts
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                self._news(self._like.get((namespace, key), set()))
        if shelf.waiting:
            self.there.set()

    def missing(self, namespace: str) -> None:
        """Note that there is no ConfigMap in a namespace."""
        self._gone(self.shelves[namespace].uid)

    def drop(self, namespace: str) -> None:
        """Forget a namespace that is gone, unless its ConfigMap is known: it may be there anew."""
        shelf = self.shelves.get(namespace)
        if shelf is not None and not shelf.version:
            del self.shelves[namespace]

    def all_known(self, namespace: str) -> None:
        """Note that what waits in a namespace changes nothing of what is stored."""
        self.shelves[namespace].waiting.clear()

    def unwritten(self) -> list[str]:
        """Return the namespaces of which something is to be written."""
        return sorted(namespace for namespace, shelf in self.shelves.items() if shelf.waiting)

    def patch(self, namespace: str) -> tuple[str, dict[str, str | None]]:
        """Return the version of what is stored, and the entries to change; None removes one."""
        shelf = self.shelves[namespace]
        wanted = {key: entry(shelf.book.pasts[key], ends) for key, ends in shelf.seen.items()}
        wanted[MISSES] = common(shelf.book)
        changed: dict[str, str | None] = {
            key: text for key, text in wanted.items() if shelf.stored.get(key) != text
        }
        # What is ours and cannot be read is left to whoever edited it, until its key has another end.
        gone = [key for key in shelf.stored if is_key(key) and key not in wanted]
        changed |= {key: None for key in gone if read_entry(shelf.stored[key]) is not None}
        return shelf.version, changed


def key_of(job: ledger.Ledger) -> str:
    """Return 16 hex digits that a job has in common with its like in the namespace, "" for none."""
    work = job.work
    if work.name == "" or not work.size:
        return ""
    like = ["name", work.name] if work.name is not None else ["pods", work.pods]
    text = json.dumps([work.owner, like, work.size])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_of(job: ledger.Ledger) -> Run | None:
    """Return what there is to learn from a job, None where it did not end well, or nobody saw all of it."""
    status = job.status
    if status.phase is not ledger.Phase.SUCCEEDED or not is_key(status.like):
        return None
    if not 0 < status.saved <= LONGEST_RUN or not status.completed:
        return None
    figure = job.spec.estimate if job.spec is not None else None
    return Run(job.uid, status.like, status.completed, status.saved, figure)


def is_key(text: str) -> bool:
    """Whether a text is a key."""
    return len(text) == 16 and all(digit in "0123456789abcdef" for digit in text)


# Entries of a ConfigMap


def entry(past: history.Past, ends: tuple[End, ...]) -> str:
    """Write what is known of a key."""
    seen = [f"{at}/{whose}" for at, whose in ends]
    return json.dumps({"runs": past.runs, "misses": past.misses, "seen": seen}, separators=(",", ":"))


def read_entry(text: object) -> tuple[history.Past, tuple[End, ...]] | None:
    """Read what is known of a key, None where nothing can be."""
    raw = _json(text)
    runs, misses = _numbers(raw.get("runs"), LONGEST_RUN), _numbers(raw.get("misses"), history.WILDEST)
    seen = sorted({end for item in lenient.texts(raw.get("seen")) if (end := _end(item)) is not None})
    if not runs or not seen:
        return None
    return history.Past(runs[-history.RUNS :], misses[-history.OWN_MOST :]), tuple(seen[-SEEN:])


def common(book: history.Book) -> str:
    """Write what all keys have in common."""
    return json.dumps({source.value: book.misses.get(source, ()) for source in history.Source})


def read_common(book: history.Book, text: object) -> None:
    """Read what all keys have in common into a book."""
    raw = _json(text)
    for source in history.Source:
        book.misses[source] = _numbers(raw.get(source.value), history.WILDEST)[-history.ALL_MOST :]


def _json(text: object) -> Object:
    if not isinstance(text, str) or len(text) > LONGEST:
        return {}
    try:
        return lenient.mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _numbers(value: object, most: int) -> tuple[int, ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if type(item) is int and 0 <= item <= most)


def _end(text: str) -> End | None:
    at, slash, whose = text.partition("/")
    usable = slash and at.isascii() and at.isdigit() and len(at) <= 15 and len(whose) == 8
    return (int(at), whose) if usable else None
