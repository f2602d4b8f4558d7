"""The status of each Interconnect: its levels, what was left out, and whether its sources could be read.

Written when something in it changed, and again where that did not go through; bounded, since what is left out
of a large fabric is more than an object can hold. It reports what was found and decides nothing.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lstqueue.api import base, interconnect
from lstqueue.kube import port
from lstqueue.operator import guard, interconnects, tellings
from lstqueue.topology.domains import LeftOut, Merged

_LOG = logging.getLogger(__name__)


class Reporter:
    """Writes the statuses of Interconnects; `wrote` takes in what came of it."""

    def __init__(
        self,
        api: port.KubeApi,
        guards: guard.Guard,
        *,
        now: Callable[[], int],
        wrote: Callable[[str, port.Object], None],
    ) -> None:
        self._api = api
        self._guard = guards
        self._now = now
        self._wrote = wrote
        self._written: dict[str, tuple[int, dict[str, Any]]] = {}
        self._refusal = ""

    async def tell(self, views: Mapping[str, interconnects.View], known: interconnects.Interconnect) -> bool:
        """Write what is new; return whether something did not go through."""
        failed = False
        self._written = {uid: its for uid, its in self._written.items() if uid in views}
        for uid, view in sorted(views.items()):
            status = self._status(view, known)
            if self._written.get(uid) == (view.generation, status):
                continue
            try:
                await self._guard.calls(
                    "Interconnect", view.name, functools.partial(self._write, view, status)
                )
            except port.NotFoundError:
                continue
            except port.ApiError as error:
                failed = True
                if isinstance(error, port.ForbiddenError) and error.message != self._refusal:
                    self._refusal = error.message
                    _LOG.warning("the status of Interconnect %s is not written: %s", view.name, error)
            else:
                self._written[uid] = view.generation, status
        return failed

    async def _write(self, view: interconnects.View, status: dict[str, Any]) -> None:
        if status == {key: view.status.get(key) for key in status}:
            return
        raw = await self._api.patch_status(port.INTERCONNECTS, None, view.name, {"status": status})
        self._wrote("MODIFIED", raw)

    def _status(self, view: interconnects.View, known: interconnects.Interconnect) -> dict[str, Any]:
        counts = known.view is not None and known.view.uid == view.uid
        made = known.domains if counts else None
        levels = made.levels if made is not None else ()
        left_out = made.left_out if made is not None else ()
        merged = made.merged if made is not None else ()
        return {
            "observedGeneration": view.generation,
            "nodes": len(made.nodes) if made is not None else 0,
            "summary": base.cut(
                ", ".join(f"{level.name} {len(level.names)}" for level in levels), base.TEXT_LENGTH
            ),
            "levels": [
                {
                    "name": level.name,
                    "domains": len(level.names),
                    "nodes": int((level.ends - level.starts).sum()),
                }
                for level in levels[: interconnect.MOST_LEVELS]
            ],
            "leftOut": _told(left_out),
            "leftOutCount": len(left_out),
            "merged": _told(merged),
            "mergedCount": len(merged),
            "conditions": tellings.written(
                view.status,
                _facts(view, known, counts=counts),
                now=self._now(),
                generation=view.generation,
            ),
        }


def _facts(
    view: interconnects.View, known: interconnects.Interconnect, *, counts: bool
) -> dict[str, tellings.Told]:
    told: dict[str, tellings.Told] = {"Accepted": _accepted(view, known, counts=counts)}
    if counts:
        bad = {name: state for name, state in known.states.items() if state.problem}
        stale = {name: state for name, state in bad.items() if state.stale}
        reason = next((state.reason for state in bad.values()), "")
        notes = known.domains.notes if known.domains is not None else ()
        said = "; ".join(filter(None, (known.problem, *notes)))
        told["Ready"] = (True, "Contracted", said) if known.domains else (False, "NoDomains", said)
        told["SourcesRead"] = (not bad, reason or "Read", _words(bad.items()))
        told["Stale"] = (bool(stale), "SourceUnreadable" if stale else "UpToDate", _words(stale.items()))
    return told


def _accepted(view: interconnects.View, known: interconnects.Interconnect, *, counts: bool) -> tellings.Told:
    if view.spec is None:
        return False, "InvalidSpec", view.problem
    if counts or known.view is None:
        return True, "Accepted", ""
    return False, "NotUsed", f"Interconnect {known.view.name}, which is older, counts; delete one of the two"


def _words(bad: Iterable[tuple[str, interconnects.SourceState]]) -> str:
    return "; ".join(f"{name}: {state.problem}" for name, state in bad)


def _told(items: Sequence[LeftOut | Merged]) -> list[dict[str, str]]:
    """The first of them, as an object may hold."""
    return [
        interconnect.Oddity(name=base.cut(one.name, base.TEXT_LENGTH), reason=one.reason).dump()
        for one in items[: interconnect.MOST_TOLD]
    ]
