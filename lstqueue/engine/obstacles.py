"""What stands in a gang's way: closed nodes, foreign pods, ends that nobody knows. In words, with names.

Looks at what a pass kept, and only when somebody has to be told; decides nothing. Foreign pods are known to
the engine as sums; their names come with the snapshot, for this module alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lstqueue.engine import cohorts, fit, gangs, model, room, words
from lstqueue.engine.kept import Kept
from lstqueue.topology import capacity
from lstqueue.topology.table import natural

SHOWN = 3
"""Pods or jobs named of each kind; the others are counted."""


class Held(NamedTuple):
    """A foreign pod on a node where more of a group would fit without such; `name` is "" when not known."""

    node: str
    namespace: str
    name: str

    def words(self) -> str:
        """The pod as people name it, after others of which some have names."""
        return f"{self.namespace}/{self.name} on {self.node}" if self.name else f"others on {self.node}"


def unforeseen(kept: Kept, job: model.Job) -> str:
    """Why no start of a job that is in line can be foreseen, as the rest of a sentence."""
    key = id(kept.gangs[job.uid])
    if key not in kept.wording.causes:
        kept.wording.causes[key] = list(dict.fromkeys(_lasting(kept, kept.gangs[job.uid])))
    causes = kept.wording.causes[key] or list(_in_line(kept, job))
    if not causes and kept.windows.horizon(job.queue) is not None:
        return "the windows of its queue leave too little for it, as far ahead as they are known"
    return " and ".join(causes) or "nobody can tell when others leave its room"


def closed_nodes(
    kept: Kept, member: gangs.Member, count: int, free: room.Room | None = None
) -> tuple[list[int], bool]:
    """The cordoned or unready nodes with which `count` pods of a group would have room.

    Args:
        kept: The pass.
        member: The group.
        count: How many pods.
        free: The room to judge by, that which the pass left when None.

    Returns:
        (columns of the nodes, whether those that are open could not hold all pods even when empty); no nodes
        when they would not help, neither now nor when others leave.
    """
    ledger, empty = (kept.free if free is None else free).ledger, kept.possible.empty().ledger
    needed: list[tuple[list[int], bool]] = []
    for option in member.options:
        row = ledger.rows.rows[option.row]
        closed = row.lasting & kept.nodes.closed()
        open_ = int(empty.counts[option.row][row.mask].sum())
        fits = _on_closed(ledger, option.row, closed, count)
        whole = open_ + int(empty.counts[option.row][closed].sum())
        lacking = open_ < count <= whole
        if lacking or int(ledger.total[option.row]) + fits >= count:
            needed.append((closed.nonzero()[0].tolist(), lacking))
        elif open_ >= count:
            return [], False
    # A pool whose open nodes would do makes waiting for them worth while.
    return min(needed, key=lambda one: one[1], default=([], False))


def suffice(kept: Kept, member: gangs.Member, count: int, columns: list[int]) -> bool:
    """Whether `count` pods of a group would have room at once if the closed nodes in `columns` were open."""
    ledger = kept.free.ledger
    closed = np.zeros(len(kept.nodes.nodes), dtype=bool)
    closed[columns] = True
    rows = [(option.row, closed & ledger.rows.rows[option.row].lasting) for option in member.options]
    return any(int(ledger.total[row]) + _on_closed(ledger, row, mask, count) >= count for row, mask in rows)


def _on_closed(ledger: capacity.Ledger, row: int, closed: np.ndarray, count: int) -> int:
    """How many pods of a row closed nodes would take now, of each no more than `count`."""
    needs = ledger.rows.amounts[:, row]
    asked = needs > 0
    fits = (np.maximum(ledger.free[asked][:, closed], 0) // needs[asked, None]).min(axis=0, initial=count)
    return int(fits.sum())


def closed_words(kept: Kept, columns: list[int]) -> tuple[str, str]:
    """Which nodes are closed, and what would open them: ("n1 is cordoned", "it is uncordoned")."""
    nodes = [kept.nodes.nodes[column] for column in columns]
    who = words.names(sorted((node.name for node in nodes), key=natural))
    verb, they = ("is", "it") if len(nodes) == 1 else ("are", "they")
    if all(node.unschedulable for node in nodes):
        what, undone = "cordoned", "uncordoned"
    elif any(node.unschedulable for node in nodes):
        what, undone = "cordoned or not ready", "uncordoned or ready again"
    else:
        what, undone = "not ready", "ready again"
    return f"{who} {verb} {what}", f"{they} {verb} {undone}"


def foreign_pods(kept: Kept, member: gangs.Member, free: room.Room | None = None) -> list[Held]:
    """The foreign pods on open nodes where more pods of a group would fit without those, largest first."""
    ledger = (kept.free if free is None else free).ledger
    rows = ledger.rows
    found: dict[Held, tuple[int, Held]] = {}
    for option in member.options:
        asked = rows.amounts[:, option.row] > 0
        needs = rows.amounts[asked, option.row][:, None]
        without = np.maximum(ledger.free[asked] + kept.foreign[asked], 0) // needs
        mask = rows.rows[option.row].mask & (without.min(axis=0) > ledger.counts[option.row])
        resources = [rows.resources[rows.scarce[option.row]], *np.array(rows.resources)[asked].tolist()]
        for column in mask.nonzero()[0].tolist():
            for amount, held in _on(kept, kept.nodes.names[column], resources):
                found[held] = (-amount, held)
    return [held for _, held in sorted(found.values())]


def foreign_words(pods: list[Held], *, one: str, several: str) -> str:
    """Foreign pods and what they do: `foreign pods ns/a on n0 and others on n1 take room`; empty for none.

    `one` and `several` are that as of one pod and of more: where none has a name nobody knows how many.
    """
    if not pods:
        return ""
    if not any(held.name for held in pods):
        return f"foreign pods on {words.names([held.node for held in pods], SHOWN)} {several}"
    noun, verb = ("foreign pod", one) if len(pods) == 1 else ("foreign pods", several)
    return f"{noun} {words.names([held.words() for held in pods], SHOWN)} {verb}"


def _on(kept: Kept, node: str, resources: list[str]) -> Iterator[tuple[int, Held]]:
    """The foreign pods of a node that use the first of these resources, else any of them; with how much."""
    there = kept.snapshot.foreign.get(node, ())
    for names in (resources[:1], resources[1:]):
        using = [(one, sum(dict(one.requests).get(name, 0) for name in names)) for one in there]
        using = [(one, amount) for one, amount in using if amount > 0]
        if using:
            yield from ((amount, Held(node, one.namespace, one.name)) for one, amount in using)
            return
    yield 0, Held(node, "", "")


def _lasting(kept: Kept, gang: gangs.Gang) -> Iterator[str]:
    """What keeps a gang from room even once everybody has left whose end is known."""
    calm = kept.wording.calm
    if calm is None:
        return
    if not calm.quota_fits(gang):
        mine = kept.queues[gang.queue]
        holders = [job for job in _endless(kept) if cohorts.together(kept.queues.get(job.queue), mine)]
        yield from _no_estimate(holders, "holds its quota", "hold its quota")
    for member in gang.members:
        lacking = max((int(calm.ledger.total[one.row]) for one in member.options), default=0) < member.count
        if not lacking:
            continue
        columns, _ = closed_nodes(kept, member, member.count, calm)
        if columns:
            yield closed_words(kept, columns)[0]
        holders = [job for job in _endless(kept) if _uses(kept, job, member)]
        yield from _no_estimate(holders, "holds its room", "hold its room")
        if foreign := foreign_pods(kept, member, calm):
            yield foreign_words(foreign, one="holds its room", several="hold its room")


def _endless(kept: Kept) -> Iterator[model.Job]:
    """Those who own room, from this pass on or longer, and of whom nobody knows when they end."""
    for uid, job in kept.jobs.items():
        here = kept.standings.get(uid)
        owns = bool(job.assigned) or uid in kept.fitted.placed or uid in kept.staked
        if here is not None and here.finish is None and owns:
            yield job


def _uses(kept: Kept, job: model.Job, member: gangs.Member) -> bool:
    """Whether a job is on open nodes that a group could use."""
    rows = kept.free.ledger.rows.rows
    columns = [kept.nodes.index[part.node] for part in job.assigned if part.node in kept.nodes.index]
    for taken in kept.fitted.placed.get(job.uid, ()):
        columns += taken.nodes.tolist()
    if (stake := kept.staked.get(job.uid)) is not None:
        columns += stake.whole.nodes.tolist()
    return any(bool(rows[option.row].mask[columns].any()) for option in member.options)


def _in_line(kept: Kept, job: model.Job) -> Iterator[str]:
    """Who before it in line would take its room for a time that nobody knows."""
    head = kept.fitted.heads.get(job.queue)
    if head is not None and head != job.uid:
        yield f"it waits behind {words.job(kept.standings[head].job)}, which is at the head of its queue"
        return
    ahead: list[model.Job] = []
    for turn in kept.line:
        other = turn.job
        if other.uid == job.uid or len(ahead) > SHOWN:
            break
        waits = other.uid not in kept.fitted.placed and kept.codes.get(other.uid) not in fit.NEVER_FITS
        if waits and kept.here(turn).finish is None:
            ahead.append(other)
    several = "and others are ahead of it" if len(ahead) > SHOWN else "are ahead of it"
    yield from _no_estimate(ahead[:SHOWN], "is ahead of it", several)


def _no_estimate(jobs: Iterable[model.Job], one: str, several: str) -> Iterator[str]:
    """Who of these has no estimate, and what they do by it."""
    named = sorted(words.job(job) for job in jobs)
    if len(named) == 1:
        yield f"{named[0]}, which has no estimate, {one}"
    elif named:
        yield f"{words.names(named, SHOWN)}, which have no estimate, {several}"
