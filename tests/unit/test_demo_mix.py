"""How the demo's jobs are asked for: the mix, the same for every part of the trace, and its manifests."""

from collections import Counter

import pytest

from lstqueue.api import annotations, deadlinejob, durations, times, zones
from lstqueue.demo import mix, scenario, trace
from lstqueue.kube import port


def asked(seed: int = 1) -> list[mix.Ask]:
    return mix.ask(trace.load(seed=seed), seed=seed)


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_a_third_are_users_own_jobs_and_a_fifth_have_no_deadline(seed: int) -> None:
    asks = asked(seed)
    kinds = Counter(ask.kind for ask in asks)
    assert 60 <= kinds[mix.Kind.JOB] + kinds[mix.Kind.BAG] <= 110
    assert kinds[mix.Kind.BAG] >= 5
    assert 30 <= sum(ask.deadline is None for ask in asks) <= 65
    assert 40 <= sum(ask.saves is not None for ask in asks) <= 120


def test_a_part_of_the_trace_is_asked_for_like_the_whole() -> None:
    assert mix.ask(trace.load(seed=3)[10:20], seed=3) == asked(3)[10:20]
    assert asked(3) != asked(4)


def test_bags_can_be_done_by_the_morning_and_save_nothing() -> None:
    for ask in asked():
        if ask.kind is mix.Kind.BAG:
            submit = mix.EPOCH + ask.job.submit
            assert ask.deadline == zones.following("06:00", "Europe/Berlin", submit).at
            assert submit + ask.job.duration < ask.deadline <= submit + 12 * durations.HOUR
            assert ask.saves is None


def test_what_an_inline_job_says_can_be_read_and_is_what_its_pods_do() -> None:
    for ask in asked():
        resource, body = scenario.manifest(ask)
        if ask.kind is not mix.Kind.INLINE:
            continue
        assert resource is port.DEADLINE_JOBS
        spec = deadlinejob.parse(body)
        assert spec.estimated_duration == ask.job.duration
        assert (spec.deadline is None) == (ask.deadline is None)
        pods = [group["replicas"] for group in body["spec"]["groups"]]
        (template, *_) = (group["template"] for group in body["spec"]["groups"])
        assert sum(pods) * gpus(template) == ask.job.gpus
        assert run_for(template) == ask.job.duration
        saves = "sim/checkpoint-every" in template["metadata"]["annotations"]
        assert (spec.checkpoint is not None) == saves == (ask.saves is not None)


def test_what_a_labelled_job_says_can_be_read_and_is_what_its_pods_do() -> None:
    for ask in asked():
        resource, body = scenario.manifest(ask)
        if ask.kind is mix.Kind.INLINE:
            continue
        assert resource is port.JOBS
        meta, spec = body["metadata"], body["spec"]
        reading = annotations.read(meta["labels"], meta["annotations"])
        assert (reading.problems, reading.unread) == ((), ())
        assert durations.parse(reading.spec["estimatedDuration"]) == ask.job.duration
        template, completions, slots = spec["template"], spec["completions"], spec["parallelism"]
        assert slots * gpus(template) == ask.job.gpus
        assert completions // slots * run_for(template) == pytest.approx(ask.job.duration, abs=3000)
        if ask.kind is mix.Kind.BAG:
            assert completions > slots
            assert reading.spec["deadlineAt"] == {"time": "06:00", "zone": "Europe/Berlin"}
        else:
            assert (completions, spec["completionMode"]) == (slots, "Indexed")
            said = reading.spec.get("deadline")
            assert (None if said is None else times.parse(said)) == ask.deadline


def test_under_fifo_nobody_is_suspended_for_another() -> None:
    assert scenario.queue("fifo", gpus=8)["spec"]["preemption"] == {"withinQueue": "Never"}
    assert "preemption" not in scenario.queue("lst", gpus=8)["spec"]


def gpus(template: port.Object) -> int:
    return int(template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


def run_for(template: port.Object) -> int:
    return durations.parse(template["metadata"]["annotations"]["sim/run-for"])
