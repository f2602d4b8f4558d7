"""Creations of DeadlineJobs that the CRD accepts or refuses."""

from __future__ import annotations

from collections.abc import Iterable

from cases import crd_case, objects

_PAIR = [objects.group("leader", replicas=1), objects.group()]


def specs() -> Iterable[crd_case.Case]:
    longest = "99999d99999d99999d99999d99999d99"
    yield crd_case.Case("the least that a job needs", objects.job())
    yield crd_case.Case(
        "everything a job can say",
        objects.job(
            deadline="2026-03-02T06:00:00+09:00",
            estimatedDuration="1d12h30m",
            importance=-10,
            successPolicy="Leader",
            backoffLimit=0,
            value=1_000_000,
            checkpoint={"interval": "30m", "onSuspend": True, "restartOverhead": "2m"},
            preemptible=False,
            minRunTime="0s",
            maxRunTime="2d",
            onInfeasible="BestEffort",
            onMissed="Cancel",
            active=False,
            ttlSecondsAfterFinished=0,
            groups=_PAIR,
        ),
    )
    yield crd_case.Case("a deadline from creation", objects.job(deadlineIn="1.5h"))
    yield crd_case.Case("a deadline with a fraction", objects.job(deadline="2026-03-02T06:00:00.123456789Z"))
    yield crd_case.refused(
        "a deadline in small letters",
        objects.job(deadline="2026-03-02t06:00:00z"),
        "spec.deadline",
        "RFC 3339",
    )
    yield crd_case.refused(
        "a deadline in no time zone there is",
        objects.job(deadline="2026-03-02T06:00:00+25:00"),
        "spec.deadline",
        "RFC 3339",
    )
    yield crd_case.refused(
        "a deadline before computers",
        objects.job(deadline="1969-12-31T23:59:59Z"),
        "spec.deadline",
        "RFC 3339",
    )
    yield crd_case.refused(
        "a deadline at the end of time",
        objects.job(deadline="9999-12-31T23:59:59Z"),
        "spec.deadline",
        "RFC 3339",
    )
    yield crd_case.Case("an unknown field is pruned", objects.job(dedline="2026-03-02T06:00:00Z"))
    yield crd_case.Case("null is absent", objects.job(deadline=None, deadlineIn="2h", importance=None))
    yield crd_case.Case("the longest names", objects.job("n" * 30, groups=[objects.group("g" * 20)]))
    yield crd_case.Case(
        "eight groups", objects.job(groups=[objects.group(f"g{index}") for index in range(8)])
    )
    yield crd_case.Case(
        "replicas default to one", objects.job(groups=[objects.group(replicas=objects.ABSENT)])
    )
    yield crd_case.Case(
        "a template may hold anything",
        objects.job(groups=[objects.group(template=objects.template(futureField={"a": [1]}))]),
    )
    yield crd_case.refused(
        "an empty spec",
        objects.bare("DeadlineJob", {"name": "case", "namespace": "default"}, {}, None),
        "spec",
        "either groups or jobRef",
    )
    yield crd_case.refused(
        "no spec", {key: value for key, value in objects.job().items() if key != "spec"}, "spec", "Required"
    )
    yield crd_case.Case("the queue of its namespace", objects.job(queue=objects.ABSENT))
    yield crd_case.refused("an empty queue", objects.job(queue=""), "spec.queue", "at least 1 chars")
    yield crd_case.refused("a queue in capitals", objects.job(queue="Research"), "spec.queue", "should match")
    yield crd_case.refused(
        "a queue beyond ASCII", objects.job(queue="forschung-ü"), "spec.queue", "should match"
    )
    yield crd_case.refused("a queue that is too long", objects.job(queue="q" * 64), "spec.queue", "Too long")
    yield crd_case.refused(
        "a queue that is a number", objects.job(queue=7), "spec.queue", "must be of type string"
    )
    yield crd_case.refused(
        "both deadlines",
        objects.job(deadline="2026-03-02T06:00:00Z", deadlineIn="1h"),
        "spec",
        "keep one of them",
    )
    yield crd_case.refused(
        "a deadline that is a day", objects.job(deadline="2026-03-02"), "spec.deadline", "date-time"
    )
    yield crd_case.refused(
        "a deadline that does not exist",
        objects.job(deadline="2026-02-30T06:00:00Z"),
        "spec.deadline",
        "date-time",
    )
    yield crd_case.refused(
        "a deadline without a zone", objects.job(deadline="2026-03-02T06:00:00"), "spec.deadline", "date-time"
    )
    for text in (
        "",
        "0s",
        "0d0.0h",
        "90",
        "-1h",
        "+1h",
        "1h 30m",
        "1w",
        "1.h",
        ".5h",
        "100000d",
        "1Stunde",
        "١h",
    ):
        yield crd_case.refused(
            f"deadlineIn {text!r}", objects.job(deadlineIn=text), "spec.deadlineIn", "not a duration"
        )
    yield crd_case.refused(
        "deadlineIn with a line break", objects.job(deadlineIn="1h\n"), "spec.deadlineIn", "not a duration"
    )
    yield crd_case.refused(
        "an endless deadlineIn", objects.job(deadlineIn=longest + "d"), "spec.deadlineIn", "Too long"
    )
    yield crd_case.refused(
        "deadlineIn that is a number", objects.job(deadlineIn=3600), "spec.deadlineIn", "of type string"
    )
    yield crd_case.refused(
        "no estimate worth the name",
        objects.job(estimatedDuration="0h"),
        "spec.estimatedDuration",
        "more than zero",
    )
    yield crd_case.refused(
        "too important", objects.job(importance=11), "spec.importance", "less than or equal to 10"
    )
    yield crd_case.refused(
        "too unimportant", objects.job(importance=-11), "spec.importance", "greater than or equal to -10"
    )
    yield crd_case.refused(
        "half important", objects.job(importance=0.5), "spec.importance", "must be of type integer"
    )
    yield crd_case.refused(
        "an unknown successPolicy", objects.job(successPolicy="Any"), "spec.successPolicy", '"Leader"'
    )
    yield crd_case.refused(
        "a negative backoffLimit", objects.job(backoffLimit=-1), "spec.backoffLimit", "greater than or equal"
    )
    yield crd_case.refused(
        "a huge backoffLimit", objects.job(backoffLimit=101), "spec.backoffLimit", "less than or equal"
    )
    yield crd_case.refused("a name with a dot", objects.job("my.case"), "metadata.name", "part of host names")
    yield crd_case.refused(
        "a name that begins with a digit", objects.job("4nodes"), "metadata.name", "begin with a letter"
    )
    yield crd_case.refused(
        "names that leave no room",
        objects.job("n" * 31, groups=[objects.group("g" * 20)]),
        "spec.groups",
        "more than 50 characters",
    )


def groups() -> Iterable[crd_case.Case]:
    bare = {"template": {"spec": {}}}
    yield crd_case.refused("no groups", objects.job(groups=objects.ABSENT), "spec", "either groups or jobRef")
    yield crd_case.refused(
        "an empty list of groups", objects.job(groups=[]), "spec.groups", "at least 1 items"
    )
    yield crd_case.refused(
        "groups that are an object",
        objects.job(groups={"worker": objects.group()}),
        "spec.groups",
        "of type array",
    )
    yield crd_case.refused(
        "nine groups",
        objects.job(groups=[objects.group(f"g{index}") for index in range(9)]),
        "spec.groups",
        "Too many",
    )
    yield crd_case.refused(
        "two groups of one name",
        objects.job(groups=[objects.group(), objects.group()]),
        "spec.groups[1]",
        "Duplicate",
    )
    yield crd_case.refused(
        "a group without a name",
        objects.job(groups=[objects.group(name=objects.ABSENT)]),
        "spec.groups[0].name",
        "Required",
    )
    yield crd_case.refused(
        "a group in capitals",
        objects.job(groups=[objects.group("Worker")]),
        "spec.groups[0].name",
        "should match",
    )
    yield crd_case.refused(
        "a group that ends in a hyphen",
        objects.job(groups=[objects.group("w-")]),
        "spec.groups[0].name",
        "should match",
    )
    yield crd_case.refused(
        "a long group name", objects.job(groups=[objects.group("g" * 21)]), "spec.groups[0].name", "Too long"
    )
    yield crd_case.refused(
        "no replicas at all",
        objects.job(groups=[objects.group(replicas=0)]),
        "spec.groups[0].replicas",
        "greater than or equal to 1",
    )
    yield crd_case.refused(
        "too many replicas",
        objects.job(groups=[objects.group(replicas=4097)]),
        "spec.groups[0].replicas",
        "less than or equal to 4096",
    )
    yield crd_case.refused(
        "replicas as text",
        objects.job(groups=[objects.group(replicas="4")]),
        "spec.groups[0].replicas",
        "must be of type integer",
    )
    yield crd_case.refused(
        "no template",
        objects.job(groups=[objects.group(template=objects.ABSENT)]),
        "spec.groups[0].template",
        "Required",
    )
    yield crd_case.refused(
        "a template without a spec",
        objects.job(groups=[objects.group(template={})]),
        "spec.groups[0].template.spec",
        "Required",
    )
    yield crd_case.refused(
        "a template without containers",
        objects.job(groups=[objects.group(**bare)]),
        "spec.groups[0].template.spec.containers",
        "Required",
    )
    yield crd_case.refused(
        "a template with an empty list of containers",
        objects.job(groups=[objects.group(template=objects.template(containers=[]))]),
        "spec.groups[0].template.spec.containers",
        "at least 1 items",
    )
