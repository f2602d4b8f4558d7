"""What a DeadlineJob's status says, as JSON: the one rendering of phases, verdicts and reasons.

`patch` returns the smallest merge patch from what the ledger shows to what it should show. Forecasts are
written in whole seconds; what was observed or promised is exact, since deadlines are judged by it. Texts and
times that the schema would not take are cut to what it takes: a status that is refused helps nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import base, conditions, deadlinejob_status, durations, quantities, times
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import deadlines, ledger, lenient, places, records
from lstqueue.topology import slowdown

Phase = ledger.Phase
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """What is said in words or known to the engine only, beside the machine state of a Status.

    `pending` is the message of the reason a job waits; `estimate` what was reckoned with, and its `source`.
    """

    pending: str = ""
    estimate: model.Estimate | None = None
    source: str = ""


def patch(job: ledger.Ledger, status: ledger.Status, *, words: Words | None = None) -> Json:
    """Return the conditional merge patch that makes the status say `status`; {} when it says so already.

    Without `words` what was said in words stays, as far as it still holds.
    """
    changed = _changed(job, status) | _difference(job.spoken, _spoken(job, status, words))
    if not changed:
        return {}
    return {"metadata": {"resourceVersion": str(job.version)}, "status": changed}


def render(job: ledger.Ledger, status: ledger.Status, words: Words | None) -> Json:
    """Return the whole status as the API should have it."""
    return {**_machine(job, status), **_spoken(job, status, words)}


def _machine(job: ledger.Ledger, status: ledger.Status) -> Json:
    """Return the part of a status that a Status holds."""
    rendered = {key: write(job, read(status)) for key, (read, write) in _MACHINE.items()}
    return {key: value for key, value in rendered.items() if value is not None}


def _changed(job: ledger.Ledger, status: ledger.Status) -> Json:
    """Return the merge patch for that part; what is held alike is written alike, and is not rendered."""
    old, new = {}, {}
    for key, (read, write) in _MACHINE.items():
        before, after = read(job.status), read(status)
        if before != after:
            old[key], new[key] = write(job, before), write(job, after)
    return _difference(old, new)


_Field = tuple[Callable[[ledger.Status], Any], Callable[[ledger.Ledger, Any], Any]]

_MACHINE: Mapping[str, _Field] = {
    "observedGeneration": (lambda status: status.observed, lambda job, held: held or None),
    "phase": (lambda status: status.phase.value if status.observed else "", lambda job, held: held or None),
    "conditions": (lambda status: status.conditions, lambda job, held: [*map(_condition, held)] or None),
    "queue": (lambda status: status.queue, lambda job, held: held or None),
    "gang": (lambda status: status.gang, lambda job, held: held or None),
    "attempt": (lambda status: status.attempt, lambda job, held: held or None),
    "restarts": (lambda status: status.restarts, lambda job, held: held or None),
    "disruptions": (lambda status: status.disruptions, lambda job, held: held or None),
    "jobUid": (lambda status: status.unit, lambda job, held: held or None),
    "claim": (
        lambda status: (status.claim, status.claim_queue) if status.claim is not None else None,
        lambda job, held: places.claim_json(_names(job), *held) if held else None,
    ),
    "reservation": (
        lambda status: status.reservation,
        lambda job, held: places.reservation_json(_names(job), held) if held else None,
    ),
    "slot": (
        lambda status: status.slot,
        lambda job, held: places.slot_json(_names(job), held) if held else None,
    ),
    "admission": (lambda status: status.admission, lambda job, held: _admission(held)),
    "suspension": (
        lambda status: (status.suspension, status.since, status.suspended_for) if status.suspension else None,
        lambda job, held: _suspension(*held) if held else None,
    ),
    "displacedBy": (
        lambda status: status.displaced_by[-deadlinejob_status.DISPLACED_BY :],
        lambda job, held: list(held) or None,
    ),
    "preemptedAt": (
        lambda status: status.preempted_at[-deadlinejob_status.SUSPENSIONS :],
        lambda job, held: [*map(times.format, held)] or None,
    ),
    "saved": (lambda status: status.saved, lambda job, held: _lasted(held) if held else None),
    "wasted": (lambda status: status.wasted, lambda job, held: held or None),
    "historyKey": (lambda status: status.like, lambda job, held: held or None),
    "bestEffort": (lambda status: status.best_effort, lambda job, held: held or None),
    "spare": (lambda status: status.spare, lambda job, held: held or None),
    "shed": (lambda status: status.published.band is model.Band.SHED, lambda job, held: held or None),
    "backoff": (lambda status: status.back_off, lambda job, held: _back_off(held)),
    "startTime": (lambda status: status.started, lambda job, held: _exact(held)),
    "completionTime": (lambda status: status.completed, lambda job, held: _exact(held)),
    "runs": (lambda status: status.runs, lambda job, held: [dict(run) for run in held] or None),
    "slack": (lambda status: status.published.slack, lambda job, held: held or None),
    "verdict": (lambda status: status.published.verdict, lambda job, held: _verdict(held) if held else None),
}
"""Each field that a Status holds: what of a Status it says, and that as JSON, None for a field left out."""


def gang_text(groups: tuple[model.Group, ...]) -> str:
    """Describe a gang in a few characters: "4×8 nvidia.com/gpu", "1×1 cpu + 3×2 cpu"."""
    return base.cut(" + ".join(_group_text(group) for group in groups), base.TEXT_LENGTH)


def _group_text(group: model.Group) -> str:
    requests = dict(group.shape.requests)
    devices = [name for name in requests if "/" in name]
    name = devices[0] if devices else ("cpu" if "cpu" in requests else "pods")
    return f"{group.count}×{quantities.format(name, requests.get(name, 1))} {name}"


def with_run(
    before: ledger.Status, status: ledger.Status, *, end: int, reason: str, lost: int = 0, words: str = ""
) -> ledger.Status:
    """Add the run that `before` was in to the history, the oldest dropped; `lost` ms of it were in vain."""
    if before.phase is not Phase.RUNNING or not before.started or end < before.started:
        return status
    nodes = len(before.admission.nodes) if before.admission else 0
    run: Json = {"start": _exact(before.started), "end": _exact(end), "nodes": nodes}
    run["reason"] = base.cut(reason, base.TEXT_LENGTH)
    if before.admission and before.admission.domain:
        run["domain"] = before.admission.domain
    if lost:
        run["lost"] = _lasted(lost)
    if words:
        run["message"] = base.cut(words, base.TEXT_LENGTH)
    return replace(status, runs=(*status.runs, run)[-deadlinejob_status.RUNS :])


def with_conditions(
    job: ledger.Ledger,
    status: ledger.Status,
    *,
    now: int,
    why: str,
    message: str,
    pending: str = "",
    promised: records.Promised | None = None,
) -> ledger.Status:
    """Derive the conditions from the rest of the status; nothing else sets them.

    `message` goes with `why`, `pending` with the reason for which the job waits, `promised` says why a
    promise is taken back.
    """
    facts = _facts(job, status, now, why) | _promise_facts(status, promised)
    found = tuple(item for item in status.conditions if item.type in facts)
    for kind, (true, reason) in facts.items():
        before = conditions.get(status.conditions, kind)
        truth = conditions.Truth.TRUE if true else conditions.Truth.FALSE
        same = before is not None and (before.status, before.reason) == (truth, _word(reason))
        if before is not None and same and reason != why and before.observed_generation == job.generation:
            continue
        if reason == why and (message or kind is not conditions.Type.DEADLINE_MISSED):
            words = message
        elif pending and reason == code(status):
            words = pending
        elif kind is conditions.Type.DEADLINE_PROMISED and promised is not None:
            words = promised.why
        elif kind is conditions.Type.DEADLINE_MISSED:
            words = deadlines.words(job, status, reason)
        else:
            words = before.message if before is not None and same else ""
        condition = conditions.Condition(
            type=kind,
            status=truth,
            reason=_word(reason),
            message=words,
            last_transition_time=now,
            observed_generation=job.generation,
        )
        found = conditions.put(found, condition)
    # What was said of pods that are late goes with the phase and the admission that it was said of.
    same = (job.status.phase, job.status.attempt) == (status.phase, status.attempt)
    return replace(status, conditions=found, slow=status.slow if same else lenient.NOT_SLOW)


Facts = dict[conditions.Type, tuple[bool, str]]
"""By condition: its value and its reason. Conditions that never applied are left out."""


def _facts(job: ledger.Ledger, status: ledger.Status, now: int, why: str) -> Facts:
    phase, kinds = status.phase, conditions.Type
    # What is written while the phase stays has no part in why it became what it is.
    moved = phase is not job.status.phase or not job.status.conditions
    admitted = phase in (Phase.ADMITTED, Phase.RUNNING)
    waits = code(status) if phase is Phase.PENDING else ""
    waits = "Claiming" if phase is Phase.CLAIMING else waits
    because = "Admitted" if admitted else waits or _kept(status, kinds.ADMITTED, why, moved)
    facts: Facts = {kinds.ADMITTED: (admitted, because)}
    if status.started or conditions.get(status.conditions, kinds.GANG_READY):
        running = phase is Phase.RUNNING
        because = "GangReady" if running else _kept(status, kinds.GANG_READY, why, moved)
        facts[kinds.GANG_READY] = (running, because)
    if (suspended := _suspended(status)) is not None:
        facts[kinds.SUSPENDED] = suspended
    if phase in ledger.FINAL:
        because = "Succeeded" if phase is Phase.SUCCEEDED else _kept(status, kinds.FINISHED, why, moved)
        facts[kinds.FINISHED] = (True, because)
    finished = facts.get(kinds.FINISHED, (False, ""))[1]
    return facts | _deadline_facts(job, status, now, vanished=finished in lenient.GONE)


def _promise_facts(status: ledger.Status, promised: records.Promised | None) -> Facts:
    """Whether the deadline is promised; of a job that is over, whether it was to its end."""
    kind = conditions.Type.DEADLINE_PROMISED
    known = conditions.get(status.conditions, kind)
    if status.slot is not None:
        return {kind: (True, "Promised")}
    if known is None:
        return {}
    if promised is not None and promised.cause:
        return {kind: (False, promised.cause)}
    kept = conditions.is_true(status.conditions, kind) and status.phase in ledger.FINAL
    # A slot that is gone without a word was taken out by hand.
    lost = known.reason if known.status is conditions.Truth.FALSE else "SlotMissing"
    return {kind: (kept, "Promised" if kept else lost)}


def _suspended(status: ledger.Status) -> tuple[bool, str] | None:
    """Once suspended, a job is so until it is admitted again: there its user reads why it had to stop."""
    known = conditions.get(status.conditions, conditions.Type.SUSPENDED)
    if status.phase is Phase.SUSPENDING:
        return True, status.suspension or "Suspended"
    if known is None:
        return None
    if status.phase in (Phase.PENDING, Phase.CLAIMING) and known.status is conditions.Truth.TRUE:
        return True, known.reason
    return False, "Finished" if status.phase in ledger.FINAL else "Resumed"


def _kept(status: ledger.Status, kind: conditions.Type, why: str, moved: bool) -> str:
    """Return the reason a condition has already, or `why` where the phase has just moved."""
    known = conditions.get(status.conditions, kind)
    return why or status.phase.value if moved or known is None else known.reason


def _deadline_facts(job: ledger.Ledger, status: ledger.Status, now: int, *, vanished: bool) -> Facts:
    deadline = job.spec.deadline if job.spec else None
    if deadline is None or status.spare:
        return {}
    facts: Facts = {}
    final, verdict = status.phase in ledger.FINAL, status.published.verdict
    if final and conditions.get(status.conditions, conditions.Type.DEADLINE_AT_RISK):
        facts[conditions.Type.DEADLINE_AT_RISK] = (False, "Finished")
    elif verdict is not None and not final:
        calm = verdict.level in (model.Level.FEASIBLE, model.Level.LIKELY, model.Level.UNKNOWN)
        facts[conditions.Type.DEADLINE_AT_RISK] = (not calm, verdict.level.value)
    in_time = status.phase is Phase.SUCCEEDED and status.completed <= deadline
    missed = not in_time and ((final and not vanished) or (status.completed or now) >= deadline)
    otherwise = ledger.VANISHED if vanished else "InTime"
    if status.phase is Phase.REJECTED:
        # Nobody was let down who was told at once that it is not for this queue.
        missed, otherwise = False, "Rejected"
    reason = deadlines.reason(status, deadline) if missed else otherwise
    facts[conditions.Type.DEADLINE_MISSED] = (missed, reason)
    return facts


def code(status: ledger.Status) -> str:
    """Return why the job waits, in one word: the engine's code or a more particular one; "" for no reason."""
    waits = status.published.code
    if waits is None:
        return ""
    return _word(status.held) if waits is model.Code.HELD_BACK and status.held else waits.value


def _word(text: str) -> str:
    """Return a reason for programs: what comes from servers and webhooks may be no word at all."""
    word = re.sub("[^A-Za-z0-9_]", "", text)[:63]
    return word if word[:1].isalpha() else "Other"


def _spoken(job: ledger.Ledger, status: ledger.Status, words: Words | None) -> Json:
    """Return the part of a status that a Status does not hold, `ledger.SPOKEN`."""
    deadline, band = job.spec.deadline if job.spec else None, status.published.band
    deadline = None if status.spare else deadline
    spoken: Json = {"pending": _pending(job, status, words)}
    if deadline is not None:
        # Without an estimate nobody can be called late; such a job ranks with the rest for want of one.
        estimated = words.estimate if words else job.spoken.get("estimate")
        late = band is model.Band.REST
        spoken["late"] = None if band is None or (late and not estimated) else late
        spoken["deadline"] = times.format(deadline)
    if words is None:
        kept = ("estimate",) if deadline is None else ("estimate", "latestStartTime")
        spoken |= {key: job.spoken.get(key) for key in kept}
    elif words.estimate is not None:
        estimate = words.estimate
        spoken["estimate"] = {
            "lo": durations.format(estimate.lo),
            "mid": durations.format(estimate.mid),
            "hi": durations.format(estimate.hi),
            "source": words.source,
        }
        if deadline is not None:
            spoken["latestStartTime"] = _no_later(deadline - estimate.mid)
    return {key: value for key, value in spoken.items() if value is not None}


def _pending(job: ledger.Ledger, status: ledger.Status, words: Words | None) -> Json | None:
    why = code(status)
    if not why and status.slow[0]:
        return {"code": status.slow[0], "message": base.cut(status.slow[1])}
    if not why:
        return None
    said = job.spoken.get("pending") or {}
    kept = said.get("message", "") if words is None and said.get("code") == why else ""
    text = words.pending if words else kept
    return {"code": why, "message": base.cut(text)} if text else {"code": why}


def _verdict(verdict: model.Verdict) -> Json:
    rendered: Json = {"level": verdict.level.value}
    if verdict.reason:
        rendered["reason"] = base.cut(verdict.reason)
    for key, at in (
        ("earliestFeasibleDeadline", verdict.earliest_feasible),
        ("earliestPromisedDeadline", verdict.earliest_promised),
    ):
        if at is not None:
            rendered[key] = _no_earlier(at)
    for key, pair in (("forecastStart", verdict.start), ("forecastFinish", verdict.finish)):
        if pair is not None:
            rendered[key] = {"earliest": _no_earlier(pair[0]), "latest": _no_earlier(pair[1])}
    return rendered


def _names(job: ledger.Ledger) -> list[str]:
    """The groups of a job; those of a referenced one are known once that was seen."""
    return [name for name, _ in job.spec.groups] if job.spec else []


def _admission(admission: ledger.Admission | None) -> Json | None:
    if admission is None:
        return None
    rendered: Json = {"jobUid": admission.job_uid} if admission.job_uid else {}
    if admission.topology:
        rendered["topology"] = admission.topology[: base.MESSAGE_LENGTH]
    if admission.domain:
        rendered["domain"] = admission.domain
    if admission.slowdown != slowdown.PPM:
        rendered["slowdownPermille"] = admission.slowdown * 1000 // slowdown.PPM
    return rendered | {
        "at": times.format(admission.at),
        "queue": admission.queue,
        "shapeHash": admission.shape,
        "groups": [
            {
                "name": group.name,
                "pool": group.pool,
                "nodes": [{"node": node, "ranks": views.ranges(ranks)} for node, ranks in group.nodes],
            }
            for group in admission.groups
        ],
    }


def _condition(condition: conditions.Condition) -> Json:
    """Write a condition; the model's own `dump` would validate once more what the model has validated."""
    rendered: Json = {
        "type": condition.type,
        "status": condition.status.value,
        "reason": condition.reason,
        "lastTransitionTime": times.format(condition.last_transition_time),
    }
    if condition.message:
        rendered["message"] = condition.message
    if condition.observed_generation is not None:
        rendered["observedGeneration"] = condition.observed_generation
    return rendered


def _suspension(reason: str, since: int, for_uid: str) -> Json:
    rendered: Json = {"reason": reason, "since": times.format(since)}
    return rendered | {"for": for_uid} if for_uid else rendered


def _back_off(back_off: ledger.BackOff) -> Json | None:
    if back_off == ledger.NO_BACK_OFF:
        return None
    rendered: Json = {"until": times.format(back_off.until), "count": back_off.count}
    if back_off.avoid:
        rendered |= {"avoid": list(back_off.avoid), "avoidUntil": _exact(back_off.avoid_until)}
    return {key: value for key, value in rendered.items() if value is not None}


def _lasted(ms: int) -> str:
    """Write how much work was kept or lost: nobody counts the milliseconds of more than a minute."""
    return durations.format(ms if ms < durations.MINUTE else ms - ms % durations.SECOND)


def _exact(ms: int) -> str | None:
    return times.format(ms) if ms else None


def _no_earlier(ms: int) -> str:
    """Write a forecast in whole seconds, rounded up, so that nothing is promised a moment too early."""
    return times.format(min(max(-(-ms // 1000) * 1000, _FIRST), _LAST))


def _no_later(ms: int) -> str:
    """Write the latest time for something in whole seconds, rounded down."""
    return times.format(min(max(ms // 1000 * 1000, _FIRST), _LAST))


_FIRST = times.parse("0001-01-01T00:00:00Z")
_LAST = times.parse("9999-12-31T23:59:59Z")
"""Beyond these no time can be written; a deadline or a chain of estimates may well lie there."""


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Return the merge patch between two JSON objects: null removes."""
    changed: Json = {}
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            changed[key] = _difference(before, after)
        else:
            changed[key] = after
    return changed
