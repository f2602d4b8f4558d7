"""What a DeadlineJob's status says, as JSON: the one rendering of phases, verdicts and reasons.

`patch` returns the smallest merge patch from what the ledger shows to what it should show. Forecasts are
written in whole seconds; what was observed is exact, since deadlines are judged by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import conditions, deadlinejob_status, durations, quantities, times
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger

Phase = ledger.Phase
Json = dict[str, Any]

RUNS_KEPT = 10
"""How many past runs a status lists."""


@dataclass(frozen=True, slots=True)
class Words:
    """What is said in words or known to the engine only, beside the machine state of a Status.

    `pending` is the message of the reason a job waits; `estimate` what was reckoned with, and its `source`.
    """

    pending: str = ""
    estimate: model.Estimate | None = None
    source: str = ""


def patch(job: ledger.Ledger, status: ledger.Status, *, words: Words | None = None) -> Json:
    """Return the conditional merge patch that makes the status say `status`; {} when it says so already."""
    changed = _difference(render(job, job.status, None), render(job, status, words))
    if not changed:
        return {}
    return {"metadata": {"resourceVersion": str(job.version)}, "status": changed}


def render(job: ledger.Ledger, status: ledger.Status, words: Words | None) -> Json:
    """Return the whole status but for what only `words` could add."""
    rendered: Json = {
        "observedGeneration": status.observed or None,
        "phase": status.phase.value if status.observed else None,
        "conditions": [item.dump() for item in status.conditions] or None,
        "gang": status.gang or None,
        "attempt": status.attempt or None,
        "restarts": status.restarts or None,
        "disruptions": status.disruptions or None,
        "admission": _admission(status.admission),
        "suspension": _suspension(status),
        "backoff": _back_off(status.back_off),
        "startTime": _exact(status.started),
        "completionTime": _exact(status.completed),
        "runs": [dict(run) for run in status.runs] or None,
        **_published(job, status),
    }
    if words is not None:
        rendered |= _spoken(job, status, words)
    return {key: value for key, value in rendered.items() if value is not None}


def gang_text(groups: tuple[model.Group, ...]) -> str:
    """Describe a gang in a few characters: "4×8 nvidia.com/gpu", "1×1 cpu + 3×2 cpu"."""
    return " + ".join(_group_text(group) for group in groups)


def _group_text(group: model.Group) -> str:
    requests = dict(group.shape.requests)
    devices = [name for name in requests if "/" in name]
    name = devices[0] if devices else ("cpu" if "cpu" in requests else "pods")
    return f"{group.count}×{quantities.format(name, requests.get(name, 1))} {name}"


def with_run(before: ledger.Status, status: ledger.Status, *, end: int, reason: str) -> ledger.Status:
    """Add the run that `before` was in to the history, the oldest dropped."""
    if before.phase is not Phase.RUNNING or not before.started:
        return status
    nodes = len(before.admission.nodes) if before.admission else 0
    run = {"start": _exact(before.started), "end": _exact(end), "reason": reason, "nodes": nodes}
    return replace(status, runs=(*status.runs, run)[-RUNS_KEPT:])


def with_conditions(
    job: ledger.Ledger, status: ledger.Status, *, now: int, why: str, message: str
) -> ledger.Status:
    """Derive the conditions from the rest of the status; nothing else sets them."""
    found = status.conditions
    for kind, true, reason in _facts(job, status, now, why):
        condition = conditions.Condition(
            type=kind,
            status=conditions.Truth.TRUE if true else conditions.Truth.FALSE,
            reason=reason,
            message=message if reason == why else "",
            last_transition_time=now,
            observed_generation=job.generation,
        )
        found = conditions.put(found, condition)
    return replace(status, conditions=found)


Fact = tuple[conditions.Type, bool, str]


def _facts(job: ledger.Ledger, status: ledger.Status, now: int, why: str) -> list[Fact]:
    """Return (condition, value, reason); conditions that never applied are left out."""
    phase, kinds = status.phase, conditions.Type
    known = {item.type for item in status.conditions}
    admitted = phase in (Phase.ADMITTED, Phase.RUNNING)
    facts: list[Fact] = [(kinds.ADMITTED, admitted, "Admitted" if admitted else _reason(status, why))]
    if status.started or kinds.GANG_READY in known:
        running = phase is Phase.RUNNING
        facts.append((kinds.GANG_READY, running, "GangReady" if running else why))
    if phase is Phase.SUSPENDING or kinds.SUSPENDED in known:
        facts.append((kinds.SUSPENDED, phase is Phase.SUSPENDING, status.suspension or "Resumed"))
    if phase in ledger.FINAL:
        facts.append((kinds.FINISHED, True, "Succeeded" if phase is Phase.SUCCEEDED else why))
    return facts + _deadline_facts(job, status, now)


def _deadline_facts(job: ledger.Ledger, status: ledger.Status, now: int) -> list[Fact]:
    deadline = job.spec.deadline if job.spec else None
    if deadline is None:
        return []
    facts: list[Fact] = []
    final, verdict = status.phase in ledger.FINAL, status.published.verdict
    if verdict is not None and not final:
        calm = verdict.level in (model.Level.LIKELY, model.Level.UNKNOWN)
        facts.append((conditions.Type.DEADLINE_AT_RISK, not calm, verdict.level.value))
    in_time = status.phase is Phase.SUCCEEDED and status.completed <= deadline
    missed = not in_time and (final or now >= deadline)
    facts.append((conditions.Type.DEADLINE_MISSED, missed, "DeadlineMissed" if missed else "InTime"))
    return facts


def _reason(status: ledger.Status, why: str) -> str:
    if status.phase is Phase.PENDING and status.published.code is not None:
        return code(status)
    return why or status.phase.value


def _published(job: ledger.Ledger, status: ledger.Status) -> Json:
    said = status.published
    has_deadline = job.spec is not None and job.spec.deadline is not None
    return {
        "late": said.band is model.Band.REST if has_deadline and said.band is not None else None,
        "slack": said.slack or None,
        "verdict": _verdict(said.verdict) if said.verdict else None,
        "pending": {"code": code(status)} if said.code else None,
    }


def code(status: ledger.Status) -> str:
    """Return why the job waits, in one word: the engine's code or a more particular one; "" for no reason."""
    waits = status.published.code
    if waits is None:
        return ""
    return status.held if waits is model.Code.HELD_BACK and status.held else waits.value


def _spoken(job: ledger.Ledger, status: ledger.Status, words: Words) -> Json:
    spoken: Json = {}
    if status.published.code is not None and words.pending:
        said = deadlinejob_status.Pending(code=code(status), message=words.pending)
        spoken["pending"] = said.dump()
    estimate = words.estimate
    if estimate is not None:
        spoken["estimate"] = {
            "lo": durations.format(estimate.lo),
            "mid": durations.format(estimate.mid),
            "hi": durations.format(estimate.hi),
            "source": words.source,
        }
    deadline = job.spec.deadline if job.spec else None
    if deadline is not None:
        spoken["deadline"] = _time(deadline)
        if estimate is not None:
            spoken["latestStartTime"] = _time(deadline - estimate.mid)
    return spoken


def _verdict(verdict: model.Verdict) -> Json:
    rendered: Json = {"level": verdict.level.value}
    if verdict.reason:
        rendered["reason"] = verdict.reason
    if verdict.earliest_feasible is not None:
        rendered["earliestFeasibleDeadline"] = _time(verdict.earliest_feasible)
    for key, pair in (("forecastStart", verdict.start), ("forecastFinish", verdict.finish)):
        if pair is not None:
            rendered[key] = {"earliest": _time(pair[0]), "latest": _time(pair[1])}
    return rendered


def _admission(admission: ledger.Admission | None) -> Json | None:
    if admission is None:
        return None
    return {
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


def _suspension(status: ledger.Status) -> Json | None:
    if not status.suspension:
        return None
    return {"reason": status.suspension, "since": times.format(status.since)}


def _back_off(back_off: ledger.BackOff) -> Json | None:
    if not back_off.count:
        return None
    return {"until": _time(back_off.until), "count": back_off.count, "avoid": list(back_off.avoid)}


def _exact(ms: int) -> str | None:
    return times.format(ms) if ms else None


def _time(ms: int) -> str | None:
    """Write a time in whole seconds, rounded up, so that nothing is promised a moment too early."""
    return times.format(-(-ms // 1000) * 1000) if ms else None


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Return the merge patch between two JSON objects: null removes."""
    changed: Json = {}
    for key in old.keys() | new.keys():
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            changed[key] = _difference(before, after)
        else:
            changed[key] = after
    return changed
