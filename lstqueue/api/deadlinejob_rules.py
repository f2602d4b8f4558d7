"""What a DeadlineJob must keep beyond the types of its fields: CEL for the API server, and the Python twins.

Frozen for life are the groups, for a gang is one thing with one size; frozen while admitted is the queue, for
its quota is in use. Deadline, estimate and importance stay editable at all times.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import cel, field_rules, times

NAME_AND_GROUP = 50
"""Characters of a job's name and a group's name together: child Jobs append both and a counter, and a pod's
host name, which appends its index, must stay a DNS label."""

_END_OF_TIME = times.parse("9999-01-01T00:00:00Z")

RULES = cel.RuleSet()


@RULES.rule(
    "",
    cel="""!has(oldSelf.status) || !has(oldSelf.status.admission)
        || self.spec.queue == oldSelf.spec.queue""",
    problem="the queue is frozen while the job is admitted",
    remedy="change it once the job waits again, or delete the job and create it anew",
    field=".spec.queue",
)
def _queue_is_frozen_while_admitted(new: Any, old: Any) -> bool:
    if (old.get("status") or {}).get("admission") is None:
        return True
    return bool(new["spec"]["queue"] == old["spec"]["queue"])


@RULES.rule(
    "",
    cel="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    problem="the name of a DeadlineJob becomes part of host names",
    remedy="use lower-case letters, digits and hyphens, and begin with a letter",
    field=".metadata.name",
)
def _name_is_a_service_name(new: Any, _old: Any) -> bool:
    return field_rules.matches(field_rules.SERVICE_NAME, new["metadata"]["name"])


@RULES.rule(
    "",
    cel=f"""self.spec.groups.all(g,
        self.metadata.name.size() + g.name.size() <= {NAME_AND_GROUP})""",
    problem=f"the name and a group's name together have more than {NAME_AND_GROUP} characters",
    remedy="shorten one of them",
    field=".spec.groups",
)
def _names_leave_room_for_the_children(new: Any, _old: Any) -> bool:
    room = NAME_AND_GROUP - len(new["metadata"]["name"])
    return all(len(group["name"]) <= room for group in new["spec"]["groups"])


@RULES.rule(
    "spec",
    cel="!has(self.deadline) || !has(self.deadlineIn)",
    problem="deadline and deadlineIn are both set",
    remedy="keep one of them",
)
def _one_deadline(new: Any, _old: Any) -> bool:
    return new.get("deadline") is None or new.get("deadlineIn") is None


@RULES.rule(
    "spec.deadline",
    cel=f"self > timestamp('{times.format(0)}') && self < timestamp('{times.format(_END_OF_TIME)}')",
    problem="this is not a time between the years 1970 and 9999",
    remedy=times.REMEDY,
)
def _deadline_is_a_time(new: Any, _old: Any) -> bool:
    # The format alone lets through offsets that no clock knows, and even a list.
    return 0 < times.parse(new) < _END_OF_TIME


field_rules.duration(RULES, "spec.deadlineIn")
field_rules.duration(RULES, "spec.estimatedDuration")


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
