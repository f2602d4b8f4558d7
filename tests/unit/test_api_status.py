import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import objects
from lstqueue.api import conditions, deadlinejob_status, durations, errors, gpuqueue, reading, schema


def build(model, **fields):
    # Not `st.builds`, which would go by the aliases.
    return st.fixed_dictionaries(fields).map(lambda chosen: model(**chosen))


MOMENTS = st.integers(0, 4_102_444_800_000)
SPANS = st.integers(0, 365 * durations.DAY)
WORDS = st.text("abcdefgh", min_size=1, max_size=20)
WINDOWS = build(deadlinejob_status.Window, earliest=MOMENTS, latest=MOMENTS)
COUNTS = st.integers(0, 2**31)


def optional(strategy):
    return st.none() | strategy


STATUSES = build(
    deadlinejob_status.Status,
    observed_generation=optional(COUNTS),
    phase=optional(st.sampled_from(deadlinejob_status.Phase)),
    conditions=st.lists(
        build(
            conditions.Condition,
            type=st.sampled_from(conditions.Type),
            status=st.sampled_from(conditions.Truth),
            reason=WORDS,
            message=st.text(max_size=50),
            last_transition_time=MOMENTS,
        ),
        max_size=6,
        unique_by=lambda condition: condition.type,
    ),
    deadline=optional(MOMENTS),
    gang=WORDS,
    attempt=COUNTS,
    restarts=COUNTS,
    admission=optional(
        build(
            deadlinejob_status.Admission,
            at=MOMENTS,
            queue=WORDS,
            shape_hash=WORDS,
            job_uid=WORDS,
            groups=st.lists(
                build(
                    deadlinejob_status.GroupAdmission,
                    name=WORDS,
                    pool=WORDS,
                    nodes=st.just(({"node": "gpu-1", "ranks": "0-3,9"}, {"node": "gpu-2", "ranks": "4"})),
                ),
                max_size=8,
                unique_by=lambda group: group.name,
            ),
        )
    ),
    suspension=optional(build(deadlinejob_status.Suspension, reason=WORDS, since=MOMENTS, for_uid=WORDS)),
    backoff=optional(
        build(deadlinejob_status.Backoff, until=MOMENTS, count=COUNTS, avoid=st.lists(WORDS, max_size=3))
    ),
    late=optional(st.booleans()),
    verdict=optional(
        build(
            deadlinejob_status.Verdict,
            level=st.sampled_from(["LIKELY", "AT_RISK"]),
            reason=st.text(max_size=50),
            earliest_feasible_deadline=optional(MOMENTS),
            earliest_promised_deadline=optional(MOMENTS),
            forecast_start=optional(WINDOWS),
            forecast_finish=optional(WINDOWS),
            at=optional(MOMENTS),
        )
    ),
    slack=WORDS,
    estimate=optional(
        build(
            deadlinejob_status.Estimate,
            lo=SPANS,
            mid=SPANS,
            hi=SPANS,
            source=st.sampled_from(deadlinejob_status.EstimateSource),
        )
    ),
    pending=optional(build(deadlinejob_status.Pending, code=WORDS, message=st.text(max_size=50))),
    job_uid=WORDS,
    claim=optional(
        build(
            deadlinejob_status.Claim,
            expires=MOMENTS,
            groups=st.just(({"name": "worker", "pool": "a100", "nodes": ({"node": "gpu-1", "count": 2},)},)),
            victims=st.just(({"uid": "a", "attempt": 0}, {"uid": "b", "attempt": 3})),
        )
    ),
    displaced_by=st.lists(WORDS, max_size=16),
    shed=optional(st.booleans()),
    saved=optional(SPANS),
    wasted=optional(COUNTS),
    best_effort=optional(st.booleans()),
    runs=st.lists(
        build(
            deadlinejob_status.Run,
            start=MOMENTS,
            end=optional(MOMENTS),
            reason=WORDS,
            nodes=COUNTS,
            lost=optional(SPANS),
        ),
        max_size=10,
    ),
)


@given(STATUSES)
def test_a_status_is_valid_as_written_and_read_back_the_same(status):
    job = objects.job(status=status.dump())
    assert schema.validate("DeadlineJob", job) == []
    assert deadlinejob_status.parse(job) == status


@pytest.mark.parametrize(
    ("kind", "model", "obj"),
    [
        ("DeadlineJob", deadlinejob_status.Status, objects.job(status=objects.FULL)),
        ("GPUQueue", gpuqueue.Status, objects.queue(status=objects.QUEUE_STATUS)),
    ],
)
def test_every_field_of_a_status_comes_back_as_it_was(kind, model, obj):
    assert set(schema.openapi(kind)["properties"]["status"]["properties"]) == set(obj["status"])
    assert reading.read(model, obj, part="status").dump() == obj["status"]


def test_a_written_status_has_neither_nulls_nor_what_is_empty():
    status = deadlinejob_status.Status(
        phase=deadlinejob_status.Phase.PENDING,
        late=False,
        verdict=deadlinejob_status.Verdict(level="UNKNOWN"),
        backoff=deadlinejob_status.Backoff(until=0, count=0),
    )
    assert status.dump() == {
        "phase": "Pending",
        "attempt": 0,
        "restarts": 0,
        "disruptions": 0,
        "late": False,
        "verdict": {"level": "UNKNOWN"},
        "backoff": {"until": "1970-01-01T00:00:00Z", "count": 0},
    }


def test_a_message_that_is_too_long_is_cut_and_not_refused():
    pending = deadlinejob_status.Pending(code="NoRoom", message="ü" * 5_000)
    assert len(pending.message) == 1_024
    assert pending.message.endswith("…")
    job = objects.job(status=deadlinejob_status.Status(pending=pending).dump())
    assert schema.validate("DeadlineJob", job) == []


def test_only_the_last_ten_runs_are_kept():
    runs = [deadlinejob_status.Run(start=second * 1_000) for second in range(15)]
    status = deadlinejob_status.Status(runs=runs)
    assert [run.start for run in status.runs] == [second * 1_000 for second in range(5, 15)]


def test_only_the_last_jobs_that_displaced_one_are_kept():
    status = deadlinejob_status.Status(displaced_by=[f"uid-{number}" for number in range(54)])
    assert status.displaced_by == tuple(f"uid-{number}" for number in range(4, 54))
    status = deadlinejob_status.Status(preempted_at=[second * 1_000 for second in range(54)])
    assert status.preempted_at == tuple(second * 1_000 for second in range(4, 54))


@pytest.mark.parametrize("status", [None, {}, "absent"])
def test_an_object_that_nobody_has_seen_yet_has_an_empty_status(status):
    obj = {"spec": {}} if status == "absent" else {"spec": {}, "status": status}
    assert deadlinejob_status.parse(obj) == deadlinejob_status.Status()


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"phase": "Dreaming"}, "status.phase"),
        ({"claim": {"expires": "soon"}}, "status.claim.expires"),
        ({"attempt": -1}, "status.attempt"),
        ({"admission": {"at": "yesterday"}}, "status.admission.at"),
        ({"runs": "many"}, "status.runs"),
        ([], "status"),
        (7, "status"),
    ],
)
def test_a_status_that_somebody_else_wrote_is_refused_by_field(status, field):
    with pytest.raises(errors.InvalidSpecError) as caught:
        deadlinejob_status.parse(objects.job(status=status))
    assert field in [problem.field for problem in caught.value.problems]
