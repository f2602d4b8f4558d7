"""What Prometheus sees: names, units and where each figure is set.

Labels never carry anything a user chose but namespace and queue; levels and resources are administrators'
words. All metrics live in a registry of their own, so that two operators in one process (as in tests) do not
meet.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping

import prometheus_client as prometheus

from lstqueue.api import conditions
from lstqueue.engine import model
from lstqueue.kube import limits, port, reflector
from lstqueue.operator import cache as caches
from lstqueue.operator import events, fragments, ledger, records

_PASS_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_STATES = frozenset({"waiting", "held_back", "claiming", "admitted", "running", "ending"})
_WAIT_BUCKETS = (1, 10, 60, 300, 1800, 3600, 14400, 86400, 604800)
_REASONS = port.REASONS | {"NameLeaving", "NameTaken", "Defect", "ClockSkew"}
"""Why writes fail by name; for what webhooks say, each word a series for good, the HTTP status has to do."""


_PROMISES = frozenset({"Promised", "SlotMissing", *records.CAUSES.values()})
"""What becomes of promises."""


class Metrics:
    """Every metric of the operator."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._histogram = functools.partial(prometheus.Histogram, registry=self.registry)
        self._gauge = functools.partial(prometheus.Gauge, registry=self.registry)
        self._counter = functools.partial(prometheus.Counter, registry=self.registry)
        self._of_jobs()
        self._of_the_operator()
        self._of_the_interconnect()

    def _of_jobs(self) -> None:
        """What becomes of jobs."""
        self.jobs = self._gauge("lstqueue_jobs", "DeadlineJobs by what the last pass saw", ["state"])
        self.admissions = self._counter("lstqueue_admissions", "Committed admissions", ["namespace", "queue"])
        self.wait_seconds = self._histogram(
            "lstqueue_wait_seconds", "From creation to the first admission", ["queue"], buckets=_WAIT_BUCKETS
        )
        self.finished = self._counter(
            "lstqueue_finished",
            "DeadlineJobs that ended; deadline is met, missed or none, queue empty if never admitted",
            ["namespace", "queue", "phase", "deadline"],
        )
        self.suspensions = self._counter(
            "lstqueue_suspensions", "Gangs that were suspended, by reason", ["namespace", "queue", "reason"]
        )
        self.promises = self._counter(
            "lstqueue_promises",
            "Deadlines that were promised (Promised), and promises taken back, by why",
            ["namespace", "queue", "what"],
        )
        self.events = self._gauge(
            "lstqueue_events",
            "Events for users' jobs: sent, failed (given up), dropped (too many waited)",
            ["outcome"],
        )

    def _of_the_operator(self) -> None:
        """How the operator itself fares, and what it asks of the API server."""
        gauge, counter = self._gauge, self._counter
        self.pass_seconds = self._histogram(
            "lstqueue_pass_seconds", "Time of one decision pass, snapshot included", buckets=_PASS_BUCKETS
        )
        self.leader = gauge("lstqueue_leader", "1 while this process may decide and write, else 0")
        self.write_errors = counter("lstqueue_write_errors", "Writes that failed, by reason", ["reason"])
        self.backlog = gauge("lstqueue_write_backlog", "Writes that have not begun")
        self.relists = gauge("lstqueue_reflector_relists", "Complete relists by kind", ["kind"])
        self.requests = gauge("lstqueue_api_requests", "Requests sent to the API server", ["verb", "kind"])
        self.request_errors = gauge(
            "lstqueue_api_request_errors",
            "Requests refused or unanswered (status 0)",
            ["verb", "kind", "status"],
        )
        self.throttled = gauge("lstqueue_throttled_seconds", "Time that writes have waited for the limit")
        self.unreadable = gauge(
            "lstqueue_objects_left_aside",
            "How often an object could not be dealt with, which is a defect of lstqueue; the log says more",
            ["kind"],
        )
        self.clock_ahead = gauge(
            "lstqueue_clock_ahead_seconds",
            "By how much our clock was ahead of the API server's when something was to end for want of time",
        )

    def _of_the_interconnect(self) -> None:
        """What is known of the interconnect, and how its room lies."""
        gauge = self._gauge
        self.topology_domains = gauge(
            "lstqueue_topology_domains", "Domains of the interconnect by level", ["level"]
        )
        self.topology_left_out = gauge(
            "lstqueue_topology_left_out", "What is in no domain of the interconnect, or not where it might be"
        )
        self.topology_suspects = gauge(
            "lstqueue_topology_suspect_nodes", "Nodes of domains in which nodes failed together: taken last"
        )
        self.topology_largest = gauge(
            "lstqueue_topology_largest_free", "Free in the domain that has most free", ["level", "resource"]
        )
        self.topology_fragmented = gauge(
            "lstqueue_topology_fragmentation",
            "Share of what is free that a gang of those that wait or run cannot use within one domain",
            ["level", "resource"],
        )

    def passed(self, plan: model.Plan, seconds: float, backlog: int) -> None:
        """Note a pass."""
        self.pass_seconds.observe(seconds)
        self.backlog.set(backlog)
        for state, count in plan.counts:
            if state in _STATES:
                self.jobs.labels(state).set(count)

    def write_failed(self, error: port.ApiError) -> None:
        """Note a write that did not go through."""
        self.write_errors.labels(error.reason if error.reason in _REASONS else str(error.status)).inc()

    def transition(self, before: ledger.Ledger, after: ledger.Ledger, queue: str) -> None:
        """Note what a committed status write changed for a job of a queue."""
        self._promised(before, after, queue)
        old, new = before.status.phase, after.status.phase
        if old is new or after.spec is None:
            return
        # What was never admitted may name any queue, and every name would be a series for good.
        queue = queue if after.status.attempt else ""
        where = (after.namespace, queue)
        if new is ledger.Phase.ADMITTED and after.status.attempt > before.status.attempt:
            self.admissions.labels(*where).inc()
            if after.status.attempt == 1 and after.status.admission is not None:
                self.wait_seconds.labels(queue).observe((after.status.admission.at - after.created) / 1000)
        elif new is ledger.Phase.SUSPENDING:
            self.suspensions.labels(*where, after.status.suspension).inc()
        elif new in ledger.FINAL:
            self.finished.labels(*where, new.value, _deadline(after)).inc()

    def _promised(self, before: ledger.Ledger, after: ledger.Ledger, queue: str) -> None:
        had, has = before.status.slot is not None, after.status.slot is not None
        if had is has or after.final:
            return
        told = conditions.get(after.status.conditions, conditions.Type.DEADLINE_PROMISED)
        if told is not None and told.reason in _PROMISES:
            self.promises.labels(after.namespace, queue, told.reason).inc()

    def count_requests(self, api: limits.LimitedApi, words: limits.LimitedApi) -> None:
        """Copy the counters of the API adapters: of what counts, and of mere words, which may well wait."""
        self.throttled.set(api.throttled)
        for (verb, kind, status), count in (api.errors + words.errors).items():
            self.request_errors.labels(verb, kind, str(status)).set(count)
        for (verb, kind), count in (api.requests + words.requests).items():
            self.requests.labels(verb, kind).set(count)

    def count_events(self, told: events.Recorder) -> None:
        """Copy the counters of what users were told."""
        for outcome, count in (("sent", told.sent), ("failed", told.failed), ("dropped", told.dropped)):
            self.events.labels(outcome).set(count)

    def count_unreadable(self, left_aside: Mapping[str, int]) -> None:
        """Copy how often, by kind, an object could not be dealt with."""
        for kind, count in left_aside.items():
            self.unreadable.labels(kind).set(count)

    def count_relists(self, sources: Iterable[reflector.Reflector]) -> None:
        """Copy the counters of the reflectors."""
        # Pods have two reflectors, ours and everybody else's.
        relists: Counter[str] = Counter()
        for source in sources:
            relists[source.resource.plural] += source.counts.relists
        for kind, count in relists.items():
            self.relists.labels(kind).set(count)

    def count_topology(self, cache: caches.Cache, snapshot: model.Snapshot | None) -> None:
        """Look at what is known of the interconnect, and at what is free in it."""
        for each in (self.topology_domains, self.topology_largest, self.topology_fragmented):
            each.clear()
        domains = cache.domains
        self.topology_left_out.set(len(domains.left_out) if domains is not None else 0)
        self.topology_suspects.set(cache.occupancy.suspects)
        if domains is None or snapshot is None:
            return
        for level in domains.levels:
            self.topology_domains.labels(level.name).set(len(level.names))
        for one in fragments.figures(domains, snapshot):
            self.topology_largest.labels(one.level, one.resource).set(one.largest)
            self.topology_fragmented.labels(one.level, one.resource).set(one.fragmented)

    def render(self) -> bytes:
        """Return the text format."""
        return prometheus.generate_latest(self.registry)


def _deadline(job: ledger.Ledger) -> str:
    return "none" if job.met is None else "met" if job.met else "missed"
