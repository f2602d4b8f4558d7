import re

import pytest

from cases import crd_rules, objects
from lstqueue.api import deadlinejob, errors, gpuqueue, times

HOUR = 3_600_000


def problems(parse, obj):
    with pytest.raises(errors.InvalidSpecError) as caught:
        parse(obj)
    return [(problem.field, problem.problem, problem.remedy) for problem in caught.value.problems]


def test_a_job_is_read_in_integers_with_its_defaults():
    spec = deadlinejob.parse(objects.job(deadlineIn="1.5h", estimatedDuration="1d"))
    assert (spec.queue, spec.importance, spec.backoff_limit) == ("research", 0, 3)
    assert spec.success_policy is deadlinejob.SuccessPolicy.ALL
    assert (spec.deadline_in, spec.estimated_duration, spec.deadline) == (HOUR * 3 // 2, 24 * HOUR, None)
    assert [(group.name, group.replicas) for group in spec.groups] == [("worker", 4)]
    assert spec.groups[0].template == objects.template()


def test_a_deadline_is_resolved_from_the_creation():
    assert deadlinejob.parse(objects.job()).resolved_deadline(HOUR) is None
    assert deadlinejob.parse(objects.job(deadlineIn="2h")).resolved_deadline(HOUR) == 3 * HOUR
    fixed = deadlinejob.parse(objects.job(deadline="1970-01-01T09:00:00Z"))
    assert fixed.resolved_deadline(HOUR) == 9 * HOUR


def test_a_time_of_day_is_resolved_from_the_creation_and_says_what_clocks_did_to_it():
    created = times.parse("2026-03-28T12:00:00Z")
    spec = deadlinejob.parse(objects.job(deadlineAt={"time": "06:00", "zone": "Europe/Berlin"}))
    assert spec.resolved_deadline(created) == times.parse("2026-03-29T06:00:00+02:00")
    assert spec.deadline_note(created) == ""
    skipped = deadlinejob.parse(objects.job(deadlineAt={"time": "02:30", "zone": "Europe/Berlin"}))
    assert skipped.resolved_deadline(created) == times.parse("2026-03-29T03:00:00+02:00")
    assert "does not exist on 2026-03-29 in Europe/Berlin" in skipped.deadline_note(created)
    assert deadlinejob.parse(objects.job(deadlineIn="2h")).deadline_note(created) == ""


def test_a_job_that_refers_to_another_has_no_groups():
    spec = deadlinejob.parse(objects.reference())
    assert (spec.queue, spec.groups) == (None, ())
    assert (spec.job_ref.api_version, spec.job_ref.kind, spec.job_ref.name) == ("batch/v1", "Job", "train")


def test_a_queue_is_read_in_the_units_of_its_resources():
    quotas = [
        {"name": "cpu", "nominal": "2.5"},
        {"name": "memory", "nominal": "1Ki"},
        {"name": "nvidia.com/gpu", "nominal": 64},
    ]
    spec = gpuqueue.parse(objects.queue(pools=[objects.pool(resources=quotas)], bindTimeout="90s"))
    assert [resource.nominal for resource in spec.pools[0].resources] == [2_500, 1_024, 64]
    assert (spec.bind_timeout, spec.gang_ready_timeout) == (90_000, 1_800_000)
    assert spec.order is gpuqueue.Order.LST
    assert (spec.max_importance, spec.defaults) == (None, None)


def test_the_tolerations_of_a_pool_are_read_with_the_usual_operator():
    pool = objects.pool(tolerations=[{"key": "team", "value": "research"}])
    toleration = gpuqueue.parse(objects.queue(pools=[pool])).pools[0].tolerations[0]
    assert (toleration.key, toleration.operator, toleration.value, toleration.effect) == (
        "team",
        gpuqueue.Operator.EQUAL,
        "research",
        None,
    )


def test_fields_of_a_newer_version_are_ignored():
    job = objects.job(topology={"required": "rack"}, groups=[objects.group(slices=2)])
    assert deadlinejob.parse(job).queue == "research"
    assert gpuqueue.parse(objects.queue(cohort="all")).pools[0].name == "a100"


def test_the_names_that_python_uses_are_unknown_fields_too():
    assert deadlinejob.parse(objects.job(backoff_limit=7, deadline_in="1h")).backoff_limit == 3


def test_every_problem_is_reported_at_once_with_field_and_remedy():
    job = objects.job(
        queue="",
        deadlineIn="soon",
        deadlineAt={"time": "6 o'clock", "zone": "Europe/Atlantis"},
        importance=99,
        backoffLimit="3",
        successPolicy="Any",
        groups=[objects.group("Worker", replicas=0), objects.group(template={"spec": {}})],
    )
    assert problems(deadlinejob.parse, job) == [
        ("spec.queue", "'' is too short", "write at least 1 characters"),
        (
            "spec.deadlineIn",
            "'soon' is not a duration",
            'write a duration such as "90s", "1.5h" or "1d12h30m"',
        ),
        (
            "spec.deadlineAt.time",
            '"6 o\'clock" is not a time of day',
            'write a time of day such as "06:00" or "18:30:00"',
        ),
        (
            "spec.deadlineAt.zone",
            "'Europe/Atlantis' is not a time zone known here",
            'write an IANA name such as "Europe/Berlin" or "UTC"',
        ),
        ("spec.importance", "99 is too large", "write 10 or less"),
        ("spec.successPolicy", "'Any' is not one of the values allowed here", "write 'All' or 'Leader'"),
        ("spec.backoffLimit", "'3' is not a whole number", "write a whole number"),
        (
            "spec.groups[0].name",
            "'Worker' has the wrong form",
            "write something that matches ^[a-z]([-a-z0-9]*[a-z0-9])?$",
        ),
        ("spec.groups[0].replicas", "0 is too small", "write 1 or more"),
        (
            "spec.groups[1].template",
            "a pod template needs containers",
            "list at least one in spec.containers",
        ),
    ]


def test_a_rule_between_fields_is_a_problem_like_any_other():
    job = objects.job(deadline="2026-03-02T06:00:00Z", deadlineIn="1h")
    assert problems(deadlinejob.parse, job) == [
        ("spec", "more than one of deadline, deadlineIn and deadlineAt is set", "keep one of them")
    ]


def test_a_quota_that_only_its_resource_makes_wrong_is_a_problem():
    quota = {"name": "cpu", "nominal": "1.1P"}
    queue = objects.queue(pools=[objects.pool(resources=[quota])])
    assert problems(gpuqueue.parse, queue) == [
        ("spec.pools[0].resources[0].nominal", "'1.1P' is too large", "write at most 1E (1P of cpu)")
    ]


@pytest.mark.parametrize("obj", [None, [], "job", 7, {}, {"spec": None}, {"spec": []}, {"spec": "queue"}])
@pytest.mark.parametrize("parse", [deadlinejob.parse, gpuqueue.parse])
def test_what_is_no_object_at_all_is_a_problem_too(parse, obj):
    assert len(problems(parse, obj)) == 1


@pytest.mark.parametrize(
    "containers", [None, [], {}, "main", ["main"], [{"name": "main"}, None]], ids=lambda value: repr(value)
)
def test_containers_are_a_list_of_objects(containers):
    job = objects.job(groups=[objects.group(template={"spec": {"containers": containers}})])
    assert [field for field, _, _ in problems(deadlinejob.parse, job)] == ["spec.groups[0].template"]


def test_no_message_is_in_the_words_of_a_library():
    """Nor long, nor without a remedy, whatever the object is."""
    foreign = re.compile(r"pydantic|validat|input|instance|Model|dict|tuple|str\b|Traceback", re.IGNORECASE)
    for case in crd_rules.CASES:
        if case.accepted or case.old is not None:
            continue
        parse = deadlinejob.parse if case.kind == "DeadlineJob" else gpuqueue.parse
        for field, problem, remedy in problems(parse, case.new):
            assert field.startswith(("spec", "metadata"))
            assert not foreign.search(problem), (case.name, problem)
            assert remedy, case.name
            assert "cannot be used" not in problem, (case.name, problem)
            assert len(problem) + len(remedy) < 300


def test_a_hostile_text_is_shown_short_and_in_ascii():
    (field, problem, _), *_ = problems(deadlinejob.parse, objects.job(queue="\x1b[31m" + "ü" * 10_000))
    assert field == "spec.queue"
    assert problem.isascii()
    assert problem.isprintable()
    assert len(problem) < 100
