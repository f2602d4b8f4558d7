"""What a DeadlineJob must keep beyond the types of its fields: CEL for the API server, and the Python twins.

Frozen for life are the groups, for a gang is one thing with one size; frozen while admitted is the queue, for
its quota is in use. Deadline, estimate and importance stay editable at all times.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import cel, field_rules, times, zones

NAME_AND_GROUP = 50
"""Characters of a job's name and a group's name together: child Jobs append both and a counter, and a pod's
host name, which appends its index, must stay a DNS label."""

END_OF_TIME = times.parse("9999-01-01T00:00:00Z")
"""Deadlines are before it, so that what is reckoned from them is a time that can be written."""
OUT_OF_TIME = "is not after 1970-01-01T00:00:00Z and before 9999-01-01T00:00:00Z"
OUT_OF_TIME_REMEDY = f"{times.REMEDY}; leave it out for no deadline"

RULES = cel.RuleSet()


@RULES.rule(
    "",
    cel="""!has(oldSelf.status) || !(has(oldSelf.status.admission) || has(oldSelf.status.claim))
        || (has(self.spec.queue) ? self.spec.queue : '') ==
        (has(oldSelf.spec.queue) ? oldSelf.spec.queue : '')""",
    problem="the queue is frozen while the job is admitted or claims room",
    remedy="change it once the job waits again, or delete the job and create it anew",
    field=".spec.queue",
)
def _queue_is_frozen_while_admitted(new: Any, old: Any) -> bool:
    status = old.get("status") or {}
    if status.get("admission") is None and status.get("claim") is None:
        return True
    return bool(new["spec"].get("queue") == old["spec"].get("queue"))


@RULES.rule(
    "",
    cel=f"!has(self.spec.groups) || self.metadata.name.matches('{field_rules.SERVICE_NAME}')",
    problem="the name of a DeadlineJob with groups becomes part of host names",
    remedy="use lower-case letters, digits and hyphens, and begin with a letter",
    field=".metadata.name",
)
def _name_is_a_service_name(new: Any, _old: Any) -> bool:
    if new["spec"].get("groups") is None:
        return True
    return field_rules.matches(field_rules.SERVICE_NAME, new["metadata"]["name"])


@RULES.rule(
    "",
    cel=f"""!has(self.spec.groups) || self.spec.groups.all(g,
        self.metadata.name.size() + g.name.size() <= {NAME_AND_GROUP})""",
    problem=f"the name and a group's name together have more than {NAME_AND_GROUP} characters",
    remedy="shorten one of them",
    field=".spec.groups",
)
def _names_leave_room_for_the_children(new: Any, _old: Any) -> bool:
    room = NAME_AND_GROUP - len(new["metadata"]["name"])
    return all(len(group["name"]) <= room for group in new["spec"].get("groups") or ())


@RULES.rule(
    "spec",
    cel="has(self.groups) != has(self.jobRef)",
    problem="a job has either groups or jobRef",
    remedy="write groups for pods of its own, or jobRef for a Job that exists, and not both",
)
def _groups_or_reference(new: Any, _old: Any) -> bool:
    return (new.get("groups") is None) != (new.get("jobRef") is None)


@RULES.rule(
    "spec",
    cel="""(has(self.deadline) ? 1 : 0) + (has(self.deadlineIn) ? 1 : 0)
        + (has(self.deadlineAt) ? 1 : 0) <= 1""",
    problem="more than one of deadline, deadlineIn and deadlineAt is set",
    remedy="keep one of them",
)
def _one_deadline(new: Any, _old: Any) -> bool:
    kinds = ("deadline", "deadlineIn", "deadlineAt")
    return sum(new.get(kind) is not None for kind in kinds) <= 1


@RULES.rule(
    "spec",
    cel="""has(self.jobRef) == has(oldSelf.jobRef)
        && (!has(self.jobRef) || self.jobRef == oldSelf.jobRef)""",
    problem="jobRef never changes",
    remedy="delete the job and create it anew",
    field=".jobRef",
)
def _reference_is_frozen(new: Any, old: Any) -> bool:
    return bool(new.get("jobRef") == old.get("jobRef"))


@RULES.rule(
    "spec.jobRef",
    cel="""(self.apiVersion == 'batch/v1' && self.kind == 'Job')
        || (self.apiVersion == 'kubeflow.org/v1' && self.kind == 'PyTorchJob')""",
    problem="only Jobs of batch/v1 and PyTorchJobs of kubeflow.org/v1 can be referred to",
    remedy="write apiVersion and kind of one of these, and queue anything else by the Jobs it makes",
)
def _reference_is_to_a_job(new: Any, _old: Any) -> bool:
    return (new["apiVersion"], new["kind"]) in (("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob"))


@RULES.rule(
    "spec.deadline",
    cel=f"self > timestamp('{times.format(0)}') && self < timestamp('{times.format(END_OF_TIME)}')",
    problem=f"the deadline {OUT_OF_TIME}",
    remedy=OUT_OF_TIME_REMEDY,
)
def _deadline_is_a_time(new: Any, _old: Any) -> bool:
    # The format alone lets through offsets that no clock knows, and even a list.
    return 0 < times.parse(new) < END_OF_TIME


@RULES.rule(
    "spec.deadlineAt.time",
    cel=f"self.matches('{zones.CLOCK}')",
    problem="this is not a time of day",
    remedy=zones.CLOCK_REMEDY,
)
def _deadline_is_a_time_of_day(new: Any, _old: Any) -> bool:
    return field_rules.matches(zones.CLOCK, new)


@RULES.rule(
    "spec.deadlineAt.zone",
    cel=f"self.matches('{zones.NAME}')",
    problem="this is not the name of a time zone",
    remedy=zones.NAME_REMEDY,
)
def _zone_has_the_form_of_a_name(new: Any, _old: Any) -> bool:
    # Whether there is such a zone no CRD can know; the operator says so in the status.
    return field_rules.matches(zones.NAME, new)


@RULES.rule(
    "spec.topology",
    cel="!has(self.sliceLevel) || has(self.sliceSize)",
    problem="sliceLevel says where slices are, and there are none without sliceSize",
    remedy="set sliceSize, or remove sliceLevel",
)
def _slices_have_a_size(new: Any, _old: Any) -> bool:
    return new.get("sliceLevel") is None or new.get("sliceSize") is not None


@RULES.rule(
    "spec",
    cel="""!has(self.groups) || !has(self.topology) || !has(self.topology.sliceSize)
        || self.groups.all(g, g.replicas == 1 || g.replicas % self.topology.sliceSize == 0)""",
    problem="a group with more than one pod has no multiple of sliceSize of them",
    remedy="change sliceSize, so that it divides the replicas of each",
    field=".topology.sliceSize",
)
def _slices_are_whole(new: Any, _old: Any) -> bool:
    size = (new.get("topology") or {}).get("sliceSize")
    counts = [group.get("replicas", 1) for group in new.get("groups") or ()]
    return not size or all(count == 1 or count % size == 0 for count in counts)


@RULES.rule(
    "spec.topology",
    cel="!has(self.maxWait) || has(self.preferred)",
    problem="maxWait says how long to wait for a domain of a level, and none is preferred",
    remedy="set preferred, or remove maxWait",
)
def _there_is_something_to_wait_for(new: Any, _old: Any) -> bool:
    return new.get("maxWait") is None or new.get("preferred") is not None


field_rules.bandwidth(RULES, "spec.topology.minBandwidth")
field_rules.duration(RULES, "spec.topology.maxWait", zero=True)
field_rules.percent(RULES, "spec.topology.communicationShare")
for _name in (
    "deadlineIn",
    "estimatedDuration",
    "checkpoint.interval",
    "checkpoint.restartOverhead",
    "maxRunTime",
):
    field_rules.duration(RULES, f"spec.{_name}")
field_rules.duration(RULES, "spec.minRunTime", zero=True)


@RULES.rule(
    "spec.groups",
    # Compares two plain lists: `==` between the list-maps themselves would ignore their order, and the order
    # is what ranks are counted in.
    cel="""self.map(g, g.name) == oldSelf.map(g, g.name)
        && self.map(g, g.replicas) == oldSelf.map(g, g.replicas)""",
    problem="groups, their order and their replicas never change",
    remedy="delete the job and create it anew",
)
def _groups_are_frozen(new: Any, old: Any) -> bool:
    return [_outline(group) for group in new] == [_outline(group) for group in old]


def _outline(group: Any) -> tuple[str, int]:
    return group["name"], group.get("replicas", 1)


@RULES.rule(
    "spec.groups[name].template",
    # Both ways, since each looks only at what its left side has.
    cel="self == oldSelf && oldSelf == self",
    problem="templates never change",
    remedy="delete the job and create it anew",
)
def _template_is_frozen(new: Any, old: Any) -> bool:
    return bool(new == old)
