"""What became of the jobs of a trace, from the writes to the store alone, as lives that `figures` works out.

Nothing comes from the operator's memory: phases, runs and verdicts from statuses, ends from pods. Times are
when something was written; a job is completed when the last of its pods has ended, as in the evaluator's own
world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import durations, names, times
from lstqueue.demo import meter as meters
from lstqueue.embedded import eventlog
from lstqueue.embedded.controllers import pods
from lstqueue.engine import model
from lstqueue.evaluate import digest, lives, teams, workload
from lstqueue.kube import port

PREEMPTED, RECLAIMED = "Preempted", "Reclaimed"
_HOLDING = frozenset({"Admitted", "Running", "Suspending"})


@dataclass(slots=True)
class Job:
    """One job: what the evaluator knows of it, and how far its status and its pods have been read.

    Times in ms since the epoch; `last_run` is the start of the newest run in the history that was counted,
    `pods_ended` when a pod of it succeeded last, `told_missed` what its user was told of the deadline.
    """

    life: lives.Life
    last_run: int = 0
    runs: int = 0
    pods_ended: int = 0
    told_missed: bool = False


@dataclass(slots=True)
class Seen:
    """Feed it with every event. `jobs` are by the name of their object; `gpus` are those of the cluster."""

    jobs: Mapping[str, Job]
    meter: meters.Meter
    gpus: int
    restart: int
    log: digest.Log = field(default_factory=digest.Log)
    idle_wanted: int = 0
    _by_uid: dict[str, Job] = field(default_factory=dict)
    _phases: dict[str, str] = field(default_factory=dict)

    def see(self, event: eventlog.Event, now: int) -> None:
        """Take in a write."""
        self._idle(now)
        self.meter.see(event, now)
        if event.resource is port.PODS:
            self._see_pod(event, now)
        elif event.resource is port.DEADLINE_JOBS and event.type != eventlog.DELETED:
            self._see_job(event.object, now)

    def _idle(self, now: int) -> None:
        """Add up what nobody held while somebody waited; call it before anything changes."""
        since, until = self.meter.since, min(now, self.meter.until)
        if until > since and any(phase not in _HOLDING for phase in self._phases.values()):
            self.idle_wanted += (self.gpus - self.meter.held) * (until - since)
        self.meter.advance(now)

    def _see_pod(self, event: eventlog.Event, now: int) -> None:
        uid = (event.object["metadata"].get("labels") or {}).get(names.LABEL_JOB)
        job = self._by_uid.get(uid or "")
        if job is None or event.type == eventlog.DELETED or pods.phase(event.object) != "Succeeded":
            return
        if event.old is None or pods.phase(event.old) != "Succeeded":
            job.pods_ended = now

    def _see_job(self, raw: port.Object, now: int) -> None:
        uid, status = raw["metadata"]["uid"], raw.get("status") or {}
        job = self._by_uid.get(uid)
        if job is None:
            job = self._by_uid[uid] = self.jobs[raw["metadata"]["name"]]
            self._phases[uid] = ""
        phase = status.get("phase") or ""
        self._count_runs(job, status)
        job.life.saved = _span(status.get("saved"))
        job.life.fruitless = max(job.life.fruitless, status.get("wasted") or 0)
        if job.life.first_level is None and (level := (status.get("verdict") or {}).get("level")):
            job.life.first_level = model.Level(level)
        if phase != self._phases.get(uid, phase):
            self._turn(job, uid, phase, status, now)

    def _turn(self, job: Job, uid: str, phase: str, status: Mapping[str, Any], now: int) -> None:
        """Take in that a job is in another phase."""
        before, life = self._phases[uid], job.life
        self.log.note(now, phase or "submitted", life.work.key)
        self._phases[uid] = phase
        if phase in ("Running", "Succeeded") and life.first_start is None:
            life.first_start = times.parse(status["startTime"]) if status.get("startTime") else now
        if phase == "Admitted":
            life.since = now
        if phase == "Suspending":
            why = (status.get("suspension") or {}).get("reason")
            life.preempted += why in (PREEMPTED, RECLAIMED)
            life.struck += why not in (PREEMPTED, RECLAIMED)
            life.gave_back += why == RECLAIMED
            if before == "Admitted":
                life.restoring += now - life.since  # a start for nothing
        if phase in meters.FINAL:
            del self._phases[uid]
            job.told_missed = _missed(status)
            if phase == "Succeeded":
                life.completed = job.pods_ended or now

    def _count_runs(self, job: Job, status: Mapping[str, Any]) -> None:
        """Count what runs that are new in the history lost, and what they spent on reading what was saved."""
        for run in status.get("runs") or ():
            start = times.parse(run["start"])
            if start <= job.last_run or not run.get("end"):
                continue
            job.last_run = start
            if job.runs:
                reading = min(self.restart, times.parse(run["end"]) - start)
                job.life.restoring += reading
                job.life.lost -= min(reading, _span(run.get("lost")))
            job.runs += 1
            job.life.lost += _span(run.get("lost"))


def jobs_of(
    load: workload.Workload,
    estimated: Mapping[str, model.Estimate | None],
    several: teams.Teams | None = None,
) -> dict[str, Job]:
    """Return the jobs of a trace by the names that their objects get, in its order."""
    width, found = len(str(len(load.works))), {}
    for index, work in enumerate(load.works):
        life = lives.Life(f"{index:0{width}d}", work, (), estimated[work.key])
        life.queue = "" if several is None else several.of(work)
        found[f"job-{life.uid}"] = Job(life)
    return found


def _span(text: str | None) -> int:
    return durations.parse(text) if text else 0


def _missed(status: Mapping[str, Any]) -> bool:
    return any(
        item["type"] == "DeadlineMissed" and item["status"] == "True"
        for item in status.get("conditions") or ()
    )
