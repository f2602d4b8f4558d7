"""Claims, slots and reservations as a status has them: read with what is odd left out, and written.

Where room is that an admission holds is the ledger's own business, since ranks have their nodes there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lstqueue.api import durations, times
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import lenient

Object = Mapping[str, Any]
Json = dict[str, Any]


def claim(raw: Object) -> model.Claim | None:
    """Return a claim; one that nobody can tell the end of is none, and is given up."""
    expires = lenient.time(raw.get("expires"))
    if not expires:
        return None
    return model.Claim(
        groups=_groups(raw),
        victims=tuple(
            model.Victim(lenient.text(item.get("uid")), lenient.count(item.get("attempt")))
            for item in lenient.objects(raw.get("victims"))
        ),
        expires=expires,
    )


def reservation(raw: Object) -> model.Reservation | None:
    """Return a reservation; one that nobody can tell the start of is none: room is kept anew."""
    start = lenient.time(raw.get("start"))
    if not start:
        return None
    return model.Reservation(groups=_groups(raw), start=start, slips=lenient.count(raw.get("slips")))


def slot(raw: Object) -> model.Slot | None:
    """Return a slot; one that nobody can tell the time of is none, and nothing is promised by it."""
    start, finish = lenient.time(raw.get("start")), lenient.time(raw.get("finish"))
    if not start or finish <= start:
        return None
    return model.Slot(_groups(raw), start, finish, lenient.duration(raw.get("runTime")))


def claim_json(names: Sequence[str], held: model.Claim, queue: str) -> Json:
    """Return a claim of room in a queue as a status has it."""
    rendered: Json = {"queue": queue} if queue else {}
    return rendered | {
        "expires": times.format(held.expires),
        "groups": _groups_json(names, held.groups),
        "victims": [{"uid": victim.uid, "attempt": victim.attempt} for victim in held.victims],
    }


def slot_json(names: Sequence[str], held: model.Slot) -> Json:
    """Return a slot as a status has it."""
    return {
        "start": times.format(held.start),
        "finish": times.format(held.finish),
        "runTime": durations.format(held.hi),
        "groups": _groups_json(names, held.groups),
    }


def reservation_json(names: Sequence[str], held: model.Reservation) -> Json:
    """Return a reservation as a status has it."""
    rendered: Json = {"slips": held.slips} if held.slips else {}
    return rendered | {"start": times.format(held.start), "groups": _groups_json(names, held.groups)}


def _groups(raw: Object) -> tuple[model.GroupPlacement, ...]:
    return tuple(
        model.GroupPlacement(
            pool=lenient.text(group.get("pool")),
            nodes=tuple(
                (lenient.text(item.get("node")), min(lenient.count(item.get("count")), views.RANKS))
                for item in lenient.objects(group.get("nodes"))
            ),
        )
        for group in lenient.objects(raw.get("groups"))
    )


def _groups_json(names: Sequence[str], groups: Sequence[model.GroupPlacement]) -> list[Json]:
    if len(names) != len(groups):
        # The groups of a referenced job are known once that was seen; until then their order has to do.
        names = [str(index) for index in range(len(groups))]
    return [
        {
            "name": name,
            "pool": group.pool,
            "nodes": [{"node": node, "count": count} for node, count in group.nodes],
        }
        for name, group in zip(names, groups, strict=True)
    ]
