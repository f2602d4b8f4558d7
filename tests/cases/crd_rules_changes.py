"""Changes of DeadlineJobs, and statuses of both kinds, that the CRDs accept or refuse."""

from __future__ import annotations

from collections.abc import Iterable

from cases import crd_case, objects

_LEADER = objects.group("leader", replicas=1)
_PAIR = [_LEADER, objects.group()]


def specs() -> Iterable[crd_case.Case]:
    edited = {"importance": 5, "deadlineIn": "3h", "estimatedDuration": "2h", "backoffLimit": 7}
    yield crd_case.Case("deadline and estimate stay editable", objects.job(**edited), old=objects.job())
    yield crd_case.Case(
        "the same while admitted",
        objects.job(status=objects.ADMITTED, **edited),
        old=objects.job(status=objects.ADMITTED),
    )
    yield crd_case.Case(
        "another form of deadline",
        objects.job(deadline="2026-03-02T06:00:00Z"),
        old=objects.job(deadlineIn="1h"),
    )
    yield crd_case.Case(
        "another queue while it waits",
        objects.job(queue="other", status=objects.WAITING),
        old=objects.job(status=objects.WAITING),
    )
    yield crd_case.refused(
        "another queue while admitted",
        objects.job(queue="other", status=objects.ADMITTED),
        "spec.queue",
        "frozen while the job is admitted",
        old=objects.job(status=objects.ADMITTED),
    )
    yield crd_case.refused(
        "another queue while claiming",
        objects.job(queue="other", status=objects.CLAIMING),
        "spec.queue",
        "or claims room",
        old=objects.job(status=objects.CLAIMING),
    )
    yield crd_case.refused(
        "no queue any more while admitted",
        objects.job(queue=objects.ABSENT, status=objects.ADMITTED),
        "spec.queue",
        "frozen while the job is admitted",
        old=objects.job(status=objects.ADMITTED),
    )
    yield crd_case.refused(
        "a queue at last while admitted",
        objects.job(status=objects.ADMITTED),
        "spec.queue",
        "frozen while the job is admitted",
        old=objects.job(queue=objects.ABSENT, status=objects.ADMITTED),
    )
    yield crd_case.Case(
        "still no queue while admitted",
        objects.job(queue=objects.ABSENT, importance=1, status=objects.ADMITTED),
        old=objects.job(queue=objects.ABSENT, status=objects.ADMITTED),
    )
    yield crd_case.Case(
        "a pause while admitted",
        objects.job(active=False, status=objects.ADMITTED),
        old=objects.job(status=objects.ADMITTED),
    )
    yield from references()
    yield crd_case.Case(
        "replicas by default and in words",
        objects.job(groups=[objects.group(replicas=objects.ABSENT)]),
        old=objects.job(groups=[objects.group(replicas=1)]),
    )
    changes: dict[str, list[objects.Object]] = {
        "more replicas": [_LEADER, objects.group(replicas=5)],
        "one group less": [objects.group()],
        "one group more": [*_PAIR, objects.group("extra")],
        "another name": [_LEADER, objects.group("helper")],
        "another order": [objects.group(), _LEADER],
    }
    for name, groups in changes.items():
        yield crd_case.refused(
            name, objects.job(groups=groups), "spec.groups", "never change", old=objects.job(groups=_PAIR)
        )
    pods: dict[str, objects.Object] = {
        "another image": {"containers": [{"name": "main", "image": "trainer:2"}]},
        "a field more": {"priorityClassName": "high"},
        "a field less": {"restartPolicy": objects.ABSENT},
        "one field for another": {"restartPolicy": objects.ABSENT, "hostNetwork": True},
        "one field for an unknown one": {"restartPolicy": objects.ABSENT, "futureField": True},
    }
    for name, pod in pods.items():
        yield crd_case.refused(
            f"{name} in a template",
            objects.job(groups=[objects.group(template=objects.template(**pod))]),
            "spec.groups[0].template",
            "templates never change",
            old=objects.job(),
        )
    labelled = {"metadata": {"labels": {"team": "a"}}, **objects.template()}
    yield crd_case.refused(
        "labels in a template",
        objects.job(groups=[objects.group(template=labelled)]),
        "spec.groups[0].template",
        "templates never change",
        old=objects.job(),
    )


def references() -> Iterable[crd_case.Case]:
    def change(name: str, new: objects.Object, old: objects.Object) -> crd_case.Case:
        return crd_case.refused(name, new, "spec.jobRef", "never changes", old=old)

    other = {"apiVersion": "batch/v1", "kind": "Job", "name": "other"}
    yield change("another reference", objects.reference(jobRef=other), objects.reference())
    yield change("a reference instead of groups", objects.reference(), objects.job())
    yield change("groups instead of a reference", objects.job(), objects.reference())
    yield crd_case.Case(
        "a deadline for a reference", objects.reference(deadlineIn="1h"), old=objects.reference()
    )


def statuses() -> Iterable[crd_case.Case]:
    def status(name: str, content: objects.Object, field: str = "", message: str = "") -> crd_case.Case:
        return crd_case.Case(
            name, objects.job(status=content), field, message, old=objects.job(), subresource="status"
        )

    yield status("a full status", objects.FULL)
    yield status("an unknown phase", {"phase": "Dreaming"}, "status.phase", '"Suspending"')
    yield status("a claim", objects.CLAIMING)
    claim = objects.CLAIMING["claim"]
    victims = [claim["victims"][0]] * 2
    yield status(
        "a victim twice", {"claim": {**claim, "victims": victims}}, "status.claim.victims[1]", "Duplicate"
    )
    nowhere = [{"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "count": 0}]}]
    yield status(
        "a claim of nothing",
        {"claim": {**claim, "groups": nowhere}},
        "status.claim.groups[0].nodes[0].count",
        "greater than or equal to 1",
    )
    yield status(
        "fifty-one that displaced it",
        {"displacedBy": [f"uid-{number}" for number in range(51)]},
        "status.displacedBy",
        "Too many",
    )
    yield status(
        "fifty-one suspensions for others",
        {"preemptedAt": ["2026-03-01T17:00:00Z"] * 51},
        "status.preemptedAt",
        "Too many",
    )
    yield status("a negative attempt", {"attempt": -1}, "status.attempt", "greater than or equal to 0")
    yield status(
        "a condition without a reason",
        {"conditions": [{"type": "Admitted", "status": "True"}]},
        "status.conditions[0].reason",
        "Required",
    )
    twice = [objects.FULL["conditions"][0], {**objects.FULL["conditions"][0], "status": "False"}]
    yield status("a condition twice", {"conditions": twice}, "status.conditions[1]", "Duplicate")
    yield status("eleven runs", {"runs": objects.FULL["runs"] * 11}, "status.runs", "Too many")
    yield crd_case.Case(
        "the spec is not looked at on the status subresource",
        objects.job(queue="other", status={**objects.ADMITTED, "attempt": 2}),
        old=objects.job(status=objects.ADMITTED),
        subresource="status",
    )
    yield crd_case.Case(
        "a queue's status",
        objects.queue(status=objects.QUEUE_STATUS),
        old=objects.queue(),
        subresource="status",
    )
    usage = objects.QUEUE_STATUS["usage"][:1] * 2
    yield crd_case.Case(
        "a quota twice",
        objects.queue(status={"usage": usage}),
        "status.usage[1]",
        "Duplicate",
        old=objects.queue(),
        subresource="status",
    )
