"""What is another in a snapshot is found by identity, in whatever order jobs come, and is what it is."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.engine import differences, model

UIDS = [f"u{number:02}" for number in range(12)]


def job(uid: str, *, value: int = 1) -> model.Job:
    return model.Job(uid, "ns", uid, "q", (), 0, value=value)


@st.composite
def moves(draw: st.DrawFn) -> tuple[list[model.Job], list[model.Job]]:
    """Jobs of before and of now: the same objects, equal ones, others, new ones, in some order."""
    before = [job(uid) for uid in draw(st.lists(st.sampled_from(UIDS), unique=True))]
    known = {one.uid: one for one in before}
    after: list[model.Job] = []
    for uid in draw(st.lists(st.sampled_from(UIDS), unique=True)):
        one = known.get(uid, job(uid))
        kinds = [one, dataclasses.replace(one), dataclasses.replace(one, value=2)]
        after.append(draw(st.sampled_from(kinds)))
    if draw(st.booleans()):
        after.sort(key=lambda one: one.uid)
    return before, after


@given(moves())
def test_what_is_new_or_another_or_gone_is_found(lists: tuple[list[model.Job], list[model.Job]]) -> None:
    before, after = lists
    known = dict(sorted((one.uid, one) for one in before))
    jobs, changed, gone = differences.take(before, known, after)
    assert list(jobs) == sorted(one.uid for one in after)
    assert all(jobs[one.uid] is one for one in after)
    assert changed == [uid for uid in jobs if known.get(uid) != jobs[uid]]
    assert gone == sorted(known.keys() - jobs.keys())


@pytest.mark.parametrize("several", [2, 200])
def test_a_uid_that_appears_twice_is_refused(several: int) -> None:
    before = [job(f"u{number}") for number in range(several)]
    known = dict(sorted((one.uid, one) for one in before))
    for twice in (before[0], job("u0", value=2)):
        with pytest.raises(ValueError, match="jobs: u0 appears twice; give it once"):
            differences.take(before, known, [*before, twice])
    fresh = [job("new"), job("new")]
    with pytest.raises(ValueError, match="jobs: new appears twice; give it once"):
        differences.take(before, known, [*before, *fresh])
