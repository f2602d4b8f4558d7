"""What people get wrong in a DeadlineJob, and what they must be told.

Two tables. What the API server refuses comes back to who wrote it, at once, naming field and remedy. What
only the cluster can judge is taken, and its status says in words what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manifests import GPU, group, pool

Object = dict[str, Any]

RTL = "\u202egnp.exe"
EMOJI = "train-\U0001f680"
HUGE = 10**30


def job(**spec: Any) -> Object:
    """A spec that is all right but for what is given; None takes a field away."""
    whole = {"queue": "research", "groups": [group(run_for="10m")], **spec}
    return {key: value for key, value in whole.items() if value is not None}


def refer(kind: str = "Job", api_version: str = "batch/v1", name: str = "train", **spec: Any) -> Object:
    return job(groups=None, jobRef={"apiVersion": api_version, "kind": kind, "name": name}, **spec)


def pod(spec: Object, *, replicas: int = 1, **more: Any) -> Object:
    return job(groups=[group(replicas=replicas, pod=spec)], **more)


def container(**fields: Any) -> Object:
    return {"containers": [{"name": "main", "image": "trainer:1", **fields}]}


@dataclass(frozen=True, slots=True)
class Refused:
    """A DeadlineJob that no server takes; `says` are parts of the refusal, the field first."""

    spec: Object
    says: tuple[str, ...]
    name: str = "bad"


REFUSED: Mapping[str, Refused] = {
    # What is queued
    "neither groups nor jobRef": Refused(
        job(groups=None), ("spec", "either groups or jobRef", "write groups")
    ),
    "both groups and jobRef": Refused(
        job(jobRef={"apiVersion": "batch/v1", "kind": "Job", "name": "x"}),
        ("spec", "either groups or jobRef"),
    ),
    "no groups": Refused(job(groups=[]), ("spec.groups",)),
    "null for groups": Refused({"queue": "research", "groups": None}, ("spec", "either groups or jobRef")),
    "zero replicas": Refused(job(groups=[group(replicas=0)]), ("spec.groups[0].replicas", "1")),
    "ten thousand replicas": Refused(
        job(groups=[group(replicas=10_000)]), ("spec.groups[0].replicas", "4096")
    ),
    "negative replicas": Refused(job(groups=[group(replicas=-3)]), ("spec.groups[0].replicas",)),
    "replicas beyond all bounds": Refused(job(groups=[group(replicas=HUGE)]), ("spec.groups[0].replicas",)),
    "replicas as a text": Refused(job(groups=[group() | {"replicas": "2"}]), ("spec.groups[0].replicas",)),
    "two groups of one name": Refused(job(groups=[group(), group()]), ("spec.groups", "worker")),
    "nine groups": Refused(job(groups=[group(f"g{number}") for number in range(9)]), ("spec.groups", "8")),
    "a group name in capitals": Refused(job(groups=[group("Worker")]), ("spec.groups[0].name",)),
    "a group name that begins with a digit": Refused(job(groups=[group("1st")]), ("spec.groups[0].name",)),
    "a group name that reads backwards": Refused(job(groups=[group(RTL)]), ("spec.groups[0].name",)),
    "an empty group name": Refused(job(groups=[group("")]), ("spec.groups[0].name",)),
    "no template": Refused(job(groups=[{"name": "worker"}]), ("spec.groups[0].template",)),
    "a template without containers": Refused(
        job(groups=[{"name": "worker", "template": {"spec": {}}}]), ("spec.groups[0].template", "containers")
    ),
    "a name of 63 characters": Refused(job(), ("spec.groups", "50 characters", "shorten"), name="a" * 63),
    "a name of 253 characters": Refused(job(), ("spec.groups", "50 characters", "shorten"), name="a" * 253),
    "a name that begins with a digit": Refused(job(), ("metadata.name", "begin with a letter"), name="4ever"),
    "a name that begins with a dot": Refused(job(), ("metadata.name",), name=".hidden"),
    "a name with an emoji": Refused(job(), ("metadata.name",), name=EMOJI),
    "a name that reads backwards": Refused(job(), ("metadata.name",), name=RTL),
    # What it refers to
    "a reference to a Pod": Refused(
        refer("Pod", "v1"), ("spec.jobRef", "only Jobs of batch/v1", "apiVersion and kind")
    ),
    "a reference to a CronJob": Refused(refer("CronJob"), ("spec.jobRef", "only Jobs of batch/v1")),
    "a reference to an MPIJob": Refused(
        refer("MPIJob", "kubeflow.org/v1"), ("spec.jobRef", "only Jobs of batch/v1")
    ),
    "a reference to a PyTorchJob of another version": Refused(
        refer("PyTorchJob", "kubeflow.org/v2"), ("spec.jobRef", "kubeflow.org/v1")
    ),
    "a reference without a name": Refused(refer(name=""), ("spec.jobRef.name",)),
    "a reference to another namespace": Refused(refer(name="other/train"), ("spec.jobRef.name",)),
    "a reference that begins with a dot": Refused(refer(name=".train"), ("spec.jobRef.name",)),
    # Where
    "an empty queue": Refused(job(queue=""), ("spec.queue",)),
    "a queue in capitals": Refused(job(queue="Research"), ("spec.queue",)),
    "a queue that begins with a dot": Refused(job(queue=".research"), ("spec.queue",)),
    "a queue name of 64 characters": Refused(job(queue="q" * 64), ("spec.queue", "63")),
    "a queue name with an emoji": Refused(job(queue=EMOJI), ("spec.queue",)),
    # When
    "two deadlines": Refused(
        job(deadline="2030-01-01T00:00:00Z", deadlineIn="1h"), ("spec", "deadlineAt", "keep one")
    ),
    "a deadline in words": Refused(job(deadline="tomorrow"), ("spec.deadline", "tomorrow")),
    "a deadline without time of day": Refused(job(deadline="2030-01-01"), ("spec.deadline",)),
    "an empty deadline": Refused(job(deadline=""), ("spec.deadline",)),
    "a deadline in the year 10000": Refused(job(deadline="10000-01-01T00:00:00Z"), ("spec.deadline",)),
    "a deadline on the last day of 9999": Refused(
        job(deadline="9999-12-31T00:00:00Z"),
        ("spec.deadline", "before 9999-01-01", "RFC 3339", "for no deadline"),
    ),
    "a deadline as a number": Refused(job(deadline=1_900_000_000), ("spec.deadline",)),
    "a time of day that is none": Refused(
        job(deadlineAt={"time": "25:00", "zone": "UTC"}), ("spec.deadlineAt.time", '"06:00"')
    ),
    "a time of day without a zone": Refused(job(deadlineAt={"time": "06:00"}), ("spec.deadlineAt.zone",)),
    "a zone that is no name": Refused(
        job(deadlineAt={"time": "06:00", "zone": "Europe/ Berlin"}),
        ("spec.deadlineAt.zone", '"Europe/Berlin"'),
    ),
    "a duration in words": Refused(job(deadlineIn="soon"), ("spec.deadlineIn", '"90s"')),
    "a duration in years": Refused(job(deadlineIn="1y"), ("spec.deadlineIn", '"90s"')),
    "a negative duration": Refused(job(estimatedDuration="-1h"), ("spec.estimatedDuration", '"90s"')),
    "a duration of zero": Refused(job(deadlineIn="0s"), ("spec.deadlineIn", "more than zero")),
    "an empty duration": Refused(job(maxRunTime=""), ("spec.maxRunTime", '"90s"')),
    "a duration without end": Refused(job(deadlineIn="9" * 40 + "d"), ("spec.deadlineIn",)),
    "a duration as a number": Refused(job(estimatedDuration=3600), ("spec.estimatedDuration",)),
    "a checkpoint that is no object": Refused(job(checkpoint="10m"), ("spec.checkpoint",)),
    "a checkpoint interval in words": Refused(
        job(checkpoint={"interval": "often"}), ("spec.checkpoint.interval", '"90s"')
    ),
    # How much it matters
    "importance above all": Refused(job(importance=11), ("spec.importance", "10")),
    "importance beyond all bounds": Refused(job(importance=HUGE), ("spec.importance",)),
    "half an importance": Refused(job(importance=1.5), ("spec.importance",)),
    "no value": Refused(job(value=0), ("spec.value", "1")),
    "a negative value": Refused(job(value=-5), ("spec.value", "1")),
    "a value beyond all bounds": Refused(job(value=HUGE), ("spec.value",)),
    # The rest
    "a negative backoffLimit": Refused(job(backoffLimit=-1), ("spec.backoffLimit", "0")),
    "a negative TTL": Refused(job(ttlSecondsAfterFinished=-1), ("spec.ttlSecondsAfterFinished", "0")),
    "a word that is not a choice": Refused(job(onMissed="cancel"), ("spec.onMissed", "Cancel")),
    "a text for yes": Refused(job(active="yes"), ("spec.active",)),
    "a queue that is a list": Refused(job(queue=["research"]), ("spec.queue",)),
}


@dataclass(frozen=True, slots=True)
class Told:
    """A DeadlineJob that is taken, and what its status has to say.

    `code` is that of `pending` while it waits, or the reason why it ended; `says` are parts of the sentence.
    `smuggled` is put into its spec behind the back of the schema, as another version of it may let through.
    """

    spec: Object
    phase: str
    code: str
    says: tuple[str, ...]
    queue: Object = field(default_factory=dict)
    smuggled: Object | None = None


def _template(**fields: Any) -> Object:
    return {"spec": {**container(), **fields}}


_TERM = {"labelSelector": {"matchLabels": {"app": "me"}}, "topologyKey": "kubernetes.io/hostname"}

UNSUPPORTED: Mapping[str, tuple[Object, str]] = {
    "spread over zones": (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ]
        },
        "topologySpreadConstraints",
    ),
    "affinity to pods": (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}},
        "affinity.podAffinity",
    ),
    "anti-affinity to its own pods": (
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}},
        "affinity.podAntiAffinity",
    ),
    "an empty node selector term": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
                }
            }
        },
        "affinity.nodeAffinity",
    ),
    "a resource claim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]},
        "resourceClaims",
    ),
    "a host network": ({"hostNetwork": True}, "hostNetwork"),
    "a host port": (
        container(ports=[{"containerPort": 80, "hostPort": 80}]),
        "containers[].ports[].hostPort",
    ),
}
"""Constraints of pods that the placement does not model: the pod spec, and the field that must be named."""

PAST = "2001-01-01T00:00:00Z"

TOLD: Mapping[str, Told] = {
    "a queue that does not exist": Told(
        job(queue="nowhere"), "Pending", "QueueNotFound", ('"nowhere"', "spec.queue")
    ),
    "no queue and no default": Told(
        job(queue=None), "Pending", "QueueNotSet", ("spec.queue", "lstqueue.dev/default-queue")
    ),
    "a namespace that the queue does not take": Told(
        job(),
        "Pending",
        "NamespaceNotSelected",
        ("namespace default", "spec.namespaceSelector"),
        queue={"namespaceSelector": {"matchLabels": {"team": "vision"}}},
    ),
    "a past deadline that the job should not outlive": Told(
        job(deadline=PAST, onMissed="Cancel"), "Failed", "DeadlineMissed", ("2001-01-01",)
    ),
    "a past deadline that should reject": Told(
        job(deadline=PAST, estimatedDuration="10m", onInfeasible="Reject"),
        "Rejected",
        "Infeasible",
        ("deadline",),
    ),
    "a deadline too near": Told(
        job(deadlineIn="1m", estimatedDuration="10h", onInfeasible="Reject"),
        "Rejected",
        "Infeasible",
        ("deadline",),
    ),
    "more importance than the queue allows": Told(
        job(importance=9),
        "Pending",
        "ImportanceTooHigh",
        ("Importance 9", "lower it"),
        queue={"maxImportance": 3},
    ),
    "a gang for which there are too few nodes": Told(
        job(groups=[group("worker", 5)]),
        "Pending",
        "NoMatchingNodes",
        ("5 pods", "3 matching nodes", "ask for less"),
        queue={"pools": [pool("all", gpus=1000)]},
    ),
    "a pod for which there is no node": Told(
        job(groups=[group(gpus=9)]), "Pending", "NoMatchingNodes", ("nvidia.com/gpu",)
    ),
    "more than the quota of the queue": Told(
        job(groups=[group("worker", 3, gpus=8)]), "Pending", "QuotaTooSmall", ("24", "16", "nominal")
    ),
    "a resource that the queue does not list": Told(
        pod(container(resources={"limits": {"amd.com/gpu": 1}})),
        "Pending",
        "ResourceNotInQueue",
        ("amd.com/gpu",),
    ),
    "a selector that no node has": Told(
        pod({"nodeSelector": {"zone": "moon"}}),
        "Pending",
        "NoMatchingNodes",
        ("worker", "node selector", "correct them"),
    ),
    "a class whose pods preempt": Told(
        pod({"priorityClassName": "pushy"}), "Rejected", "UnsupportedConstraint", ("pushy", "'lstqueue'")
    ),
    "a class that is not there": Told(
        pod({"priorityClassName": "missing"}), "Pending", "Forbidden", ("PriorityClass", "missing")
    ),
    "a container without a name": Told(
        pod({"containers": [{"image": "x"}]}),
        "Rejected",
        "InvalidTemplate",
        ("groups[worker]", "containers[0].name"),
    ),
    "more memory than can be reckoned with": Told(
        pod(container(resources={"requests": {"memory": "2E"}})), "Rejected", "InvalidTemplate", ("2E", "1E")
    ),
    "a negative amount": Told(
        pod(container(resources={"requests": {"cpu": "-1"}})), "Rejected", "InvalidTemplate", ("cpu", "-1")
    ),
    "an amount that is none": Told(
        pod(container(resources={"limits": {GPU: "eight"}})), "Rejected", "InvalidTemplate", (GPU, "eight")
    ),
    **{
        f"{name} of a form that no pod has": Told(
            job(groups=[{"name": "worker", "template": template}]), "Rejected", "InvalidTemplate", (where,)
        )
        for name, template, where in (
            ("metadata", {"metadata": "x", **_template()}, "metadata is not an object"),
            ("labels", {"metadata": {"labels": ["a"]}, **_template()}, "metadata.labels"),
            ("a label", {"metadata": {"labels": {"a": {}}}, **_template()}, "metadata.labels"),
            (
                "a period",
                _template(terminationGracePeriodSeconds={"a": "b"}),
                "terminationGracePeriodSeconds",
            ),
            ("a long period", _template(terminationGracePeriodSeconds=HUGE), "terminationGracePeriodSeconds"),
            ("a selector", _template(nodeSelector=["gpu"]), "nodeSelector"),
            ("an overhead", _template(overhead="much"), "overhead"),
            ("a toleration", _template(tolerations=[None]), "tolerations"),
            ("gates", _template(schedulingGates="open"), "schedulingGates"),
        )
    },
    "null for a container": Told(
        pod({"containers": [None]}),
        "Pending",
        "InvalidSpec",
        ("spec.groups[0].template", "containers", "list at least one"),
    ),
    "a node of its own choice": Told(
        pod({"nodeName": "node-0000"}), "Rejected", "UnsupportedConstraint", ("nodeName", "remove it")
    ),
    "a zone that nobody knows": Told(
        job(deadlineAt={"time": "06:00", "zone": "Europe/Berlin"}),
        "Pending",
        "InvalidSpec",
        ("spec.deadlineAt.zone", "Mars/Olympus"),
        queue={"stopPolicy": "Hold"},
        smuggled={"deadlineAt": {"zone": "Mars/Olympus"}},
    ),
    "a spec of another version": Told(
        job(),
        "Pending",
        "InvalidSpec",
        ("spec.importance",),
        queue={"stopPolicy": "Hold"},
        smuggled={"importance": HUGE},
    ),
    **{
        name: Told(pod(spec), "Rejected", "UnsupportedConstraint", (where, "remove it"))
        for name, (spec, where) in UNSUPPORTED.items()
    },
}
