"""The line of those who wait, kept between passes: a pass puts in and takes out who changed.

Where a job stands in line does not depend on time, and whether it may stand there only on itself and its
queue. Whom step 2 gives up and the heads of the best-effort share stand elsewhere; a pass moves those in a
line of its own (`line`). Nothing is decided here.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping

from lstqueue.engine import gangs, model, order, register, rights, standing

_RANK = operator.attrgetter("rank")


class Lineup:
    """`turns` are those in line, first to last; the list is another whenever they are.

    `barred` says who may not stand in line, and why; `sharing` are those (uids) that take part in the
    best-effort share.
    """

    def __init__(self, config: model.Config, queues: Mapping[str, model.Queue]) -> None:
        self._config, self._queues = config, queues
        self._open: set[str] = set()
        self._by_uid: dict[str, order.Turn] = {}
        self._given_up: dict[str, order.Turn] = {}
        self._moves = config.switches.urgent is not None
        self.turns: list[order.Turn] = []
        self.barred: dict[str, model.Code] = {}
        self.sharing: set[str] = set()

    def change(self, uids: Iterable[str]) -> None:
        """Note who is new, another or gone, or stands in another way."""
        self._open.update(uids)

    def refresh(
        self,
        lasting: Mapping[str, standing.Lasting],
        standings: Mapping[str, standing.Standing],
        gangs_of: Mapping[str, gangs.Gang],
    ) -> None:
        """Put everybody whom that was noted of where they stand now."""
        if self._moves:  # whoever is urgent goes first, and that comes with time
            self._open.update(self._by_uid)
        if not self._open:
            return
        come: list[order.Turn] = []
        for uid in sorted(self._open):
            one = lasting.get(uid)
            self.barred.pop(uid, None)
            self.sharing.discard(uid)
            self._given_up.pop(uid, None)
            if one is None or one.placed or one.here.job.state is model.State.CLAIMING:
                continue
            if (code := order.barred(one.here.job, self._queues)) is not None:
                self.barred[uid] = code
                continue
            come.append(self._turn(one, standings[uid] if self._moves else one.here, gangs_of[uid]))
            if standing.is_best_effort(one.here, self._config):
                self.sharing.add(uid)
        self._put(come)
        self._open.clear()

    def _put(self, come: list[order.Turn]) -> None:
        """Take those out whom something was noted of, and put others in."""
        out = [turn for uid in self._open if (turn := self._by_uid.pop(uid, None)) is not None]
        self._by_uid.update([(turn.job.uid, turn) for turn in come])
        if len(out) + len(come) > register.MANY:
            self.turns = sorted(self._by_uid.values(), key=_RANK)
            return
        self.turns = self.turns.copy()
        for turn in out:
            del self.turns[bisect.bisect_left(self.turns, turn.rank, key=_RANK)]
        for turn in come:
            bisect.insort(self.turns, turn, key=_RANK)

    def turn(self, uid: str) -> order.Turn | None:
        """The place of a job as long as it is not given up; None: it is not in line."""
        return self._by_uid.get(uid)

    def given_up(self, here: standing.Standing) -> order.Turn | None:
        """The place of a job that is given up; None: it is not in line."""
        uid = here.job.uid
        if (turn := self._by_uid.get(uid)) is None:
            return None
        found = self._given_up.get(uid)
        if found is None or self._moves:
            found = self._given_up[uid] = order.given_up(turn, here, self._config)
        return found

    def _turn(self, one: standing.Lasting, here: standing.Standing, gang: gangs.Gang) -> order.Turn:
        queue = self._queues[here.job.queue]
        asks_from = rights.asks_from(one, queue, self._config)
        asks = asks_from is not None and not self._config.switches.by_rank
        policy = order.policy(queue, self._config)
        strict = order.is_strict(policy, self._config)
        return order.Turn(
            rank=order.rank(policy, here, gang.share, self._config),
            job=here.job,
            gang=gang,
            lane=queue.name if strict else id(gang),
            order=policy,
            observed=queue.observed,
            strict=strict,
            plain=gang.unlisted is None and not queue.observed,
            asks_from=asks_from,
            timely=_is_timely(here),
            who=rights.candidate(one.here, queue, one.at) if asks else None,
        )


def _is_timely(here: standing.Standing) -> bool:
    return here.band is model.Band.DEADLINE and here.slack is not None and not here.hopeless
