"""What is written can be read back, is written once, and is something the API server takes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import raw
from lstqueue.api import conditions, schema, times
from lstqueue.embedded import patches
from lstqueue.engine import model
from lstqueue.operator import ledger, statuses
from lstqueue.topology import model as topology

Phase = ledger.Phase
LAST = times.parse("9999-12-31T23:59:59Z")

MOMENTS = st.integers(1, 4_000_000_000_000)
SECONDS = st.integers(1, 4_000_000_000).map(lambda second: second * 1000)
WINDOWS = st.none() | st.tuples(SECONDS, SECONDS)
NAMES = st.text("abc-0", min_size=1, max_size=5)
WORDS = st.text("abcXYZ", min_size=1, max_size=10)
COUNTS = st.integers(0, 1000)


def ranks(draw_sets):
    return tuple((node, tuple(sorted(found))) for node, found in sorted(draw_sets.items()))


GROUPS = st.builds(
    ledger.GroupAdmission,
    name=NAMES,
    pool=NAMES,
    nodes=st.dictionaries(NAMES, st.sets(st.integers(0, 99), min_size=1), max_size=3).map(ranks),
)
ADMISSIONS = st.builds(
    ledger.Admission,
    at=MOMENTS,
    queue=NAMES,
    shape=NAMES,
    groups=st.lists(GROUPS, max_size=2, unique_by=lambda group: group.name).map(tuple),
    job_uid=st.just("") | NAMES,
)
CLAIMS = st.builds(
    model.Claim,
    groups=st.lists(
        st.builds(
            model.GroupPlacement,
            pool=NAMES,
            nodes=st.dictionaries(NAMES, st.integers(1, 9), max_size=3).map(lambda found: (*found.items(),)),
        ),
        max_size=2,
    ).map(tuple),
    victims=st.lists(
        st.builds(model.Victim, uid=NAMES, attempt=COUNTS), max_size=3, unique_by=lambda victim: victim.uid
    ).map(tuple),
    expires=MOMENTS,
)
VERDICTS = st.builds(
    model.Verdict,
    level=st.sampled_from(model.Level),
    reason=st.text(max_size=20),
    start=WINDOWS,
    finish=WINDOWS,
    earliest_feasible=st.none() | SECONDS,
    earliest_promised=st.none() | SECONDS,
)
CONDITIONS = st.builds(
    lambda kind, true, reason, at: conditions.Condition(
        type=kind, status=str(true), reason=reason, last_transition_time=at
    ),
    st.sampled_from(conditions.Type),
    st.booleans(),
    WORDS,
    MOMENTS,
)


@st.composite
def back_offs(draw, count):
    avoid = tuple(draw(st.lists(NAMES)))
    return ledger.BackOff(draw(MOMENTS), count, avoid, draw(MOMENTS) if avoid else 0)


@st.composite
def stati(draw, *, deadline):
    """A status as the operator may have put it together, of a job with or without a deadline."""
    code = draw(st.none() | st.sampled_from(model.Code))
    verdict = draw(st.none() | VERDICTS)
    # A band comes with a verdict; without a deadline there is only one.
    band = None if verdict is None else draw(st.sampled_from(model.Band)) if deadline else model.Band.REST
    reason = draw(st.sampled_from(["", "GangFailed", "FailedStart", "Preempted"]))
    count = draw(st.integers(0, 9))
    return ledger.Status(
        phase=draw(st.sampled_from(Phase)),
        observed=draw(st.integers(1, 100)),
        attempt=draw(COUNTS),
        restarts=draw(COUNTS),
        disruptions=draw(COUNTS),
        admission=draw(st.none() | ADMISSIONS),
        suspension=reason,
        since=draw(MOMENTS) if reason else 0,
        back_off=draw(back_offs(count)) if count else ledger.NO_BACK_OFF,
        started=draw(st.just(0) | MOMENTS),
        completed=draw(st.just(0) | MOMENTS),
        published=model.Published(band, code, verdict, draw(st.sampled_from(["", "<1h", "<0"]))),
        held=draw(st.just("") | WORDS) if code is model.Code.HELD_BACK else "",
        conditions=tuple(draw(st.lists(CONDITIONS, max_size=3, unique_by=lambda item: item.type))),
        runs=tuple(
            draw(st.lists(st.fixed_dictionaries({"start": st.just("2026-03-01T18:00:00Z")}), max_size=3))
        ),
        queue=draw(st.just("") | NAMES),
        gang=draw(st.text(max_size=20)),
        claim=draw(st.none() | CLAIMS),
        preempted_at=tuple(draw(st.lists(MOMENTS, max_size=3))),
        suspended_for=draw(NAMES) if reason == "Preempted" else "",
        displaced_by=tuple(draw(st.lists(NAMES, max_size=16))),
        saved=draw(st.integers(0, 59_999) | st.integers(60, 10**7).map(lambda seconds: seconds * 1000)),
        wasted=draw(COUNTS),
        best_effort=draw(st.booleans()),
        unit=draw(st.just("") | NAMES),
    )


ESTIMATES = st.none() | st.builds(lambda ms: model.Estimate(ms // 4, ms, ms * 2), st.integers(0, 10**13))
SPEECHES = st.none() | st.builds(statuses.Words, st.text(max_size=30), ESTIMATES, st.just("User"))


@st.composite
def writes(draw, count=1):
    """Return a raw job and statuses to write one after the other, each with its words."""
    deadline = draw(st.booleans())
    job = raw.deadline_job(**({"deadlineIn": "3h"} if deadline else {}))
    job["metadata"]["generation"] = 100
    return job, [(draw(stati(deadline=deadline)), draw(SPEECHES)) for _ in range(count)]


def write(job, status, words):
    """Write a status as the API server would; returns the object after it."""
    body = statuses.patch(ledger.read(job), status, words=words)
    assert not body or body["metadata"]["resourceVersion"] == job["metadata"]["resourceVersion"]
    after = raw.touched(job)
    after["status"] = patches.merge(job["status"], body.get("status", {}))
    return after


@given(writes())
def test_a_status_reads_back_as_it_was_written(case):
    job, [(status, words)] = case
    assert ledger.read(write(job, status, words)).status == status


@given(writes(count=3))
def test_whatever_stood_there_before_the_status_says_the_last_thing_and_nothing_is_written_twice(case):
    job, said = case
    for status, words in said:
        job = write(job, status, words)
        seen = ledger.read(job)
        assert job["status"] == statuses.render(seen, status, words)
        assert statuses.patch(seen, status, words=words) == {}
        assert statuses.patch(seen, status) == {}


@given(writes(count=2))
def test_a_patch_holds_only_what_changes(case):
    job, ((first, words), (second, more)) = case
    before = write(job, first, words)
    body = statuses.patch(ledger.read(before), second, words=more)
    after = write(before, second, more)
    changed = {
        key
        for key in before["status"].keys() | after["status"].keys()
        if before["status"].get(key) != after["status"].get(key)
    }
    assert body.get("status", {}).keys() == changed


@given(writes())
def test_the_api_server_takes_it(case):
    job, [(status, words)] = case
    assert schema.validate("DeadlineJob", write(job, status, words)) == []


LONG = "ab c" * 5000


def test_texts_and_times_beyond_what_the_schema_takes_are_cut():
    job = raw.deadline_job(deadline="9998-12-30T00:00:00Z", estimatedDuration="99999d99999d99999d")
    verdict = model.Verdict(
        model.Level.IMPOSSIBLE, LONG, (0, 10**18), (LAST, LAST + 1), earliest_feasible=10**17
    )
    status = ledger.Status(
        phase=Phase.PENDING,
        observed=1,
        published=model.Published(model.Band.REST, model.Code.HELD_BACK, verdict, "<0"),
        held=LONG,
        gang=statuses.gang_text((group(f"example.com/{'x' * 60}"),) * 8),
    )
    seen = ledger.read(job)
    assert not seen.problem
    status = statuses.with_conditions(seen, status, now=raw.NOW, why="9 lives " * 20, message=LONG)
    words = statuses.Words(LONG, model.Estimate(1, 10**15, 2 * 10**15), "User")
    after = write(job, status, words)
    assert schema.validate("DeadlineJob", after) == []
    assert statuses.patch(ledger.read(after), status, words=words) == {}
    assert after["status"]["verdict"]["forecastFinish"]["latest"] == times.format(LAST)
    assert after["status"]["latestStartTime"] == "0001-01-01T00:00:00Z"


def group(resource, count=4096):
    return model.Group("g", count, shape({resource: 8}))


def shape(amounts):
    return topology.PodShape(topology.resources({**amounts, "pods": 1}))


@pytest.mark.parametrize(
    ("amounts", "text"),
    [
        ({"nvidia.com/gpu": 8, "cpu": 4000}, "2×8 nvidia.com/gpu"),
        ({"cpu": 500, "memory": 1 << 30}, "2×500m cpu"),
        ({"memory": 1 << 30}, "2×1 pods"),
    ],
)
def test_a_gang_is_described_by_what_is_scarce(amounts, text):
    groups = (model.Group("g", 2, shape(amounts)),)
    assert statuses.gang_text(groups) == text
    assert statuses.gang_text(groups * 2) == f"{text} + {text}"


def test_what_a_deadline_brought_goes_with_it():
    status = ledger.Status(observed=1, published=model.Published(model.Band.DEADLINE, None, None, "<1h"))
    words = statuses.Words("", model.Estimate(1, 2, 3), "User")
    job = write(raw.deadline_job(deadlineIn="3h"), status, words)
    assert {"late", "deadline", "latestStartTime"} <= job["status"].keys()
    del job["spec"]["deadlineIn"]
    status = dataclasses.replace(status, published=model.Published(model.Band.REST, None, None, ""))
    body = statuses.patch(ledger.read(job), status)
    assert body["status"] == {"late": None, "deadline": None, "latestStartTime": None, "slack": None}


def test_a_claim_names_the_groups_it_is_for():
    claim = model.Claim(
        (model.GroupPlacement("a100", (("gpu-1", 2),)),), (model.Victim("other", 3),), raw.NOW
    )
    status = ledger.Status(observed=1, phase=Phase.CLAIMING, claim=claim)
    said = write(raw.deadline_job(), status, None)["status"]
    assert said["phase"] == "Claiming"
    assert said["claim"] == {
        "expires": "2026-03-01T18:00:00Z",
        "groups": [{"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "count": 2}]}],
        "victims": [{"uid": "other", "attempt": 3}],
    }


def test_a_reservation_is_read_back_as_it_was_written():
    kept = model.Reservation((model.GroupPlacement("a100", (("gpu-1", 2),)),), raw.NOW, 1)
    status = ledger.Status(observed=1, reservation=kept)
    job = write(raw.deadline_job(), status, None)
    assert job["status"]["reservation"] == {
        "start": "2026-03-01T18:00:00Z",
        "groups": [{"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "count": 2}]}],
        "slips": 1,
    }
    seen = ledger.read(job)
    assert seen.status.reservation == kept
    without = dataclasses.replace(seen.status, reservation=None)
    assert statuses.patch(seen, without)["status"] == {"reservation": None}


def test_a_job_that_was_shed_is_not_called_late():
    status = ledger.Status(observed=1, published=model.Published(model.Band.SHED))
    words = statuses.Words("", model.Estimate(1, 2, 3), "User")
    job = write(raw.deadline_job(deadlineIn="3h"), status, words)
    assert (job["status"]["shed"], job["status"]["late"]) == (True, False)
    again = dataclasses.replace(status, published=model.Published(model.Band.DEADLINE))
    assert statuses.patch(ledger.read(job), again, words=words)["status"] == {"shed": None}


def test_a_suspension_names_the_job_it_makes_room_for():
    status = ledger.Status(
        observed=1, phase=Phase.SUSPENDING, suspension="Preempted", since=raw.NOW, suspended_for="uid-urgent"
    )
    said = write(raw.deadline_job(), status, None)["status"]["suspension"]
    assert said == {"reason": "Preempted", "since": "2026-03-01T18:00:00Z", "for": "uid-urgent"}


def test_promises_are_exact_and_forecasts_never_too_early():
    job = raw.deadline_job(deadline="2026-03-01T21:00:00.250Z")
    verdict = model.Verdict(model.Level.LIKELY, "", (raw.NOW + 1, raw.NOW + 1000))
    status = ledger.Status(observed=1, published=model.Published(verdict=verdict))
    said = write(job, status, statuses.Words("", model.Estimate(1, raw.HOUR, raw.HOUR), "User"))["status"]
    assert said["deadline"] == "2026-03-01T21:00:00.250Z"
    assert said["latestStartTime"] == "2026-03-01T20:00:00Z"
    start = said["verdict"]["forecastStart"]
    assert start == {"earliest": "2026-03-01T18:00:01Z", "latest": "2026-03-01T18:00:01Z"}


def test_a_reason_for_waiting_keeps_its_words_until_it_changes():
    job = raw.deadline_job()
    waits = ledger.Status(observed=1, published=model.Published(code=model.Code.NO_ROOM))
    job = write(job, waits, statuses.Words("needs 4, has 2"))
    assert job["status"]["pending"] == {"code": "NoRoom", "message": "needs 4, has 2"}
    assert statuses.patch(ledger.read(job), waits) == {}
    held = dataclasses.replace(
        waits, published=model.Published(code=model.Code.HELD_BACK), held="InvalidSpec"
    )
    assert write(job, held, None)["status"]["pending"] == {"code": "InvalidSpec"}
    assert "pending" not in write(job, ledger.Status(observed=1), None)["status"]


def test_a_status_written_by_a_newer_version_does_not_stop_an_older_one():
    said = {"phase": "Pending", "observedGeneration": 1, "verdict": {"level": "CERTAIN"}, "late": True}
    seen = ledger.read(raw.deadline_job(status=said))
    assert seen.status.published.verdict is None
    assert seen.status.published.band is model.Band.REST
