"""Existing jobs: what a job that a DeadlineJob refers to needs, by the rules of its own controller.

The job keeps its own retries, and its own word on success and failure. We suspend and resume it, give its
pods their places, and stop when its user, or whoever else steers it, wants it otherwise. A job is only ever
written at the resourceVersion at which it was judged. See `steps.Kind` for what each function is asked.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.jobs import batch, existing, kinds, slots, views
from lstqueue.kube import port
from lstqueue.operator import adoption, endings, ledger, lenient, members, starts, steps, units

Gang = members.Gang
Phase = ledger.Phase
Step = steps.Step

SHAPE_CHANGED = "ShapeChanged"
NODE_UNFIT = "NodeUnfit"

_REPLACED_WITHIN = 10_000
"""Ms after the deletion of a Job within which its CronJob makes the next, if it deleted it for that."""


# Outside of admissions


def stop(gang: Gang) -> Step | None:
    """Suspend a job that runs though it may not, unless it is not ours to suspend."""
    return _failed_meanwhile(gang) or _stop(gang)


def _failed_meanwhile(gang: Gang) -> Step | None:
    """Return the step of one that failed while it was to stop: its controller may leave its pods running."""
    view = gang.unit.view
    stopping = gang.ledger.status.phase is Phase.SUSPENDING
    if view is None or not (stopping and view.failed and view.by_pods):
        return None
    return _failed(gang, view, gang.unit.now)


def _stop(gang: Gang) -> Step | None:
    facts, status = gang.unit, gang.ledger.status
    view = facts.view
    if view is None or view.over or view.deleting:
        return None
    if endings.removable(gang, view):
        return Step(clear=view)
    if due := endings.due(gang, view):
        return Step(patches=(_patch(view, existing.mark(view, due)),))
    if view.suspended:
        return None
    if status.phase is Phase.SUSPENDING:
        return Step(patches=(_patch(view, kinds.of(view).suspend(view)),))
    if facts.hands_off or facts.disputed or status.phase in (Phase.SUCCEEDED, Phase.REJECTED):
        return _left_running(gang, view)
    if status.phase is Phase.PENDING and facts.refusal[0]:
        return _left_running(gang, view)
    if status.phase is Phase.PENDING and (adoption.possible(gang) or adoption.intruder(gang)):
        return None
    if status.phase is Phase.FAILED and not status.attempt:
        return _left_running(gang, view)
    if _inactive(gang) and gang.ledger.unit_uid:
        # By resuming the Job its user ends the pause that suspending it had begun.
        return Step(patches=(_activate(gang.ledger),))
    ended = ""
    if status.phase is Phase.FAILED and gang.ledger.unit_uid:
        ended = endings.stopping(gang, view)
    # What we end runs until then by right; what somebody resumes after that does not.
    known = bool(ended) and view.annotation("ended") not in (endings.mark(status), endings.spared(status))
    sudden = not (facts.excused or known)
    return Step(patches=(_patch(view, kinds.of(view).suspend(view, ended=ended)),), sudden=sudden)


def waiting(gang: Gang) -> Step | None:
    """Return the step of a Job that waits and is gone, over, refused, or seen for the first time."""
    facts, status = gang.unit, gang.ledger.status
    view = facts.view
    if facts.vanished:
        return _vanished(gang, facts.now)
    if view is None:
        return None
    if view.complete:
        at = view.completion_time or facts.now
        return Step(status=steps.over(adoption.known(status, view), Phase.SUCCEEDED, at), why="Succeeded")
    if view.failed:
        return _failed(gang, view, facts.now)
    if facts.refusal[0] and status.attempt:
        # It was taken once and has work to lose: it waits until nothing is in its way (`hindrance`).
        reason, words = facts.refusal
        claims = status.phase is Phase.CLAIMING
        return Step(status=steps.given_back(status), why=reason, words=words) if claims else None
    if facts.refusal[0]:
        reason, words = facts.refusal
        return Step(status=steps.over(status, Phase.REJECTED, facts.now), why=reason, words=words)
    if not view.suspended and not facts.hands_off:
        if adoption.intruder(gang):
            words = (
                f"{view.named} runs already; suspend it to have it queued, or annotate it with "
                'lstqueue.dev/adopt: "true" to have it counted where it runs, and create a new DeadlineJob'
            )
            return Step(
                status=steps.over(status, Phase.REJECTED, facts.now), why="AlreadyRunning", words=words
            )
        if adoption.possible(gang):
            return adoption.admitted(gang, view)
    return None


def hindrance(gang: Gang) -> units.Told:
    """Say why a Job that waits cannot be admitted now, ("", "") where nothing of its own is against it."""
    facts, spec = gang.unit, gang.ledger.spec
    view = facts.view
    waits = gang.ledger.status.phase in (Phase.PENDING, Phase.CLAIMING)
    if spec is None or spec.ref is None or not waits:
        return ("", "")
    if facts.child_of:
        made = f"{spec.ref.kind} {spec.ref.name}"
        words = f"DeadlineJob {facts.child_of} made {made} and leads it; delete this DeadlineJob"
        return ("LabelIgnored", words)
    if view is None:
        key = f"{gang.ledger.namespace}/{spec.ref.name}"
        words = f"{spec.ref.kind} {key} does not exist; create it, suspended"
        return ("JobNotFound", words)
    if view.deleting:
        return ("JobDeleting", f"{view.named} is being deleted")
    if not view.size:
        words = f"{kinds.of(view).SIZED_BY} of {view.named} is 0; raise it to have it queued"
        return ("NoParallelism", words)
    if view.size > existing.WIDEST:
        words = f"{view.named} wants {view.size} pods at once; more than {existing.WIDEST} are not supported"
        return ("TooManyPods", words)
    if facts.disputed:
        words = (
            f"somebody resumes {view.named} each time it is suspended; lstqueue leaves it running, "
            "uncounted in any queue. Suspend it to have it queued"
        )
        return (units.UNDONE, words)
    if not view.suspended and not facts.hands_off:
        words = f"{view.named} runs without an admission"
        if adoption.possible(gang):
            return ("Adopting", adoption.waits(gang) or words)
        return ("RunsUnadmitted", words)
    return facts.refusal if gang.ledger.status.attempt else ("", "")


def stopped(gang: Gang, now: int) -> Step:
    """It is suspended and its pods are gone: queue it again, with what its finished pods have done."""
    status, facts = gang.ledger.status, gang.unit
    if facts.vanished:
        return _vanished(gang, now)
    view = facts.view
    if view is not None and view.failed:
        return _failed(gang, view, now)
    if _lingering(gang):
        return steps.IDLE
    back = steps.given_back(status)
    if view is not None and not view.gang and view.total:
        estimate = lenient.duration(lenient.mapping(gang.ledger.spoken.get("estimate")).get("mid"))
        back = replace(back, saved=estimate * min(view.finished, view.total) // view.total)
    return Step(status=back, why="Suspended")


# Within an admission


def completed(gang: Gang, now: int) -> int | None:
    """Return when the Job became complete, in ms, None when it is not."""
    view = gang.unit.view
    return None if view is None or not view.complete else view.completion_time or now


def succeeding(gang: Gang) -> bool:
    """Whether all completions are there and only the Job's controller needs a moment to say so."""
    view = gang.unit.view
    if view is None or not view.total or view.over or view.deleting:
        return False
    return _all_through(gang, view)


def failed(gang: Gang, now: int) -> Step | None:
    """Return the step out of an admission, or the next one of a unit that runs."""
    facts, status, spec = gang.unit, gang.ledger.status, gang.ledger.spec
    view, admission = facts.view, status.admission
    if facts.vanished:
        return _vanished(gang, now)
    if view is None or admission is None or spec is None or view.deleting:
        return None
    if view.failed:
        return _failed(gang, view, now)
    reshaped = admission.shape != spec.shape and not _winding_up(gang, view)
    if reshaped or admission.job_uid not in ("", view.uid):
        return _leave(gang, SHAPE_CHANGED, f"{view.named} was changed: other pods than those admitted", now)
    if not _ours(gang, view):
        return _not_ours_yet(gang, view)
    refused = [
        pod for pod in gang.pods if pod.refused and not pod.disrupted and pod.attempt == status.attempt
    ]
    if refused and status.phase is Phase.ADMITTED:
        first = refused[0]
        words = f"node {first.node} refused pod {first.name}: {first.words}"
        return Step(status=starts.failed(gang, (pod.node for pod in refused), now), why=words)
    return adoption.label(gang, view) or _let_go(gang, view, now)


def released(gang: Gang) -> bool:
    """Whether a pod was let go under this admission and still is somewhere."""
    attempt = gang.ledger.status.attempt
    loose = [pod for pod in gang.unit.loose if not pod.gated]
    return bool(loose) or any(not pod.gated and pod.attempt == attempt for pod in members.present(gang.pods))


def fits(gang: Gang) -> bool:
    """Whether the admission is for this very Job, places all of it, and its nodes may take its pods."""
    view, admission, spec = gang.unit.view, gang.ledger.status.admission, gang.ledger.spec
    if view is None or admission is None or spec is None or admission.shape != spec.shape:
        return False
    places = admission.places()
    if admission.job_uid not in ("", view.uid) or places.keys() != set(range(len(places))):
        return False
    if len(places) < view.size:
        return False
    return all(gang.fit_node(group.name, node) for group in admission.groups for node, _ in group.nodes)


def prepare(gang: Gang, ready_by: int) -> Step | None:
    """Release the Job; of a bag, let its pods go as they appear."""
    view, status = gang.unit.view, gang.ledger.status
    if view is None or view.deleting:
        return Step(wake=ready_by)
    if view.suspended:
        # A pod of another job that had this name would keep one of its own from being made.
        if _lingering(gang) or gang.unit.namesakes():
            return Step(wake=ready_by)
        if view.begun and not existing.stamped(view, gang.ledger.uid):
            # Below Kubernetes 1.36 the template is frozen while there is a start time.
            return Step(patches=(_patch(view, batch.forget_start(view), subresource="status"),), start=True)
        body = kinds.of(view).release(view, job=gang.ledger.uid, attempt=status.attempt)
        return Step(patches=(_patch(view, body),), start=True)
    return None


def standing(gang: Gang) -> members.Standing:
    """Return who has which place. A bag is ready with its first pod: its pods do not need each other."""
    view, status = gang.unit.view, gang.ledger.status
    if view is None or status.admission is None:
        return members.Standing(frozenset(), {}, ())
    booked = adoption.book(gang, view)
    found = dict(booked.taken)
    if view.ranked:
        found |= {pod.index: pod for pod in booked.waiting if pod.index in booked.free}
        through = {pod.index: pod for pod in gang.pods if pod.owner == view.uid and pod.succeeded}
        found = {**{place: pod for place, pod in through.items() if place not in booked.done}, **found}
    else:
        found |= dict(zip(booked.free, booked.waiting, strict=False))
    strays = tuple(
        pod for pod in gang.staying() if not pod.gated and pod.attempt != status.attempt and not pod.deleting
    )
    found = dict(sorted((place, pod) for place, pod in found.items() if not pod.deleting))
    ready = {place: pod for place, pod in found.items() if pod.ready or pod.succeeded}
    if not view.gang and ready:
        return members.Standing(frozenset(ready), ready, strays)
    expected = frozenset(range(booked.places)) - booked.done
    return members.Standing(expected, found, strays)


def spent(_: Gang) -> bool:
    """A Job that failed is over; any other can be resumed."""
    return False


def exposed(gang: Gang) -> tuple[views.PodView, ...]:
    """Return the pods whose node's loss stops the whole unit: those of a gang that are not through."""
    view, status = gang.unit.view, gang.ledger.status
    if view is None or not view.gang:
        return ()
    return tuple(pod for pod in members.present(gang.pods) if not pod.gated and pod.attempt == status.attempt)


def unfinished(gang: Gang) -> bool:
    """Whether the very Job that it spoke for is there, and has neither succeeded nor failed."""
    view = gang.unit.view
    if view is None or view.uid != gang.ledger.status.unit:
        return False
    return not (view.over or view.deleting)


def outlasts(gang: Gang) -> bool:
    """Whether a labelled Job is not over: suspended for good, it would be taken for a new one."""
    view = gang.unit.view
    return bool(gang.ledger.unit_uid) and view is not None and not view.over


def paused(gang: Gang) -> str:
    """Say that somebody suspended the Job by hand under an admission, "" when nobody did."""
    view = gang.unit.view
    if view is None or not view.suspended or view.over or not _ours(gang, view):
        return ""
    return f"{view.named} was suspended by hand"


# The parts


def _lingering(gang: Gang) -> bool:
    """Whether pods of an earlier run keep it from the next; on dead nodes only where it waits for them."""
    pods = [*members.present(gang.pods), *gang.unit.loose]
    patient = gang.unit.view is not None and gang.unit.view.patient
    return any(patient or not gang.stale(pod.node or pod.aim) for pod in pods)


def _left_running(gang: Gang, view: existing.UnitView) -> Step | None:
    """Let the pods go of a Job that is left alone, for its template may keep our gate from an earlier run."""
    if gang.unit.refusal[0] == units.DUPLICATE:
        return None
    if not gang.unit.hands_off and (spared := endings.unmarked(gang, view)):
        return Step(patches=(_patch(view, existing.mark(view, spared)),))
    pods = (*members.present(gang.pods), *gang.unit.loose)
    held = [pod for pod in pods if pod.gated and pod.owner == view.uid and not pod.deleting]
    patches = [steps.Patch(port.PODS, pod.namespace, pod.name, existing.let_go_pod(pod)) for pod in held]
    return Step(patches=tuple(patches), why=units.LEFT_RUNNING) if patches else None


def _all_through(gang: Gang, view: existing.UnitView) -> bool:
    """Whether as many pods have succeeded as make the success of a job that says how many."""
    if not view.total:
        return False
    through = [pod for pod in gang.pods if pod.owner == view.uid and pod.succeeded]
    if view.ranked:
        return view.deciding <= view.done | {pod.index for pod in through}
    return len(through) >= view.total


def _winding_up(gang: Gang, view: existing.UnitView) -> bool:
    """Whether a Job without completions has had a success: its controller makes no further pods.

    Nothing but its parallelism can be changed while it runs, and suspending it would be its end.
    """
    return view.total is None and bool(view.succeeded) and not view.suspended and _ours(gang, view)


def _inactive(gang: Gang) -> bool:
    return gang.ledger.spec is not None and not gang.ledger.spec.active


def _ours(gang: Gang, view: existing.UnitView) -> bool:
    """Whether the Job was released, or adopted, under this very admission."""
    return view.job == gang.ledger.uid and view.attempt == gang.ledger.status.attempt


def _not_ours_yet(gang: Gang, view: existing.UnitView) -> Step | None:
    """Return the step of an admission under which the Job was not marked yet."""
    status = gang.ledger.status
    if status.phase is Phase.RUNNING and view.suspended:
        # It was stopped before it was marked, or never ran under this admission, which somebody made up.
        words = f"{view.named} is suspended, and was never resumed under this admission"
        return _leave(gang, "NotReleased", words, gang.unit.now)
    if status.phase is Phase.RUNNING:
        body = existing.adopt(view, job=gang.ledger.uid, attempt=status.attempt)
        return Step(patches=(_patch(view, body),))
    if not view.suspended:
        # Somebody resumed it between decision and release: its pods are not gated as they must be.
        return Step(status=steps.given_back(status), why="ResumedByHand")
    return Step(status=steps.given_back(status), why="Observing") if gang.unit.hands_off else None


def _leave(gang: Gang, reason: str, words: str, now: int) -> Step:
    """Give an admission up: at once where nothing was let go, else when its pods are gone."""
    status, view = gang.ledger.status, gang.unit.view
    if view is not None and view.suspended and not released(gang):
        return Step(status=steps.given_back(status), why=reason, words=words)
    return Step(status=steps.suspended(status, reason, now), why=words)


def _let_go(gang: Gang, view: existing.UnitView, now: int) -> Step | None:
    """Let go what may: each pod of a bag as it appears, and replacements where those before them were."""
    status = gang.ledger.status
    assert status.admission is not None
    begun = status.phase is Phase.RUNNING or released(gang)
    if view.suspended or (view.gang and not begun):
        return None
    places, groups = status.admission.places(), status.admission.groups_by_rank()
    booked = adoption.book(gang, view)
    go = slots.next_in(view, booked)
    wanted = {(groups[place], places[place][1]) for place, _ in go}
    unfit = {node for group, node in wanted if not gang.fit_node(group, node)}
    if unfit and not view.gang:
        # The pods of a bag need nobody: those of such a place wait behind their gates, the others go on.
        fit = [place for place in booked.free if gang.fit_node(groups[place], places[place][1])]
        go = list(zip(fit, booked.waiting, strict=False)) or ([] if booked.taken else go)
    for place, pod in go:
        node = places[place][1]
        if node in unfit and (instead := gang.other_node(groups[place], node)):
            # One at a time, and written before its pod goes there: a process that dies between goes on by it.
            words = f"place {place} moves to node {instead}, since node {node} takes no pods any more"
            moved = replace(status, admission=status.admission.moved(place, instead))
            return Step(status=moved, why=ledger.RANK_MOVED, words=words)
        if node in unfit:
            words = f"node {node} of place {place} cannot take pod {pod.name} any more"
            stopped_ = steps.suspended(status, NODE_UNFIT, now)
            return Step(status=starts.avoiding(stopped_, unfit, now), why=words)
    return Step(ungate=tuple((pod, *places[place], place) for place, pod in go)) if go else None


def _vanished(gang: Gang, now: int) -> Step:
    """The Job is gone: a success if that is what could be seen last, else the end of what it was here for."""
    view = gang.unit.view
    status = gang.ledger.status
    last = gang.unit.last
    if last.complete or (view is not None and _all_through(gang, view)):
        return Step(status=steps.over(status, Phase.SUCCEEDED, now), why="Succeeded")
    labelled = bool(gang.ledger.unit_uid)
    again = "and lstqueue will take it for a new one" if labelled else "together with a new DeadlineJob"
    if last.replaceable and 0 <= now - last.noted < _REPLACED_WITHIN:
        return Step(wake=last.noted + _REPLACED_WITHIN)
    if last.replaced and last.cron_job is not None:
        words = f"its Job was deleted before its end; CronJob {last.cron_job.name} has made the next"
        return Step(status=steps.over(status, Phase.FAILED, now), why=lenient.REPLACED, words=words)
    kind = gang.ledger.spec.ref.kind if gang.ledger.spec is not None and gang.ledger.spec.ref else "Job"
    words = f"the {kind} was deleted; create it again, {again}"
    if not last.cut_short:
        words = (
            f"the {kind} is gone, and nobody saw its end: it may have succeeded, and been removed by its "
            f"ttlSecondsAfterFinished or by hand; if it has not, create it again, {again}"
        )
    return Step(status=steps.over(status, Phase.FAILED, now), why=ledger.VANISHED, words=words)


def _failed(gang: Gang, view: existing.UnitView, now: int) -> Step:
    status = adoption.known(gang.ledger.status, view)
    words = f"{view.named} failed: {_how(gang, view)}"
    return Step(status=steps.over(status, Phase.FAILED, now), why=view.reason or "JobFailed", words=words)


def _how(gang: Gang, view: existing.UnitView) -> str:
    """Say why the Job failed, and which of its pods did, of which the Job itself says nothing."""
    # Those that are leaving were told to because the Job had failed.
    failed = [pod for pod in gang.pods if pod.phase == "Failed" and pod.owner == view.uid]
    failed.sort(key=lambda pod: (pod.deleting, pod.disrupted))
    told = ": ".join(part for part in (view.reason, view.message) if part)
    if not failed:
        return told or "it does not say why"
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return "; ".join(part for part in (told, f"{members.failure(failed[0])}{more}") if part)


# Patches


def _patch(view: existing.UnitView, body: port.Object, subresource: str = "") -> steps.Patch:
    return steps.Patch(kinds.of(view).RESOURCE, view.namespace, view.name, body, subresource)


def _activate(job: ledger.Ledger) -> steps.Patch:
    body = {"metadata": {"resourceVersion": str(job.version)}, "spec": {"active": True}}
    return steps.Patch(port.DEADLINE_JOBS, job.namespace, job.name, body)
