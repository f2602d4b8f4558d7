"""Whatever others have to say, a status that repeats it is one that the API server takes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import raw
from lstqueue.api import base, schema
from lstqueue.embedded import patches
from lstqueue.engine import model
from lstqueue.operator import events, ledger, lenient, statuses

Phase = ledger.Phase
TEXTS = ["x" * 3000, "ü" * 3000, "ab \U0001f600" * 750]
IDS = ["ascii", "two bytes", "four bytes"]


def written(job: raw.Object, status: ledger.Status, words: statuses.Words | None) -> raw.Object:
    body = statuses.patch(ledger.read(job), status, words=words)
    return {**raw.touched(job), "status": patches.merge(job["status"], body.get("status", {}))}


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_of(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
@pytest.mark.parametrize("slow", [lenient.STARTING, lenient.STOPPING, ""])
@pytest.mark.parametrize("phase", Phase)
def test_a_status_with_long_words_is_taken_and_not_written_twice(phase: Phase, slow: str, text: str) -> None:
    job = raw.deadline_job(deadlineIn="3h")
    seen = ledger.read(job)
    ran = ledger.Status(phase=Phase.RUNNING, observed=1, started=raw.NOW)
    job["status"] = statuses.render(seen, ran, None)
    verdict = model.Verdict(model.Level.IMPOSSIBLE, text, None, None)
    code = None if slow else model.Code.HELD_BACK
    status = dataclasses.replace(
        ran,
        phase=phase,
        suspension="Preempted" if phase is Phase.SUSPENDING else "",
        published=model.Published(model.Band.REST, code, verdict, "<0"),
        held="" if slow else text,
        gang=text[: base.TEXT_LENGTH],
    )
    status = statuses.with_run(ran, status, end=raw.NOW + 1, reason=text, words=text)
    status = statuses.with_conditions(seen, status, now=raw.NOW, why=text, message=text, pending=text)
    status = dataclasses.replace(status, slow=(slow, text) if slow else lenient.NOT_SLOW)
    words = statuses.Words(text)
    after = written(job, status, words)
    assert schema.validate("DeadlineJob", after) == []
    assert all(len(said) <= 1024 for said in texts_of(after["status"]))
    assert sum(said.endswith("…") for said in texts_of(after["status"])) >= 4, "a cut can be seen"
    again = ledger.read(after)
    assert statuses.patch(again, again.status, words=words) == {}
    assert statuses.patch(again, again.status) == {}


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_an_event_with_long_words_shows_that_it_was_cut(text: str) -> None:
    subject = events.Subject("batch/v1", "Job", "default", "job", "uid")
    said = events.render(events.Note(subject, "Reason", text), at=raw.NOW)["message"]
    assert (len(said), said[-1]) == (1024, "…")
