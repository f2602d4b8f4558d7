"""Claims: what becomes of the places that jobs own while those suspended for them leave.

A claim ends in one of two ways. As soon as all of its place is free its owner is admitted there, and nowhere
else; victims that nobody has suspended by then are spared. Or it is given up: the owner or the place changed,
time ran out, or nobody has left for it yet and the reason to suspend somebody is gone. Until then the victims
of a claim that is written are to be suspended, and every pass says so until they are.

A claim that is not written yet is only charged: whoever writes it finds out whether it stands. So is one
whose owner may not be tried yet. One given up stays charged for this pass: its room is free when that is
written.
"""

from __future__ import annotations

from lstqueue.engine import cohorts, gangs, kept, model, moves, reclaim, rights, siting, stakes, words
from lstqueue.engine.stakes import Stake
from lstqueue.topology import table


def settle(known: kept.Kept) -> kept.Settled:
    """Decide about every claim, and charge in full those whose owners start."""
    done = kept.Settled()
    for uid in known.claiming:
        if uid not in known.staked:
            done.drop[uid] = model.Drop(uid, "It has no claim on record.")
    for uid, stake in known.staked.items():
        if not stake.claim.committed or stake.here.job.not_before > known.now:
            continue
        short, enough = stakes.lacking(stake, known.free)
        if problem := _void(known, stake) or _idle(known, stake):
            done.drop[uid] = model.Drop(uid, problem)
        elif not short and enough:
            known.free.charge(stake.rest)
            done.admit[uid] = stake
        elif known.now >= expiry(stake):
            done.drop[uid] = _late(known, stake, short)
        elif problem := _unjustified(known, stake):
            done.drop[uid] = model.Drop(uid, problem)
        else:
            # Who cannot leave may still be let go before it expires.
            for job in (one for one in stake.running if not one.stays):
                lent = _lent(known, job, stake.here.job)
                why = model.Why.RECLAIMED if lent else model.Why.PREEMPTED
                done.suspend.append(model.Suspend(job.uid, job.attempt, why, uid))
    return done


def _lent(known: kept.Kept, job: model.Job, owner: model.Job) -> bool:
    """Whether a job leaves what was lent to it; queues apart lend nothing, though slots share their nodes."""
    mine, other = known.queues.get(owner.queue), known.queues.get(job.queue)
    return job.queue != owner.queue and cohorts.together(mine, other)


def expiry(stake: Stake) -> int:
    """When a claim is given up, in ms since the epoch: a grace later than written while a victim leaves."""
    leaving = (job.grace for job in stake.victims if job.state is model.State.ENDING)
    return stake.claim.expires + max(leaving, default=0)


def drain(known: kept.Kept) -> list[model.Suspend]:
    """Everybody who owns room in a queue that is emptied and can leave, unless that only observes."""
    emptied = {name for name, queue in known.queues.items() if queue.drained and not queue.observed}
    leaving = [here.job for here in known.placed if here.job.queue in emptied] if emptied else []
    able = (job for job in leaving if not job.stays)
    return [model.Suspend(job.uid, job.attempt, model.Why.QUEUE_DRAINED) for job in able]


def _void(known: kept.Kept, stake: Stake) -> str:
    """Why a claim cannot be fulfilled any more, whatever it has cost; empty when it can."""
    job, groups = stake.here.job, stake.claim.groups
    queue, gang = known.queues.get(job.queue), known.gangs.get(job.uid)
    if queue is None or gang is None:
        return f'Queue "{job.queue}" is not there any more.'
    if queue.observed:
        return f'Queue "{job.queue}" only observes.'
    if queue.conflict:
        return f'Queue "{job.queue}" admits nobody: {queue.conflict}.'
    if queue.drained:
        return f'Queue "{job.queue}" is being drained.'
    if queue.max_importance is not None and job.importance > queue.max_importance:
        return f'Its importance is above the {queue.max_importance} that queue "{job.queue}" allows.'
    if len(groups) != len(job.groups):
        return "Its groups are not those it was claimed for."
    for member in gang.members:
        if problem := misplaced(known, job.groups[member.group], groups[member.group], member):
            return problem
    return "" if siting.holds(known.world.stage, gang, groups) else APART


APART = "Its place is not in the domains of the interconnect that it asks for."


def misplaced(known: kept.Kept, group: model.Group, place: model.GroupPlacement, member: gangs.Member) -> str:
    """Why a group cannot go to a place that was found for it before; empty when it can."""
    if sum(count for _, count in place.nodes) != group.count:
        return f'Group "{group.name}" is not of the size it was claimed for.'
    option = next((one for one in member.options if one.pool == place.pool), None)
    if option is None:
        return f'Pool "{place.pool}" may not be used any more.'
    name = barred_node(known, place, known.free.ledger.rows.rows[option.row].mask)
    return f"Node {name} may not be used any more." if name is not None else ""


def barred_node(known: kept.Kept, place: model.GroupPlacement, mask: table.Mask) -> str | None:
    """The first node of a place that is not there, or not in a mask; None when all are."""
    for name, _ in place.nodes:
        column = known.nodes.index.get(name)
        if column is None or not mask[column]:
            return name
    return None


def _idle(known: kept.Kept, stake: Stake) -> str:
    """Why a claim is not worth having though its place may be free; empty when it is, or cost somebody."""
    queue = known.queues[stake.here.job.queue]
    if stake.sunk:
        return ""
    if queue.held:
        return _stopped(queue)
    # In a cohort it may have its place by another right than its deadline: `_unjustified` says.
    bound = not known.config.switches.by_rank and not reclaim.shares(known, queue.name)
    hopeless = stake.here.hopeless and bound
    return "Its deadline cannot hold any more." if hopeless else ""


def _stopped(queue: model.Queue) -> str:
    return f'Queue "{queue.name}" admits nobody for now.'


def _unjustified(known: kept.Kept, stake: Stake) -> str:
    """Why nobody should be suspended for a claim for which nobody has left yet; empty when they should.

    In a queue that is held nobody is suspended, whoever has left: what runs there goes on.
    """
    here, queue = stake.here, known.queues[stake.here.job.queue]
    if queue.held and stake.running:
        return _stopped(queue)
    if stake.sunk or not stake.running or known.promised.due(stake):
        return ""
    if reclaim.shares(known, queue.name):
        first = reclaim.unjustified(known, stake)
        return "" if first is None else f"{words.job(first)} may not be suspended for it any more."
    if rights.denial(here, queue, known.config) is not None:
        return "It may have nobody suspended any more."
    herd = known.herd(queue.name)
    who = rights.candidate(here, queue, known.now, rank=known.rank_of(here))
    allowed, movers = herd.allowed(who, even_claimed=True), moves.allowed(who, herd, known.config)
    moving: list[model.Job] = []
    for job in stake.running:
        place = herd.flock.place(job.uid)
        if place is not None and movers[place] and not allowed[place]:
            moving.append(job)
        elif place is None or not allowed[place]:
            return f"{words.job(job)} may not be suspended for it any more."
    stuck = moves.unsettled(known, stake, moving) if moving else None
    return "" if stuck is None else f"{words.job(stuck)} has no room elsewhere any more."


def _late(known: kept.Kept, stake: Stake, short: list[int]) -> model.Drop:
    if stake.running and not stake.sunk:  # nobody was there to say so: no node is to blame
        return model.Drop(stake.here.job.uid, "Its time ran out before anybody was told to make room.")
    names = tuple(known.nodes.names[column] for column in short)
    where = f" on {words.names(names)}" if names else ""
    grace = max((job.grace for job in stake.victims), default=stake.here.job.grace)
    until = known.now + known.config.avoid_graces * grace if names else 0
    return model.Drop(stake.here.job.uid, f"Its place{where} did not come free in time.", names, until)
