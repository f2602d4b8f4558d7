"""What must hold of claims and suspensions: nobody is suspended without gain, and nobody who may not be.

The slow and obvious reading of step 5, from the models alone, as `invariants` is of the steps before. Bands
are taken as the pass says them: overload is its own matter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from lstqueue.engine import cohorts, estimate, invariants, justice_cohorts, justice_moves, kept, model
from lstqueue.engine.invariants import Rule, Violation
from lstqueue.topology import eligibility


def of_plan(snapshot: model.Snapshot, plan: model.Plan, config: model.Config) -> tuple[Violation, ...]:
    """Check the claims and suspensions of a plan against the snapshot and configuration it was made of."""
    jobs = {job.uid: job for job in snapshot.jobs}
    queues = cohorts.settle({queue.name: queue for queue in snapshot.queues}, snapshot.nodes)
    bands = {job.uid: job.published.band for job in snapshot.jobs}
    bands |= {update.uid: update.band for update in plan.updates}
    found = [*_claimed_twice(snapshot, plan), *_suspensions(plan, jobs, queues), *_ends(plan, jobs)]
    moving: list[model.Job] = []
    for number, claiming in enumerate(plan.claim):
        owner = jobs.get(claiming.uid)
        queue = None if owner is None else queues.get(owner.queue)
        if owner is None or queue is None:
            continue  # said by `invariants`
        if _is_of_slot(owner, claiming.claim, plan.now, config):
            whose = (
                (one.uid, _slot_problem(snapshot, jobs.get(one.uid), one, config))
                for one in claiming.claim.victims
            )
            found += [Violation(Rule.VICTIM, uid, problem) for uid, problem in whose if problem]
            found += _without_gain(snapshot, plan, claiming)
            continue
        safe = {uid for one in queues.values() for uid in _safe(snapshot, one, bands, config)}
        case = _Case(owner, queue, bands, plan.now, config)
        if queue.account != queue.name and not config.switches.by_rank:
            earlier = dataclasses.replace(plan, claim=plan.claim[:number])
            heads = plan.kept.sharing.heads if isinstance(plan.kept, kept.Kept) else {}
            favoured = safe | heads.keys()
            scene = justice_cohorts.Scene(
                invariants.after(snapshot, earlier), queues, bands, favoured, plan.now, config
            )
            problems = _in_cohort(case, scene, claiming, safe)
        else:
            problems = _in_queue(case, jobs, claiming, safe)
        found += [Violation(Rule.VICTIM, uid, problem) for uid, problem in problems if problem]
        found += _without_gain(snapshot, plan, claiming)
        own = [job for one in claiming.claim.victims if (job := jobs.get(one.uid)) and case.moves(job)]
        if own and justice_moves.too_many(owner, own, config.move_share):
            found.append(Violation(Rule.VICTIM, owner.uid, "too much moves for it"))
        moving += own
    gone = {victim.uid for claiming in plan.claim for victim in claiming.claim.victims}
    if moving and justice_moves.homeless(_without(invariants.after(snapshot, plan), gone), moving):
        names = ", ".join(job.uid for job in moving)
        found.append(Violation(Rule.VICTIM, names, "there is no room for all that are to move"))
    return tuple(found)


def _is_of_slot(owner: model.Job, claim: model.Claim, now: int, config: model.Config) -> bool:
    """Whether a claim is of the owner's slot, whose time has come: nothing protects those in it."""
    slot = owner.slot
    if not config.promising or slot is None or slot.groups != claim.groups:
        return False
    return now >= slot.start - config.slot_grace


def _slot_problem(
    snapshot: model.Snapshot, victim: model.Job | None, named: model.Victim, config: model.Config
) -> str:
    if victim is None or victim.attempt != named.attempt:
        return "it is not there in that attempt"
    if victim.state is model.State.ENDING:
        return ""
    if not estimate.is_placed(victim):
        return "it does not own room in that attempt"
    if not victim.movable or victim.grace > config.slot_grace:
        return "it cannot leave in time"
    queue = next((one for one in snapshot.queues if one.name == victim.queue), None)
    if queue is not None and queue.preemption is model.Preemption.NEVER:
        return "its queue has nobody suspended"
    return ""


def _in_queue(
    case: _Case, jobs: Mapping[str, model.Job], claiming: model.Claiming, safe: Collection[str]
) -> Iterator[tuple[str, str]]:
    """What is wrong with a claim on jobs of its own queue: (uid, how)."""
    yield from ((claiming.uid, problem) for problem in case.owner_problems())
    if claiming.reclaims:
        yield claiming.uid, "it takes back from its own queue"
    for victim in claiming.claim.victims:
        yield victim.uid, case.victim_problem(jobs.get(victim.uid), victim.attempt)
        yield victim.uid, "it is within the best-effort share" if victim.uid in safe else ""


def _in_cohort(
    case: _Case, scene: justice_cohorts.Scene, claiming: model.Claiming, safe: Collection[str]
) -> Iterator[tuple[str, str]]:
    """What is wrong with a claim on jobs of a cohort: (uid, how)."""
    jobs = {job.uid: job for job in scene.snapshot.jobs}
    owner, gone = jobs[claiming.uid], {victim.uid for victim in claiming.claim.victims}
    if claiming.reclaims:
        broken = justice_cohorts.reclaim_problems(scene, owner, claiming.claim)
    else:
        broken = case.owner_problems()
    yield from ((owner.uid, problem) for problem in broken)
    demand = justice_cohorts.claimed(owner, claiming.claim)
    nominal = justice_cohorts.is_nominal(scene, owner, demand, gone)
    for one in claiming.claim.victims:
        victim = jobs.get(one.uid)
        if victim is None or victim.attempt != one.attempt or not estimate.is_placed(victim):
            yield one.uid, "it does not own room in that attempt"
            continue
        if victim.queue == owner.queue:
            yield one.uid, "it takes back from its own queue" if claiming.reclaims else ""
            yield one.uid, case.victim_problem(victim, one.attempt)
            yield one.uid, "it is within the best-effort share" if one.uid in safe else ""
            continue
        yield one.uid, _elsewhere(case, scene, victim, reclaims=claiming.reclaims, nominal=nominal)


def _elsewhere(
    case: _Case, scene: justice_cohorts.Scene, victim: model.Job, *, reclaims: bool, nominal: bool
) -> str:
    """Why a job of another queue may not be suspended for an owner; empty when it may."""
    queue = scene.queues[victim.queue]
    if queue.account != case.queue.account or queue.observed:
        return "its queue lends nothing to the owner's"
    if not justice_cohorts.borrows(scene, victim):
        return "it runs on the nominal quota of another queue"
    if victim.uid in case.owner.displaced_by:
        return "the owner was suspended for it and may not pay it back yet"
    if reclaims:
        return justice_cohorts.protected(scene, victim, case.queue)
    if scene.bands.get(victim.uid) is not model.Band.REST and not nominal:
        return "the owner would be borrowed itself, and it has a deadline"
    return case.protected(victim, queue) or case.harmed(victim, tiers=False)


def _ends(plan: model.Plan, jobs: Mapping[str, model.Job]) -> list[Violation]:
    """Claims are given up by those who have one, and not together with an admission."""
    admitted = {admission.uid for admission in plan.admit}
    found: list[Violation] = []
    for drop in plan.drop:
        job = jobs.get(drop.uid)
        if job is None or job.state is not model.State.CLAIMING or drop.uid in admitted:
            found.append(Violation(Rule.CLAIM, drop.uid, "it gives up a claim that it has not, or starts on"))
    return found


def _claimed_twice(snapshot: model.Snapshot, plan: model.Plan) -> list[Violation]:
    victims = {job.uid: job.claim.victims for job in snapshot.jobs if job.claim is not None}
    victims |= {claiming.uid: claiming.claim.victims for claiming in plan.claim}
    seen: dict[model.Victim, str] = {}
    found: list[Violation] = []
    for uid, several in victims.items():
        for victim in several:
            if victim in seen:
                found.append(Violation(Rule.CLAIM, victim.uid, f"claimed for {seen[victim]} and for {uid}"))
            seen[victim] = uid
    return found


def _suspensions(
    plan: model.Plan, jobs: Mapping[str, model.Job], queues: Mapping[str, model.Queue]
) -> list[Violation]:
    """Whoever is suspended owns room in that attempt, and is drained or in a written claim that goes on."""
    over = {admission.uid for admission in plan.admit} | {drop.uid for drop in plan.drop}
    found: list[Violation] = []
    seen: set[str] = set()
    for suspend in plan.suspend:
        job, owner = jobs.get(suspend.uid), jobs.get(suspend.for_uid)
        problem = ""
        if job is None or not estimate.is_placed(job) or job.attempt != suspend.attempt:
            problem = "it does not own room in that attempt"
        elif job.stays:
            problem = "nobody can have it leave"
        elif suspend.uid in seen:
            problem = "it is suspended twice"
        elif suspend.why is model.Why.PROMISED:
            problem = "" if job.slot is not None else "it has no slot to leave for"
        elif suspend.why is model.Why.QUEUE_DRAINED:
            queue = queues.get(job.queue)
            emptied = queue is not None and queue.drained and not queue.observed
            problem = "" if emptied else "its queue is not drained"
        elif owner is None or owner.claim is None or not owner.claim.committed or owner.uid in over:
            problem = "there is no written claim that goes on"
        elif model.Victim(suspend.uid, suspend.attempt) not in owner.claim.victims:
            problem = "the claim does not name it"
        elif (queue := queues.get(owner.queue)) is None or queue.held or queue.observed:
            problem = "the queue of the claim admits nobody"
        seen.add(suspend.uid)
        if problem:
            found.append(Violation(Rule.VICTIM, suspend.uid, problem))
    return found


def _safe(
    snapshot: model.Snapshot,
    queue: model.Queue,
    bands: Mapping[str, model.Band | None],
    config: model.Config,
) -> set[str]:
    """The running best-effort jobs of a queue that its share protects: the oldest that it holds together."""
    has: dict[str, int] = {}
    for pool in queue.pools:
        nominal = dict(pool.nominal)
        nodes = [node for node in snapshot.nodes if set(pool.selector) <= set(node.labels)]
        for name in {name for node in nodes for name, _ in node.allocatable}:
            there = sum(dict(node.allocatable).get(name, 0) for node in nodes)
            if name in nominal or not eligibility.is_extended(name):
                has[name] = has.get(name, 0) + min(there, nominal.get(name, there))
    rest = [
        job
        for job in snapshot.jobs
        if job.queue == queue.name
        and estimate.is_placed(job)
        and bands.get(job.uid) is model.Band.REST
        and (config.share_late or job.deadline is None or job.estimate is None)
    ]
    kept = config.sharing and config.share_protects
    kept = kept and (config.order or queue.order) in (model.Order.LST, model.Order.EDF)
    left = queue.best_effort_share if kept else 0
    safe: set[str] = set()
    for job in sorted(rest, key=lambda one: (max(one.submit, one.deadline or 0), one.uid)):
        part = 0
        for name in {name for group in job.groups for name, _ in group.shape.requests}:
            held = sum(
                dict(job.groups[one.group].shape.requests).get(name, 0) * (one.bound + one.held)
                for one in job.assigned
            )
            part = max(part, held * 1_000_000 // max(has.get(name, 0), 1))
        if part <= left:
            left -= part
            safe.add(job.uid)
    return safe


def _without_gain(snapshot: model.Snapshot, plan: model.Plan, claiming: model.Claiming) -> list[Violation]:
    """With exactly its victims gone, and all else of the plan done, the owner must fit completely."""
    gone = {victim.uid for victim in claiming.claim.victims}
    left = _without(invariants.after(snapshot, plan), gone)
    places = {name for group in claiming.claim.groups for name, _ in group.nodes}
    pools = {group.pool for group in claiming.claim.groups}
    found: list[Violation] = []
    cohort = next((queue.cohort for queue in snapshot.queues if queue.name == claiming.queue), "")
    for broken in invariants.of_snapshot(left):
        node = broken.rule in (Rule.OVERCOMMIT, Rule.FOREIGN_OVERCOMMIT) and broken.subject in places
        quota = broken.rule is Rule.QUOTA and broken.subject in (claiming.queue, cohort)
        if node or (quota and any(broken.detail.startswith(f"pool {pool},") for pool in pools)):
            found.append(Violation(Rule.GAIN, claiming.uid, f"{broken.subject}: {broken.detail}"))
    return found


def _without(snapshot: model.Snapshot, gone: set[str]) -> model.Snapshot:
    """The world once the pods of some jobs have left."""
    freed: dict[str, dict[str, int]] = {}
    jobs: list[model.Job] = []
    for job in snapshot.jobs:
        if job.uid in gone:
            for part in job.assigned:
                for name, amount in job.groups[part.group].shape.requests:
                    there = freed.setdefault(part.node, {})
                    there[name] = there.get(name, 0) + amount * part.bound
            job = replace(job, state=model.State.WAITING, assigned=())
        jobs.append(job)
    nodes = []
    for node in snapshot.nodes:
        there = freed.get(node.name, {})
        used = tuple((name, amount - there.get(name, 0)) for name, amount in node.used)
        nodes.append(replace(node, used=used))
    return replace(snapshot, jobs=tuple(jobs), nodes=tuple(nodes))


class _Case:
    """One owner against each of its victims."""

    def __init__(
        self,
        owner: model.Job,
        queue: model.Queue,
        bands: Mapping[str, model.Band | None],
        now: int,
        config: model.Config,
    ) -> None:
        self.owner, self.queue, self._bands = owner, queue, bands
        self._now, self._config = now, config
        finish = estimate.finish(owner, now, config)
        self._mid = 0 if finish is None else finish.mid - now - owner.overhead
        self._slack = None if finish is None or owner.deadline is None else owner.deadline - finish.mid
        self._late = finish is None or owner.deadline is None or finish.lo > owner.deadline

    def owner_problems(self) -> list[str]:
        """Why nobody may be suspended for the owner."""
        owner, config = self.owner, self._config
        problems: list[str] = []
        if self.queue.preemption is model.Preemption.NEVER:
            problems.append("its queue has nobody suspended")
        if owner.failed_starts >= config.failed_starts_most:
            problems.append("it failed to start too often")
        if config.switches.by_rank:
            return problems
        least = max(config.trigger_least, owner.restore + owner.grace + config.trigger_margin)
        if self._late or self._slack is None or self._bands[owner.uid] is model.Band.REST:
            problems.append("its deadline cannot hold, or it has none")
        elif self._slack > least + int(config.trigger_share * self._mid):
            problems.append("it has slack to wait")
        return problems

    def victim_problem(self, victim: model.Job | None, attempt: int) -> str:
        """Why a job may not be suspended for the owner; empty when it may."""
        if victim is None or victim.attempt != attempt or not estimate.is_placed(victim):
            return "it does not own room in that attempt"
        if victim.queue != self.owner.queue:
            return "it is of another queue"
        if victim.uid in self.owner.displaced_by and not self._config.switches.by_rank:
            return "the owner was suspended for it and may not pay it back yet"
        # Who stands behind whom is the business of `order`, and its tests'.
        tiers = self.queue.preemption is model.Preemption.TIER
        harmed = "" if self._config.switches.by_rank else self.harmed(victim, tiers=tiers)
        return self.protected(victim, self.queue) or harmed

    def protected(self, victim: model.Job, queue: model.Queue) -> str:
        """What protects a job of a queue from everybody; empty for nothing."""
        now, config = self._now, self._config
        runs = victim.state is model.State.RUNNING
        run = max(0, now - victim.since) if runs else 0
        finish = estimate.finish(victim, now, config)
        least = queue.min_run if victim.min_run is None else victim.min_run
        saves = victim.saves_on_suspend or (victim.checkpoint > 0 and run >= victim.checkpoint)
        today = sum(now - time < config.cap_window for time in victim.suspensions)
        checks = [
            (not victim.preemptible, "it is not preemptible"),
            (victim.stays, "nobody can have it leave"),
            (today >= queue.cap, "it was suspended often enough today"),
            (run < least, "it is not past its minimum run"),
        ]
        if not config.switches.by_rank:
            done = finish is not None and finish.mid - now <= self._loss(victim) + victim.restore
            wasted = victim.wasted >= config.wasted_most and not saves
            checks += [(wasted, "it would save nothing once more"), (done, "nearly done")]
        return next((words for broken, words in checks if broken), "")

    def moves(self, victim: model.Job) -> bool:
        """Whether a job may be asked for only since it moves."""
        if self._config.switches.by_rank or victim.queue != self.owner.queue:
            return False
        tiers = self.queue.preemption is model.Preemption.TIER
        return bool(self.harmed(victim, tiers=tiers, stays=True)) and not self.harmed(victim, tiers=tiers)

    def harmed(self, victim: model.Job, *, tiers: bool, stays: bool = False) -> str:
        """Why the owner may not ask for a job that it would harm; a lower tier alone counts with `tiers`.

        It may be asked to move, unless it `stays`.
        """
        owner, config = self.owner, self._config
        mine, other = self._bands[owner.uid], self._bands[victim.uid]
        if mine is None or other is None or self._slack is None:
            return "a band is not known"
        ranks = [
            job.importance if band is model.Band.DEADLINE else min(job.importance, 0)
            for job, band in ((owner, mine), (victim, other))
        ]
        if other > mine and ranks[1] <= ranks[0]:
            return ""
        if mine is model.Band.SHED:
            return "only the rest may be suspended for a job that was given up"
        if tiers and ranks[1] < ranks[0]:
            return ""
        finish = estimate.finish(victim, self._now, config)
        if finish is None or victim.deadline is None:
            return "it has no deadline to meet, and is not of a lower band"
        loss = self._loss(victim)
        slack = victim.deadline - finish.mid - max(loss + victim.restore, config.harm_least)
        waits = slack - self._mid <= 0 or slack <= self._slack + config.harm_margin
        if waits and (stays or not self._may_move(slack, mine)):
            return "it would be harmed"
        if loss > config.unsaved_most and (waits or self._slack > config.pressing):
            return "it would lose too much unsaved work"
        return ""

    def _may_move(self, slack: int, band: model.Band) -> bool:
        """Whether one with so much slack left may be asked to move, were there room; not in cohorts."""
        config, queue = self._config, self.queue
        may = config.moving and band is model.Band.DEADLINE and self._mid >= config.move_least
        return may and queue.account == queue.name and slack > config.harm_margin

    def _loss(self, victim: model.Job) -> int:
        if victim.saves_on_suspend or victim.state is not model.State.RUNNING:
            return 0
        run = max(0, self._now - victim.since)
        return run % victim.checkpoint if victim.checkpoint else run
