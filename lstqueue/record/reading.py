"""Through a cluster once, page by page, or after it for as long as it is followed.

Memory holds a page of objects and the UIDs of the jobs that are there, whatever their number has been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from lstqueue.api import times
from lstqueue.kube import port, reflector
from lstqueue.operator import queues
from lstqueue.record import book, rows

PAGE = 500
_RETRIES = 3
"""Lists that took too long are begun anew so often."""

DELETED = "was deleted before it could be recorded"


@dataclass(slots=True)
class Reader:
    """Writes into `into` what succeeded and was created at `since` (ms since the epoch) or later.

    `left_out` counts by reason those that are no line, each once; `waiting` are those that may become one.
    `told` is called with the key of each line.
    """

    api: port.KubeApi
    into: book.Book
    asked: rows.Asked
    namespace: str | None = None
    since: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    waiting: set[str] = field(default_factory=set)
    told: Callable[[str], None] = lambda _: None
    _judged: set[str] = field(default_factory=set)

    async def once(self) -> None:
        """List everything.

        Raises:
            ApiError: A page could not be had.
            BookError: The file cannot be written.
        """
        for attempt in range(_RETRIES):
            token = ""
            try:
                while True:
                    page = await self.api.list_page(
                        port.DEADLINE_JOBS, namespace=self.namespace, limit=PAGE, continue_token=token
                    )
                    for item in page.items:
                        self.see(item)
                    token = page.continue_token
                    if not token:
                        return
            except port.GoneError:
                if attempt == _RETRIES - 1:
                    raise

    def following(self) -> reflector.Reflector:
        """Return what follows the cluster from its list on, for as long as it runs, through outages.

        Its `run` raises BookError when the file cannot be written.
        """
        return reflector.Reflector(
            self.api,
            port.DEADLINE_JOBS,
            on_event=self._event,
            namespace=self.namespace,
            page_size=PAGE,
        )

    def see(self, raw: port.Object) -> None:
        """Write a job down if it can be, and has not been."""
        uid = raw["metadata"]["uid"]
        if rows.uid(raw["metadata"]) in self.into or uid in self._judged:
            return
        if times.parse(raw["metadata"]["creationTimestamp"]) < self.since:
            return
        try:
            row = rows.row(raw, self.asked)
        except rows.LeftOutError as error:
            if error.later:
                self.waiting.add(uid)
                return
            self._leave_out(uid, error.reason)
            return
        self.waiting.discard(uid)
        self.into.add(row)
        self.told(row["key"])

    def _event(self, kind: str, raw: port.Object) -> None:
        uid = raw["metadata"]["uid"]
        if kind != reflector.DELETED:
            self.see(raw)
            return
        if "spec" in raw:
            self.see(raw)  # it may have succeeded and gone between two events
        if uid in self.waiting:
            self._leave_out(uid, DELETED)
        self._judged.discard(uid)

    def _leave_out(self, uid: str, reason: str) -> None:
        self.waiting.discard(uid)
        self._judged.add(uid)
        self.left_out[reason] += 1


async def defaults(api: port.KubeApi) -> dict[str, queues.Defaults]:
    """Return by queue what its jobs get that do not say otherwise.

    Raises:
        ApiError: The queues could not be read.
    """
    found, token = {}, ""
    while True:
        page = await api.list_page(port.GPU_QUEUES, limit=PAGE, continue_token=token)
        for item in page.items:
            found[item["metadata"]["name"]] = queues.read(item).defaults
        token = page.continue_token
        if not token:
            return found
