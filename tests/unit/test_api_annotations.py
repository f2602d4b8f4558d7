"""What the labels and annotations of a user's own job ask for, whatever is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import objects
from lstqueue.api import annotations, deadlinejob, rules, schema

QUEUE = "lstqueue.dev/queue"
ALL = {
    "lstqueue.dev/deadline-in": "1d",
    "lstqueue.dev/estimated-duration": "8h",
    "lstqueue.dev/value": "10",
    "lstqueue.dev/sweep": "3 of lr-search",
    "lstqueue.dev/checkpoint-interval": "30m",
    "lstqueue.dev/checkpoint-on-suspend": "true",
    "lstqueue.dev/restart-overhead": "2m",
    "lstqueue.dev/preemptible": "false",
    "lstqueue.dev/min-run-time": "0s",
    "lstqueue.dev/max-run-time": "2d",
    "lstqueue.dev/on-missed": "Cancel",
    "lstqueue.dev/on-infeasible": "Reject",
    "lstqueue.dev/topology-required": "leafgroup",
    "lstqueue.dev/topology-slice": "4 per nvl",
    "lstqueue.dev/topology-min-bandwidth": "40GB/s",
    "lstqueue.dev/topology-preferred": "nvl",
    "lstqueue.dev/topology-max-wait": "30m",
    "lstqueue.dev/communication-share": "15%",
    "lstqueue.dev/adopt": "true",
}


def said(**given):
    """Read annotations given by the last part of their names."""
    return annotations.read(
        {}, {f"lstqueue.dev/{name.replace('_', '-')}": text for name, text in given.items()}
    )


def accepted(reading):
    job = objects.reference(**reading.spec)
    return schema.validate("DeadlineJob", job) + rules.violations("DeadlineJob", job)


def test_everything_that_can_be_said_becomes_a_spec():
    reading = annotations.read({QUEUE: "research"}, ALL)
    assert (reading.problems, reading.unread) == ((), ())
    assert reading.spec == {
        "queue": "research",
        "deadlineIn": "1d",
        "estimatedDuration": "8h",
        "value": 10,
        "sweep": {"name": "lr-search", "need": 3},
        "checkpoint": {"interval": "30m", "onSuspend": True, "restartOverhead": "2m"},
        "preemptible": False,
        "minRunTime": "0s",
        "maxRunTime": "2d",
        "onMissed": "Cancel",
        "onInfeasible": "Reject",
        "topology": {
            "required": "leafgroup",
            "sliceSize": 4,
            "sliceLevel": "nvl",
            "minBandwidth": "40GB/s",
            "preferred": "nvl",
            "maxWait": "30m",
            "communicationShare": "15%",
        },
    }
    assert accepted(reading) == []


@pytest.mark.parametrize(("labels", "given"), [(None, None), ({}, {}), ({QUEUE: ""}, {"team": "a"})])
def test_nothing_said_is_an_empty_spec(labels, given):
    assert annotations.read(labels, given) == annotations.Reading({})


def test_a_time_of_day_with_its_zone():
    assert said(deadline_at="06:00 Europe/Berlin").spec == {
        "deadlineAt": {"time": "06:00", "zone": "Europe/Berlin"}
    }


def test_a_deadline_is_kept_as_it_was_written():
    reading = said(deadline="2026-03-02T06:00:00+09:00")
    assert reading.spec == {"deadline": "2026-03-02T06:00:00+09:00"}
    assert accepted(reading) == []


@pytest.mark.parametrize(
    ("name", "text", "problem", "remedy"),
    [
        ("deadline", "tomorrow", "not an RFC 3339 time", "write an RFC 3339 time"),
        ("deadline", "2026-03-02", "has no time of day", "write an RFC 3339 time"),
        ("deadline", "1969-12-31T00:00:00Z", "not after 1970-01-01", "write an RFC 3339 time"),
        ("deadline_in", "8", "has no unit", "write a duration"),
        ("deadline_in", "", "is empty", "write a duration"),
        ("deadline_in", "0s", "is zero", "more than zero"),
        ("deadline_at", "06:00", "not a time of day and a time zone", '"06:00 Europe/Berlin"'),
        ("deadline_at", "6 Europe/Berlin", "not a time of day", '"06:00"'),
        ("deadline_at", "06:00 Europe/Atlantis", "not a time zone known here", "IANA name"),
        ("deadline_at", "", "not a time of day and a time zone", "write both"),
        ("estimated_duration", "١h", "not a duration", "write a duration"),
        ("value", "0", "not a whole number from 1", "write one"),
        ("value", "1000001", "to 1000000", "write one"),
        ("value", "1.5", "not a whole number", "write one"),
        ("value", "١", "not a whole number", "write one"),
        ("value", "", "not a whole number", "write one"),
        ("checkpoint_interval", "often", "not a duration", "write a duration"),
        ("checkpoint_on_suspend", "yes", "neither true nor false", '"true" or "false"'),
        ("preemptible", "True", "neither true nor false", '"true" or "false"'),
        ("preemptible", "", "neither true nor false", '"true" or "false"'),
        ("adopt", "1", "neither true nor false", '"true" or "false"'),
        ("on_missed", "cancel", "not one of the values", "write Demote, Continue or Cancel"),
        ("on_infeasible", "", "not one of the values", "write Queue, BestEffort or Reject"),
        ("topology_required", "leaf group", "not the name of a level", '"leafgroup"'),
        ("topology_slice", "0", "not a size of slices", '"4 per leafgroup"'),
        ("topology_slice", "4 per ", "not a size of slices", '"4 per leafgroup"'),
        ("topology_slice", "4 per a b", "not the name of a level", '"leafgroup"'),
        ("topology_max_wait", "soon", "not a duration", "write a duration"),
        ("communication_share", "0.15", "not a percentage", "write a percentage"),
        ("topology_min_bandwidth", "40", "not a bandwidth", '"50GB/s"'),
        ("topology_min_bandwidth", "0GB/s", "not a bandwidth", '"50GB/s"'),
    ],
)
def test_what_cannot_be_used_is_left_out_and_told_by_name_with_a_remedy(name, text, problem, remedy):
    reading = said(**{name: text})
    (found,) = reading.problems
    assert found.field == f"metadata.annotations[lstqueue.dev/{name.replace('_', '-')}]"
    assert problem in found.problem
    assert remedy in found.remedy
    assert reading.spec == {}


def test_waiting_for_no_level_is_told_and_left_out():
    reading = said(topology_max_wait="1h", topology_required="leafgroup")
    (found,) = reading.problems
    assert found.field == "metadata.annotations[lstqueue.dev/topology-max-wait]"
    assert found.remedy == "set lstqueue.dev/topology-preferred, or remove it"
    assert reading.spec == {"topology": {"required": "leafgroup"}}
    assert accepted(reading) == []


def test_two_kinds_of_deadline_leave_none():
    reading = said(deadline="2026-03-02T06:00:00Z", deadline_at="06:00 UTC", value="3")
    (found,) = reading.problems
    assert found.field == "metadata.annotations[lstqueue.dev/deadline-at]"
    assert (found.problem, found.remedy) == (
        "is set beside lstqueue.dev/deadline, so that it has no deadline now",
        "keep one of them",
    )
    assert reading.spec == {"value": 3}


def test_a_queue_that_is_no_name_is_told_by_its_label():
    for name in ("Research", "a_b", "q" * 64):
        (found,) = annotations.read({QUEUE: name}, {}).problems
        assert found.field == "metadata.labels[lstqueue.dev/queue]"
        assert "not the name of a queue" in found.problem


@pytest.mark.parametrize("name", [*(key.partition("/")[2] for key in ALL), "deadline", "deadline-at"])
@pytest.mark.parametrize("text", ["x" * 1_000_000, "ü" * 300, "\x00\x1b[31m", "1h\n", "🕕"])
def test_hostile_texts_give_one_short_printable_problem(name, text):
    (found,) = annotations.read({}, {f"lstqueue.dev/{name}": text}).problems
    assert len(str(found)) < 400
    assert str(found).isascii()
    assert str(found).isprintable()


def test_what_is_misspelt_is_told_and_no_more_of_it_than_helps():
    reading = said(deadine_in="1h")
    (found,) = reading.unread
    assert found.remedy == "write lstqueue.dev/deadline-in if you meant that"
    assert (reading.spec, reading.problems) == ({}, ())
    many = annotations.read({}, {f"lstqueue.dev/{number}{'x' * 1000}": "" for number in range(100)})
    assert len(many.unread) == 8
    assert all(len(str(problem)) < 500 for problem in many.unread)


TEXTS = (
    st.sampled_from(["", "1h", "true", "7", "06:00 UTC", "2026-03-02T06:00:00Z", "Cancel", "0s"]) | st.text()
)
NAMES = st.sampled_from([*ALL, "lstqueue.dev/deadline", "lstqueue.dev/deadline-at", "other"])


@given(st.dictionaries(st.just(QUEUE), TEXTS), st.dictionaries(NAMES, TEXTS))
def test_whatever_is_said_the_spec_is_one_that_the_api_takes(labels, given_):
    reading = annotations.read(labels, given_)
    assert accepted(reading) == []
    assert deadlinejob.parse(objects.reference(**reading.spec)).job_ref.name == "train"
    assert all(problem.problem and problem.remedy for problem in reading.problems)
