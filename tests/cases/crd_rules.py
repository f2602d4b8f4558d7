"""What the CRDs accept and refuse: one table for the Python twins and for a real API server.

Every object is complete. To run a case on a server: create `old` if there is one, write its status through the
status subresource if it has one, then write `new`: as a creation, or over `old` with the resourceVersion it then
has, on the status subresource where the case says so. Names repeat, so delete the object afterwards. A refusal
is 422 and has, among its causes, one whose field and message contain the fragments of the case.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One write. Accepted when `message` is empty."""

    name: str
    new: Object
    field: str = ""
    message: str = ""
    old: Object | None = None
    subresource: str = ""

    @property
    def kind(self) -> str:
        return self.new["kind"]

    @property
    def accepted(self) -> bool:
        return not self.message


ABSENT = object()
"""As a value: the field is left out."""


def template(**pod: Any) -> Object:
    container = {"name": "main", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {"spec": _without_absent({"containers": [container], "restartPolicy": "Never", **pod})}


def group(name: str = "worker", **fields: Any) -> Object:
    return _without_absent({"name": name, "replicas": 4, "template": template(), **fields})


def job(name: str = "case", *, status: Object | None = None, **spec: Any) -> Object:
    full = _without_absent({"queue": "research", "groups": [group()], **spec})
    return _object("DeadlineJob", {"name": name, "namespace": "default"}, full, status)


def pool(name: str = "a100", **fields: Any) -> Object:
    quota = [{"name": "nvidia.com/gpu", "nominal": 64}]
    return _without_absent({"name": name, "resources": quota, **fields})


def queue(name: str = "case", *, status: Object | None = None, **spec: Any) -> Object:
    return _object("GPUQueue", {"name": name}, _without_absent({"pools": [pool()], **spec}), status)


def _object(kind: str, metadata: Object, spec: Object, status: Object | None) -> Object:
    made = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    return made if status is None else {**made, "status": status}


def _without_absent(fields: Object) -> Object:
    return {key: value for key, value in fields.items() if value is not ABSENT}


def toleration(**fields: Any) -> Object:
    return queue(pools=[pool(tolerations=[fields])])


def quota(nominal: Any, name: str = "nvidia.com/gpu") -> Object:
    return queue(pools=[pool(resources=[{"name": name, "nominal": nominal}])])


WAITING: Object = {"phase": "Pending", "attempt": 0}
ADMITTED: Object = {
    "phase": "Admitted",
    "attempt": 1,
    "admission": {
        "at": "2026-03-01T18:00:00Z",
        "queue": "research",
        "shapeHash": "0a1b",
        "groups": [
            {"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "ranks": "0-2,3"}]},
        ],
    },
}
FULL: Object = {
    **ADMITTED,
    "observedGeneration": 2,
    "phase": "Running",
    "conditions": [
        {
            "type": "Admitted",
            "status": "True",
            "reason": "Admitted",
            "message": "4 pods were placed on 1 node",
            "lastTransitionTime": "2026-03-01T18:00:00Z",
            "observedGeneration": 2,
        }
    ],
    "deadline": "2026-03-02T06:00:00.250Z",
    "gang": "4×8 nvidia.com/gpu",
    "restarts": 1,
    "disruptions": 1,
    "suspension": {"reason": "GangFailed", "since": "2026-03-01T19:00:00Z"},
    "backoff": {"until": "2026-03-01T19:01:00Z", "count": 1, "avoid": ["gpu-2"]},
    "late": False,
    "verdict": {
        "level": "AT_RISK",
        "reason": "the long estimate ends after the deadline",
        "earliestFeasibleDeadline": "2026-03-02T08:00:00Z",
        "forecastStart": {"earliest": "2026-03-01T18:00:00Z", "latest": "2026-03-01T19:00:00Z"},
        "forecastFinish": {"earliest": "2026-03-02T01:00:00Z", "latest": "2026-03-02T08:00:00Z"},
        "at": "2026-03-01T18:00:00Z",
    },
    "slack": "1h",
    "latestStartTime": "2026-03-01T20:00:00Z",
    "estimate": {"lo": "2h30m", "mid": "10h", "hi": "15h", "source": "User"},
    "pending": {"code": "NoRoom", "message": "needs 4 × 8 nvidia.com/gpu"},
    "runs": [{"start": "2026-03-01T18:00:00Z", "end": "2026-03-01T19:00:00Z", "reason": "Failed", "nodes": 1}],
    "startTime": "2026-03-01T18:01:00Z",
    "completionTime": "2026-03-02T01:00:00Z",
}
QUEUE_STATUS: Object = {
    "observedGeneration": 1,
    "pending": 2,
    "admitted": 1,
    "running": 3,
    "usage": [
        {"pool": "a100", "name": "nvidia.com/gpu", "used": "32", "nominal": "64"},
        {"pool": "h100", "name": "nvidia.com/gpu", "used": "0", "nominal": "64"},
    ],
    "met": 7,
    "missed": 0,
}

_LEADER = group("leader", replicas=1)
_PAIR = [_LEADER, group()]


def _refused(name: str, new: Object, field: str, message: str, **more: Any) -> Case:
    return Case(name, new, field, message, **more)


def _job_creations() -> Iterable[Case]:
    longest = "99999d99999d99999d99999d99999d99"
    yield Case("the least that a job needs", job())
    yield Case("everything a job can say", job(
        deadline="2026-03-02T06:00:00+09:00", estimatedDuration="1d12h30m", importance=-10,
        successPolicy="Leader", backoffLimit=0, groups=_PAIR,
    ))  # fmt: skip
    yield Case("a deadline from creation", job(deadlineIn="1.5h"))
    yield Case("a deadline with a fraction", job(deadline="2026-03-02T06:00:00.123456789Z"))
    yield Case("a deadline in small letters", job(deadline="2026-03-02t06:00:00z"))
    yield Case("an unknown field is pruned", job(dedline="2026-03-02T06:00:00Z"))
    yield Case("null is absent", job(deadline=None, deadlineIn="2h", importance=None))
    yield Case("the longest names", job("n" * 30, groups=[group("g" * 20)]))
    yield Case("eight groups", job(groups=[group(f"g{index}") for index in range(8)]))
    yield Case("replicas default to one", job(groups=[group(replicas=ABSENT)]))
    yield Case("a template may hold anything", job(groups=[group(template=template(futureField={"a": [1]}))]))
    yield _refused("no spec", _object("DeadlineJob", {"name": "case", "namespace": "default"}, {}, None),
                   "spec.groups", "Required")  # fmt: skip
    yield _refused("no queue", job(queue=ABSENT), "spec.queue", "Required")
    yield _refused("an empty queue", job(queue=""), "spec.queue", "at least 1 chars")
    yield _refused("a queue in capitals", job(queue="Research"), "spec.queue", "should match")
    yield _refused("a queue beyond ASCII", job(queue="forschung-ü"), "spec.queue", "should match")
    yield _refused("a queue that is too long", job(queue="q" * 64), "spec.queue", "Too long")
    yield _refused("a queue that is a number", job(queue=7), "spec.queue", "must be of type string")
    yield _refused("both deadlines", job(deadline="2026-03-02T06:00:00Z", deadlineIn="1h"), "spec",
                   "keep one of them")  # fmt: skip
    yield _refused("a deadline that is a day", job(deadline="2026-03-02"), "spec.deadline", "date-time")
    yield _refused("a deadline that does not exist", job(deadline="2026-02-30T06:00:00Z"), "spec.deadline",
                   "date-time")  # fmt: skip
    yield _refused("a deadline without a zone", job(deadline="2026-03-02T06:00:00"), "spec.deadline", "date-time")
    for text in ("", "0s", "0d0.0h", "90", "-1h", "+1h", "1h 30m", "1w", "1.h", ".5h", "100000d", "1Stunde", "١h"):
        yield _refused(f"deadlineIn {text!r}", job(deadlineIn=text), "spec.deadlineIn", "not a duration")
    yield _refused("deadlineIn with a line break", job(deadlineIn="1h\n"), "spec.deadlineIn", "not a duration")
    yield _refused("an endless deadlineIn", job(deadlineIn=longest + "d"), "spec.deadlineIn", "Too long")
    yield _refused("deadlineIn that is a number", job(deadlineIn=3600), "spec.deadlineIn", "of type string")
    yield _refused("no estimate worth the name", job(estimatedDuration="0h"), "spec.estimatedDuration",
                   "more than zero")  # fmt: skip
    yield _refused("too important", job(importance=11), "spec.importance", "less than or equal to 10")
    yield _refused("too unimportant", job(importance=-11), "spec.importance", "greater than or equal to -10")
    yield _refused("half important", job(importance=0.5), "spec.importance", "must be of type integer")
    yield _refused("an unknown successPolicy", job(successPolicy="Any"), "spec.successPolicy", '"Leader"')
    yield _refused("a negative backoffLimit", job(backoffLimit=-1), "spec.backoffLimit", "greater than or equal")
    yield _refused("a huge backoffLimit", job(backoffLimit=101), "spec.backoffLimit", "less than or equal")
    yield _refused("a name with a dot", job("my.case"), "metadata.name", "name of its Service")
    yield _refused("a name that begins with a digit", job("4nodes"), "metadata.name", "begin with a letter")
    yield _refused("names that leave no room", job("n" * 31, groups=[group("g" * 20)]), "spec.groups",
                   "more than 50 characters")  # fmt: skip


def _job_groups() -> Iterable[Case]:
    bare = {"template": {"spec": {}}}
    yield _refused("no groups", job(groups=ABSENT), "spec.groups", "Required")
    yield _refused("an empty list of groups", job(groups=[]), "spec.groups", "at least 1 items")
    yield _refused("groups that are an object", job(groups={"worker": group()}), "spec.groups", "of type array")
    yield _refused("nine groups", job(groups=[group(f"g{index}") for index in range(9)]), "spec.groups",
                   "Too many")  # fmt: skip
    yield _refused("two groups of one name", job(groups=[group(), group()]), "spec.groups[1]", "Duplicate")
    yield _refused("a group without a name", job(groups=[group(name=ABSENT)]), "spec.groups[0].name", "Required")
    yield _refused("a group in capitals", job(groups=[group("Worker")]), "spec.groups[0].name", "should match")
    yield _refused("a group that ends in a hyphen", job(groups=[group("w-")]), "spec.groups[0].name",
                   "should match")  # fmt: skip
    yield _refused("a long group name", job(groups=[group("g" * 21)]), "spec.groups[0].name", "Too long")
    yield _refused("no replicas at all", job(groups=[group(replicas=0)]), "spec.groups[0].replicas",
                   "greater than or equal to 1")  # fmt: skip
    yield _refused("too many replicas", job(groups=[group(replicas=4097)]), "spec.groups[0].replicas",
                   "less than or equal to 4096")  # fmt: skip
    yield _refused("replicas as text", job(groups=[group(replicas="4")]), "spec.groups[0].replicas",
                   "must be of type integer")  # fmt: skip
    yield _refused("no template", job(groups=[group(template=ABSENT)]), "spec.groups[0].template", "Required")
    yield _refused("a template without a spec", job(groups=[group(template={})]),
                   "spec.groups[0].template.spec", "Required")  # fmt: skip
    yield _refused("a template without containers", job(groups=[group(**bare)]),
                   "spec.groups[0].template.spec.containers", "Required")  # fmt: skip
    yield _refused("a template with an empty list of containers",
                   job(groups=[group(template=template(containers=[]))]),
                   "spec.groups[0].template.spec.containers", "at least 1 items")  # fmt: skip


def _job_changes() -> Iterable[Case]:
    edited = {"importance": 5, "deadlineIn": "3h", "estimatedDuration": "2h", "backoffLimit": 7}
    yield Case("deadline and estimate stay editable", job(**edited), old=job())
    yield Case("the same while admitted", job(status=ADMITTED, **edited), old=job(status=ADMITTED))
    yield Case("another form of deadline", job(deadline="2026-03-02T06:00:00Z"), old=job(deadlineIn="1h"))
    yield Case("another queue while it waits", job(queue="other", status=WAITING), old=job(status=WAITING))
    yield _refused("another queue while admitted", job(queue="other", status=ADMITTED), "spec.queue",
                   "frozen while the job is admitted", old=job(status=ADMITTED))  # fmt: skip
    yield Case("replicas by default and in words", job(groups=[group(replicas=ABSENT)]),
               old=job(groups=[group(replicas=1)]))  # fmt: skip
    changes: dict[str, list[Object]] = {
        "more replicas": [_LEADER, group(replicas=5)],
        "one group less": [group()],
        "one group more": [*_PAIR, group("extra")],
        "another name": [_LEADER, group("helper")],
        "another order": [group(), _LEADER],
    }
    for name, groups in changes.items():
        yield _refused(name, job(groups=groups), "spec.groups", "never change", old=job(groups=_PAIR))
    pods: dict[str, Object] = {
        "another image": {"containers": [{"name": "main", "image": "trainer:2"}]},
        "a field more": {"priorityClassName": "high"},
        "a field less": {"restartPolicy": ABSENT},
        "one field for another": {"restartPolicy": ABSENT, "hostNetwork": True},
    }
    for name, pod in pods.items():
        yield _refused(f"{name} in a template", job(groups=[group(template=template(**pod))]),
                       "spec.groups[0].template", "templates never change", old=job())  # fmt: skip
    labelled = {"metadata": {"labels": {"team": "a"}}, **template()}
    yield _refused("labels in a template", job(groups=[group(template=labelled)]), "spec.groups[0].template",
                   "templates never change", old=job())  # fmt: skip


def _statuses() -> Iterable[Case]:
    def status(name: str, content: Object, field: str = "", message: str = "") -> Case:
        return Case(name, job(status=content), field, message, old=job(), subresource="status")

    yield status("a full status", FULL)
    yield status("an unknown phase", {"phase": "Claiming"}, "status.phase", '"Suspending"')
    yield status("a negative attempt", {"attempt": -1}, "status.attempt", "greater than or equal to 0")
    yield status("a condition without a reason", {"conditions": [{"type": "Admitted", "status": "True"}]},
                 "status.conditions[0].reason", "Required")  # fmt: skip
    twice = [FULL["conditions"][0], {**FULL["conditions"][0], "status": "False"}]
    yield status("a condition twice", {"conditions": twice}, "status.conditions[1]", "Duplicate")
    yield status("eleven runs", {"runs": FULL["runs"] * 11}, "status.runs", "Too many")
    yield Case("the spec is not looked at on the status subresource",
               job(queue="other", status={**ADMITTED, "attempt": 2}),
               old=job(status=ADMITTED), subresource="status")  # fmt: skip
    yield Case("a queue's status", queue(status=QUEUE_STATUS), old=queue(), subresource="status")
    usage = QUEUE_STATUS["usage"][:1] * 2
    yield Case("a quota twice", queue(status={"usage": usage}), "status.usage[1]", "Duplicate",
               old=queue(), subresource="status")  # fmt: skip


def _queues() -> Iterable[Case]:
    yield Case("the least that a queue needs", queue(pools=[pool(resources=ABSENT)]))
    yield Case("everything a queue can say", queue(
        pools=[
            pool(nodeSelector={"gpu": "a100"}, tolerations=[
                {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "team", "value": "research"},
                {"operator": "Exists"},
            ]),
            pool("cpu", resources=[{"name": "cpu", "nominal": "500m"}, {"name": "memory", "nominal": "2Ti"}]),
        ],
        order="edf", defaults={"estimatedDuration": "8h"}, maxImportance=10, bindTimeout="90s",
        gangReadyTimeout="1h",
    ))  # fmt: skip
    for nominal in (0, "0", "1e3", "0.5", ".5", "5.", "+5", "100m", "1E"):
        yield Case(f"a quota of {nominal!r}", quota(nominal, "cpu" if nominal != "1E" else "memory"))
    for nominal in (-1, "-1", "-0.5Gi", "", "m", "Ki", "1.2.3", "ten", "1 Gi", "1KB", "2E", "9Ei", "1e19", "٣"):
        yield _refused(f"a quota of {nominal!r}", quota(nominal), "resources[0].nominal", "not a quantity")
    yield _refused("a quota of half a piece", quota(0.5), "resources[0].nominal", "of type integer or string")
    yield _refused("an endless quota", quota("1" * 33), "resources[0].nominal", "Too long")
    yield _refused("no quota", queue(pools=[pool(resources=[{"name": "cpu"}])]), "resources[0].nominal",
                   "Required")  # fmt: skip
    yield _refused("a resource twice", queue(pools=[pool(resources=[{"name": "cpu", "nominal": 1}] * 2)]),
                   "spec.pools[0].resources[1]", "Duplicate")  # fmt: skip
    yield _refused("a resource with a blank", quota(1, "nvidia gpu"), "resources[0].name", "should match")
    yield _refused("no pools", queue(pools=ABSENT), "spec.pools", "Required")
    yield _refused("an empty list of pools", queue(pools=[]), "spec.pools", "at least 1 items")
    yield _refused("a pool twice", queue(pools=[pool(), pool()]), "spec.pools[1]", "Duplicate")
    yield _refused("seventeen pools", queue(pools=[pool(f"p{index}") for index in range(17)]), "spec.pools",
                   "Too many")  # fmt: skip
    labels = {f"label-{index}": "x" for index in range(17)}
    yield _refused("seventeen labels", queue(pools=[pool(nodeSelector=labels)]), "nodeSelector", "Too many")
    yield _refused("a label that is a number", queue(pools=[pool(nodeSelector={"gpu": 1})]),
                   "spec.pools[0].nodeSelector.gpu", "must be of type string")  # fmt: skip
    yield _refused("an unknown order", queue(order="lifo"), "spec.order", '"fifo"')
    yield _refused("an impatient queue", queue(bindTimeout="0s"), "spec.bindTimeout", "more than zero")
    yield _refused("a timeout without a unit", queue(gangReadyTimeout="30"), "spec.gangReadyTimeout",
                   "not a duration")  # fmt: skip
    yield _refused("a default without a unit", queue(defaults={"estimatedDuration": "8"}),
                   "spec.defaults.estimatedDuration", "not a duration")  # fmt: skip
    yield _refused("no key to equal", toleration(value="x"), "tolerations[0]", "set key")
    yield _refused("an empty key to equal", toleration(key="", operator="Equal"), "tolerations[0]", "set key")
    yield _refused("a value that merely exists", toleration(key="gpu", operator="Exists", value="x"),
                   "tolerations[0]", "remove value")  # fmt: skip
    yield _refused("an unknown operator", toleration(key="gpu", operator="In"), "operator", '"Exists"')
    yield _refused("an unknown effect", toleration(key="gpu", effect="NoWay"), "effect", '"NoExecute"')
    yield _refused("a queue's name that is too long", queue("q" * 64), "metadata.name", "more than 63")
    yield Case("a queue's pools may change", queue(pools=[pool("h100")]), old=queue())


CASES: tuple[Case, ...] = tuple(
    copy.deepcopy(case)
    for cases in (_job_creations, _job_groups, _job_changes, _statuses, _queues)
    for case in cases()
)
