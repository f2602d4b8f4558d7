"""For `explain`: why nobody is suspended for a job that waits, in figures, and for whom a job has to go."""

from __future__ import annotations

from collections import Counter

from lstqueue.engine import model, preempt, reclaim, rights, victims, words
from lstqueue.engine.gangs import PPM
from lstqueue.engine.kept import Kept
from lstqueue.engine.standing import Standing


def suspended(kept: Kept, uid: str) -> str:
    """For whom a job that owns its room is to give it up; empty when it is not."""
    if any(suspend.uid == uid for suspend in kept.drained):
        return "It is suspended: its queue is being emptied."
    for stake in kept.going():
        if any(job.uid == uid for job in stake.running):
            return f"It is suspended for {words.job(stake.here.job)}."
    return ""


def waiting(kept: Kept, here: Standing, code: model.Code) -> str:
    """What keeps a job that waits from having others suspended, or who was; empty if that is no question."""
    uid, config = here.job.uid, kept.config
    if (stake := kept.staked.get(uid)) is not None:
        names = words.names([words.job(job) for job in stake.victims])
        return f"For it {names} had to leave." if names else "Nobody has to leave for it any more."
    if code not in preempt.LACKING:
        return ""
    if uid in kept.preempted.coming:
        fits = "It fits as soon as those that are ending have left"
        if here.slack is None:
            return f"{fits}."
        return (
            f"{fits}; others are suspended for it only once its slack of {words.duration(here.slack)} has"
            f" shrunk to {words.duration(config.pressing)}."
        )
    denied = rights.denial(here, kept.queues[here.job.queue], config)
    lent = _lent(kept, here) if reclaim.shares(kept, here.job.queue) else ""
    if denied is None:
        return _searched(kept, here) + lent
    return _denied(kept, here, denied) + lent + _share(kept, uid)


def _lent(kept: Kept, here: Standing) -> str:
    """What keeps a job from what its queue has lent."""
    turn = next((one for one in kept.line if one.job.uid == here.job.uid), None)
    queue = kept.queues[here.job.queue]
    if turn is None or not queue.reclaims:
        return f' Queue "{queue.name}" takes nothing back that it lent.'
    if not reclaim.may(kept, turn):
        return f' Queue "{queue.name}" would have to borrow for it, so it takes nothing back from others.'
    several, able, due = reclaim.borrowers(kept, turn)
    if due > kept.now:
        return (
            f' Queue "{queue.name}" may take back what it lent in {words.duration(due - kept.now)} again: it'
            f" does so once in {words.duration(queue.reclaim_grace)}."
        )
    number = words.count(several, "job")
    return (
        f' Of {number} in cohort "{queue.cohort}" that run on borrowed quota {able} may be suspended for it,'
        " and it would not fit then."
    )


def _share(kept: Kept, uid: str) -> str:
    """Where the best-effort share puts a job; empty where it puts it nowhere."""
    head = kept.sharing.heads.get(uid)
    if head is None:
        return ""
    part = f"{100 * head.share / PPM:g} % of its queue are kept for such work"
    if not head.overdue:
        due = words.duration(head.due - kept.now)
        return f" As {part} and it is the oldest, it stands in line as if it were due in {due}."
    place = "; what comes free in its place is kept for it" if uid in kept.sharing.withheld else ""
    return f" As {part} and it is the oldest and overdue, it goes before everybody{place}."


def _denied(kept: Kept, here: Standing, denied: rights.Denial) -> str:
    if denied is rights.Denial.NEVER:
        return f'Queue "{here.job.queue}" has nobody suspended for others.'
    if denied is rights.Denial.NO_DEADLINE:
        return "Others are suspended only for a job that has an estimate and a deadline that can still hold."
    if denied is rights.Denial.FAILED_STARTS:
        return f"It failed to start {here.job.failed_starts} times in a row, so nobody is suspended for it."
    least = rights.trigger(here, kept.config)
    return (
        f"Its slack is {words.duration(here.slack or 0)}; others are suspended for it from"
        f" {words.duration(least)} on."
    )


def _searched(kept: Kept, here: Standing) -> str:
    """What the search for victims met, victim by victim in sums."""
    queue = here.job.queue
    herd = kept.herd(queue)
    who = rights.candidate(here, kept.queues[queue], kept.now, rank=kept.rank_of(here))
    own = herd.of(queue)
    may = int((herd.allowed(who) & own).sum())
    reasons = Counter(bar.value for bar in herd.bars(own))
    bare = int(own.sum()) - reasons.total()
    taken = int((herd.taken & own).sum())
    reasons[victims.Bar.CLAIMED.value] += taken
    displaced = int((herd.displaced(who) & herd.open & ~herd.claimed & ~herd.taken & own).sum())
    reasons["had it suspended itself"] = displaced
    reasons["of its rank, and harmed by it"] = bare - may - displaced - taken
    told = [f"{number} {reason}" for reason, number in sorted(reasons.items()) if number]
    number = words.count(int(own.sum()), "running job")
    if not may:
        return (
            f'Of {number} in queue "{queue}" none may be suspended for it ({", ".join(told)}).'
            if told
            else ""
        )
    others = f" ({', '.join(told)})" if told else ""
    return f'Of {number} in queue "{queue}" {may} may be suspended for it{others}, and it would not fit then.'
