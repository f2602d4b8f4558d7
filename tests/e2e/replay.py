"""Judges a recorded run by the auditor of the embedded cluster: one set of invariants for both worlds.

The record has every version of every object in the order of the server, which is all the auditor asks for.
What only time can break it does not judge here: tests wait for what is to happen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lstqueue.embedded import audit, eventlog
from lstqueue.kube import port

Object = dict[str, Any]

_KINDS = {
    kind.kind: kind
    for kind in (
        *(port.NODES, port.GPU_QUEUES, port.NAMESPACES),
        *(port.DEADLINE_JOBS, port.JOBS, port.PYTORCH_JOBS, port.PODS),
    )
}


class Tape:
    """Stands in for the store that the auditor watches."""

    def __init__(self) -> None:
        self.now = 0
        self._tell: Callable[[eventlog.Event], None] = lambda _: None
        self._there: dict[tuple[str, str, str], Object] = {}

    def now_ms(self) -> int:
        return self.now

    def list(self, _: port.Resource) -> list[Object]:
        return []

    def find(self, resource: port.Resource, namespace: str | None, name: str) -> Object | None:
        return self._there.get((resource.kind, namespace or "", name))

    def subscribe(self, tell: Callable[[eventlog.Event], None]) -> Callable[[], None]:
        self._tell = tell
        return lambda: None

    def play(self, at: int, rv: int, event: str, raw: Object) -> None:
        meta = raw["metadata"]
        key = (raw["kind"], meta.get("namespace", ""), meta["name"])
        if event == eventlog.DELETED:
            self._there.pop(key, None)
        else:
            self._there[key] = raw
        self.now = max(self.now, at)
        self._tell(eventlog.Event(event, _KINDS[raw["kind"]], eventlog.Stored(raw), None, rv))


def violations(seen: list[tuple[int, int, str, Object]]) -> list[str]:
    """Return what was broken in a run, rows being (ms, resourceVersion, event, object), in words."""
    tape, errors = Tape(), list[Exception]()
    judge = audit.Audit(tape, errors)
    for row in sorted(seen, key=lambda row: row[1]):
        tape.play(*row)
    judge.close()
    assert not errors, errors
    assert judge.checks, "nothing was judged"
    return [str(found) for found in judge.violations]
