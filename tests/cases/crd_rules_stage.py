"""Times of day, references, suspensions and the stages of a queue that the CRDs accept or refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cases import crd_case, objects


def deadlines() -> Iterable[crd_case.Case]:
    def at(**fields: Any) -> objects.Object:
        given = {"time": "06:00", "zone": "Europe/Berlin", **fields}
        return objects.job(deadlineAt={key: value for key, value in given.items() if value is not None})

    yield crd_case.Case("a deadline at a time of day", at())
    yield crd_case.Case("a deadline at a second", at(time="23:59:59"))
    for zone in ("UTC", "America/Argentina/ComodRivadavia", "America/Port-au-Prince", "Etc/GMT+5", "GMT0"):
        yield crd_case.Case(f"a deadline in {zone}", at(zone=zone))
    for time in ("", "6:00", "24:00", "06:60", "06.00", "06:00Z", "6 am", "06:00\n", "٠٦:٠٠", "06:0"):
        yield crd_case.refused(
            f"a deadline at {time!r}", at(time=time), "spec.deadlineAt.time", "not a time of day"
        )
    yield crd_case.refused(
        "a deadline at a long time", at(time="06:00:00.0"), "spec.deadlineAt.time", "Too long"
    )
    yield crd_case.refused(
        "a deadline at a number", at(time=600), "spec.deadlineAt.time", "must be of type string"
    )
    yield crd_case.refused("a deadline at no time", at(time=None), "spec.deadlineAt.time", "Required")
    yield crd_case.refused("a deadline nowhere", at(zone=None), "spec.deadlineAt.zone", "Required")
    for zone in ("", "Europe/", "/etc/passwd", "../UTC", "Europe/Berlin ", "Europe//Berlin", "Zürich"):
        yield crd_case.refused(
            f"a deadline in {zone!r}", at(zone=zone), "spec.deadlineAt.zone", "not the name of a time zone"
        )
    yield crd_case.refused("a deadline far away", at(zone="x" * 65), "spec.deadlineAt.zone", "Too long")
    yield crd_case.refused(
        "a deadline at a text", objects.job(deadlineAt="06:00"), "spec.deadlineAt", "must be of type object"
    )
    clock = {"time": "06:00", "zone": "UTC"}
    for name, more in {
        "deadline and deadlineAt": {"deadline": "2026-03-02T06:00:00Z"},
        "deadlineIn and deadlineAt": {"deadlineIn": "1h"},
        "all three deadlines": {"deadline": "2026-03-02T06:00:00Z", "deadlineIn": "1h"},
    }.items():
        yield crd_case.refused(name, objects.job(deadlineAt=clock, **more), "spec", "keep one of them")


def references() -> Iterable[crd_case.Case]:
    def to(**fields: Any) -> objects.Object:
        given = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", **fields}
        return objects.reference(jobRef={key: value for key, value in given.items() if value is not None})

    yield crd_case.Case("a reference to a Job", to())
    yield crd_case.Case("a reference with the name of an object", objects.reference("my.case-1"))
    yield crd_case.Case("a reference with a long name", objects.reference("n" * 63))
    yield crd_case.Case("a reference to a name with dots", to(name="train.v1"))
    yield crd_case.refused(
        "groups and a reference",
        objects.reference(groups=[objects.group()]),
        "spec",
        "either groups or jobRef",
    )
    for name, fields in {
        "a CronJob": {"kind": "CronJob"},
        "a Job of old": {"apiVersion": "batch/v1beta1"},
        "an MPIJob": {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob"},
        "nothing in particular": {"apiVersion": "", "kind": ""},
    }.items():
        yield crd_case.refused(f"a reference to {name}", to(**fields), "spec.jobRef", "only Jobs of batch/v1")
    for field in ("apiVersion", "kind", "name"):
        yield crd_case.refused(
            f"a reference without {field}", to(**{field: None}), f"spec.jobRef.{field}", "Required"
        )
    yield crd_case.refused("a reference to no name", to(name=""), "spec.jobRef.name", "at least 1 chars")
    yield crd_case.refused(
        "a reference across namespaces", to(name="other/train"), "spec.jobRef.name", "should match"
    )


def runs() -> Iterable[crd_case.Case]:
    def refused(name: str, field: str, message: str, **spec: Any) -> crd_case.Case:
        return crd_case.refused(name, objects.job(**spec), f"spec.{field}", message)

    yield crd_case.Case("an empty checkpoint", objects.job(checkpoint={}))
    yield crd_case.Case("part of a sweep", objects.job(sweep={"name": "lr-search", "need": 3}))
    for name, part in (
        ("a sweep without a need", {"name": "s"}),
        ("a sweep without a name", {"need": 1}),
    ):
        yield refused(name, f"sweep.{'need' if 'name' in part else 'name'}", "Required value", sweep=part)
    yield refused("a sweep that needs nothing", "sweep.need", "equal to 1", sweep={"name": "s", "need": 0})
    yield refused("a sweep in capitals", "sweep.name", "should match", sweep={"name": "S", "need": 1})
    yield from _topologies(refused)
    yield refused("worth nothing", "value", "greater than or equal to 1", value=0)
    yield refused("worth everything", "value", "less than or equal to 1000000", value=1_000_001)
    yield refused("worth a text", "value", "must be of type integer", value="10")
    for text in ("0s", "30", "-5m", ""):
        yield refused(
            f"a checkpoint every {text!r}",
            "checkpoint.interval",
            "not a duration of more than zero",
            checkpoint={"interval": text},
        )
    yield refused(
        "a restart of no length",
        "checkpoint.restartOverhead",
        "not a duration of more than zero",
        checkpoint={"restartOverhead": "0s"},
    )
    yield refused("a checkpoint that is a text", "checkpoint", "must be of type object", checkpoint="30m")
    yield refused(
        "a checkpoint on suspend, in words",
        "checkpoint.onSuspend",
        "must be of type boolean",
        checkpoint={"onSuspend": "true"},
    )
    yield refused("a run of no length", "maxRunTime", "not a duration of more than zero", maxRunTime="0m")
    yield refused("a shortest run without a unit", "minRunTime", "not a duration", minRunTime="15")
    for field in ("preemptible", "active"):
        yield refused(f"{field} in words", field, "must be of type boolean", **{field: "yes"})
        yield refused(f"{field} as a number", field, "must be of type boolean", **{field: 1})
    yield refused("an unknown onInfeasible", "onInfeasible", '"BestEffort"', onInfeasible="Hope")
    yield refused("an unknown onMissed", "onMissed", '"Continue"', onMissed="Ignore")
    yield refused(
        "a negative ttl",
        "ttlSecondsAfterFinished",
        "greater than or equal to 0",
        ttlSecondsAfterFinished=-1,
    )
    yield refused(
        "an endless ttl",
        "ttlSecondsAfterFinished",
        "less than or equal to 2147483647",
        ttlSecondsAfterFinished=2**31,
    )


def queues() -> Iterable[crd_case.Case]:
    def refused(name: str, field: str, message: str, **spec: Any) -> crd_case.Case:
        return crd_case.refused(name, objects.queue(**spec), f"spec.{field}", message)

    def demand(**fields: Any) -> objects.Object:
        return {"matchExpressions": [{"key": "team", **fields}]}

    yield crd_case.Case("a queue for all namespaces", objects.queue(namespaceSelector={}))
    yield crd_case.Case("a queue that goes on", objects.queue(stopPolicy="None", mode="Enforce"))
    wrong: dict[str, objects.Object] = {
        "In without values": {"operator": "In"},
        "NotIn with no values": {"operator": "NotIn", "values": []},
        "Exists with values": {"operator": "Exists", "values": ["a"]},
        "DoesNotExist with values": {"operator": "DoesNotExist", "values": ["a"]},
    }
    for name, fields in wrong.items():
        yield refused(
            name,
            "namespaceSelector.matchExpressions[0]",
            "add values, or remove them",
            namespaceSelector=demand(**fields),
        )
    yield refused(
        "an unknown comparison",
        "namespaceSelector.matchExpressions[0].operator",
        '"NotIn"',
        namespaceSelector=demand(operator="Like", values=["a"]),
    )
    yield refused(
        "seventeen labels of a namespace",
        "namespaceSelector.matchLabels",
        "Too many",
        namespaceSelector={"matchLabels": {f"label-{index}": "x" for index in range(17)}},
    )
    yield refused(
        "seventeen priority classes",
        "priorityClasses",
        "Too many",
        priorityClasses=[f"class-{index}" for index in range(17)],
    )
    yield refused("a nameless priority class", "priorityClasses[0]", "at least 1 chars", priorityClasses=[""])
    yield refused(
        "an unknown withinQueue", "preemption.withinQueue", '"NoHarm"', preemption={"withinQueue": "Always"}
    )
    yield refused(
        "a negative number of suspensions",
        "preemption.maxPerJobPerDay",
        "greater than or equal to 0",
        preemption={"maxPerJobPerDay": -1},
    )
    yield refused(
        "more suspensions than a status remembers",
        "preemption.maxPerJobPerDay",
        "less than or equal to 50",
        preemption={"maxPerJobPerDay": 51},
    )
    yield refused(
        "a protection without a unit",
        "preemption.minRunTime",
        "not a duration",
        preemption={"minRunTime": "15"},
    )
    yield refused(
        "shedding in words", "overload.shedding", "must be of type boolean", overload={"shedding": "no"}
    )
    yield refused(
        "spot in words", "pools[0].spot", "of type boolean", pools=[objects.pool("all", spot="yes")]
    )
    for share in ("5", "0.05", "-1%", "101%", "100.1%", "5 %", "%", "5%%", "1e1%", ".5%", "٣%", ""):
        for field in ("bestEffortShare", "promiseBudget"):
            yield refused(
                f"{field} of {share!r}", f"overload.{field}", "not a percentage", overload={field: share}
            )
    yield refused(
        "a share as a number", "overload.bestEffortShare", "of type string", overload={"bestEffortShare": 5}
    )
    day = {"name": "day", "schedule": "0 8 * * 1-5", "zone": "UTC", "duration": "12h"}
    for broken, field, words in (
        ({"schedule": "0 8 * *"}, "schedule", "this is not a schedule"),
        ({"schedule": "@daily"}, "schedule", "this is not a schedule"),
        ({"zone": "Europe Berlin"}, "zone", "not the name of a time zone"),
        ({"duration": "12"}, "duration", "not a duration"),
        ({"keepFree": "0.4"}, "keepFree", "not a percentage"),
        ({"name": "By Day"}, "name", "should match"),
    ):
        yield refused(f"a window with {broken}", f"windows[0].{field}", words, windows=[day | broken])
    yield refused("two windows of one name", "windows[1]", "Duplicate value", windows=[day, day])
    yield refused("an unknown stopPolicy", "stopPolicy", '"HoldAndDrain"', stopPolicy="Stop")
    yield refused("an unknown mode", "mode", '"Observe"', mode="Dry")
    yield refused(
        "a default checkpoint every now and then",
        "defaults.checkpoint.interval",
        "not a duration",
        defaults={"checkpoint": {"interval": "often"}},
    )


def _topologies(refused: Callable[..., crd_case.Case]) -> Iterable[crd_case.Case]:
    yield crd_case.Case("nothing asked of the interconnect", objects.job(topology={}))
    whole = {
        "required": "leafgroup",
        "sliceSize": 2,
        "sliceLevel": "nvl_1.a",
        "minBandwidth": "400Gb/s",
        "preferred": "nvl",
        "maxWait": "0s",
        "communicationShare": "15%",
    }
    pairs = [objects.group("leader", replicas=1), objects.group("worker", replicas=4)]
    yield crd_case.Case("all that can be asked", objects.job(topology=whole, groups=pairs))
    yield refused("a level of two words", "topology.required", "should match", topology={"required": "a b"})
    yield refused(
        "a level without a name", "topology.required", "at least 1 chars", topology={"required": ""}
    )
    yield refused("slices of nothing", "topology.sliceSize", "equal to 1", topology={"sliceSize": 0})
    yield refused("waiting for nothing", "topology", "none is preferred", topology={"maxWait": "1h"})
    yield refused(
        "waiting backwards",
        "topology.maxWait",
        "not a duration",
        topology={"preferred": "nvl", "maxWait": "-1h"},
    )
    yield refused(
        "more than all of a step",
        "topology.communicationShare",
        "not a percentage",
        topology={"communicationShare": "120%"},
    )
    yield refused("slices of no size", "topology", "without sliceSize", topology={"sliceLevel": "nvl"})
    yield refused(
        "slices that are not whole",
        "topology.sliceSize",
        "no multiple of sliceSize",
        topology={"sliceSize": 3},
        groups=pairs,
    )
    for text in ("40", "0GB/s", "1.5GB/s", "40 GB/s", "40gb/s"):
        yield refused(
            f"a bandwidth of {text!r}",
            "topology.minBandwidth",
            "not a bandwidth",
            topology={"minBandwidth": text},
        )
