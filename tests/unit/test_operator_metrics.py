"""Figures whose labels or sums are easy to get wrong."""

import pathlib
import re
from collections import Counter
from types import SimpleNamespace

from cases import raw
from lstqueue.kube import port
from lstqueue.operator import ledger, metrics


def value(figures, name, **labels):
    return figures.registry.get_sample_value(name, labels)


def ended(phase, **status):
    before = ledger.read(raw.deadline_job(queue="any-name"))
    return before, ledger.read(raw.deadline_job(queue="any-name", status={"phase": phase, **status}))


def test_a_queue_that_nobody_was_admitted_to_makes_no_series():
    figures = metrics.Metrics()
    figures.transition(*ended("Rejected"), "any-name")
    figures.transition(*ended("Failed", attempt=1), "any-name")
    finished = {
        sample.labels["phase"]: sample.labels["queue"]
        for metric in figures.finished.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    assert finished == {"Rejected": "", "Failed": "any-name"}


def test_relists_of_a_kind_with_two_reflectors_add_up():
    figures = metrics.Metrics()
    sources = [SimpleNamespace(resource=port.PODS, counts=SimpleNamespace(relists=count)) for count in (2, 1)]
    figures.count_relists(sources)
    assert value(figures, "lstqueue_reflector_relists", kind="pods") == 3


def test_requests_for_mere_words_count_too_but_may_well_wait():
    figures = metrics.Metrics()
    api = SimpleNamespace(
        requests=Counter({("patch", "jobs"): 2, ("get", "events"): 1}), errors=Counter(), throttled=1.5
    )
    words = SimpleNamespace(
        requests=Counter({("create", "events"): 3, ("get", "events"): 1}),
        errors=Counter({("create", "events", 403): 1}),
        throttled=60.0,
    )
    figures.count_requests(api, words)
    assert value(figures, "lstqueue_api_requests", verb="patch", kind="jobs") == 2
    assert value(figures, "lstqueue_api_requests", verb="create", kind="events") == 3
    assert value(figures, "lstqueue_api_requests", verb="get", kind="events") == 2
    assert value(figures, "lstqueue_api_request_errors", verb="create", kind="events", status="403") == 1
    assert value(figures, "lstqueue_throttled_seconds") == 1.5


def test_whatever_words_webhooks_find_there_are_only_so_many_series():
    figures = metrics.Metrics()
    for number in range(100):
        figures.write_failed(port.ForbiddenError(403, f"denied at {number} o'clock", "no"))
    figures.write_failed(port.ConflictError(409, "Conflict", "somebody wrote first"))
    figures.write_failed(port.UnavailableError(0, "ConnectionFailed", "nobody there"))
    figures.write_failed(port.UnavailableError(503, "", "no reason"))
    found = {
        sample.labels["reason"]: sample.value
        for metric in figures.write_errors.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    assert found == {"403": 100, "Conflict": 1, "ConnectionFailed": 1, "503": 1}


def test_every_reason_that_the_manual_names_is_a_series_of_its_own():
    manual = pathlib.Path(__file__).parents[2] / "docs" / "operations.md"
    (row,) = re.findall(r"\n\| `lstqueue_write_errors_total` \| reason \|(.*)\n", manual.read_text())
    reasons = re.findall(r"`(\w+)`", row)
    assert {"Defect", "ClockSkew"} <= set(reasons)
    figures = metrics.Metrics()
    for reason in reasons:
        figures.write_failed(port.UnavailableError(0, reason, "why ever"))
        assert value(figures, "lstqueue_write_errors_total", reason=reason) == 1
