"""What a GPUQueue must keep beyond the types of its fields: CEL for the API server, and the Python twins.

A toleration is added to pods when they are released; one that the API server would refuse there would stop
every job of the pool, so it is refused here.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import cel, crons, errors, field_rules, quantities, zones

NAME_LENGTH = 63
"""Characters of a queue's name; jobs name it in `spec.queue`."""

_PART = "[.num]"
"""What occurs in a quantity that may not be whole: a point, or a suffix below one."""

RULES = cel.RuleSet()


@RULES.rule(
    "",
    cel=f"self.metadata.name.size() <= {NAME_LENGTH}",
    problem=f"the name of a GPUQueue has more than {NAME_LENGTH} characters",
    remedy="choose a shorter one",
    field=".metadata.name",
)
def _name_fits_a_job(new: Any, _old: Any) -> bool:
    return len(new["metadata"]["name"]) <= NAME_LENGTH


@RULES.rule(
    "spec.pools[name].tolerations[]",
    cel="(has(self.key) && self.key != '') || self.operator == 'Exists'",
    problem="a toleration without a key tolerates every key, and needs the operator Exists",
    remedy="set key, or operator: Exists",
)
def _toleration_has_a_key(new: Any, _old: Any) -> bool:
    return bool(new.get("key")) or new.get("operator") == "Exists"


@RULES.rule(
    "spec.pools[name].tolerations[]",
    cel="self.operator != 'Exists' || !has(self.value) || self.value == ''",
    problem="a toleration with the operator Exists has no value",
    remedy="remove value, or set operator: Equal",
)
def _existing_has_no_value(new: Any, _old: Any) -> bool:
    return new.get("operator") != "Exists" or not new.get("value")


def _is_quantity(new: Any, _old: Any) -> bool:
    try:
        return type(new) is not float and quantities.parse("memory", new) >= 0
    except errors.BadValueError:
        return False


def _pieces_are_whole(field: str) -> cel.Twin:
    def holds(new: Any, _old: Any) -> bool:
        name, amount = new["name"], new.get(field)
        if amount is None or quantities.divisible(name) or type(amount) is int:
            return True
        return not field_rules.matches(_PART, amount)

    return holds


for _field, _has in (("nominal", ""), ("borrowingLimit", "!has(self.borrowingLimit) || ")):
    RULES.rule(
        f"spec.pools[name].resources[name].{_field}",
        # A suffix alone is a quantity of zero to the API server, and surely a slip of whoever wrote it.
        cel=f"""type(self) == int ? self >= 0 && self <= {quantities.LARGEST}
            : (self.matches('[0-9]') && isQuantity(self)
            && quantity(self).compareTo(quantity('0')) >= 0
            && quantity(self).compareTo(quantity('1E')) <= 0)""",
        problem="this is not a quantity from 0 to 1E",
        remedy='write one such as 64, "500m" or "2Ti"',
    )(_is_quantity)
    RULES.rule(
        "spec.pools[name].resources[name]",
        cel=f"""{_has}self.name in ['cpu', 'memory', 'ephemeral-storage']
            || self.name.startsWith('hugepages-')
            || type(self.{_field}) == int || !self.{_field}.matches('{_PART}')""",
        problem="all but cpu, memory and ephemeral-storage comes in whole pieces",
        remedy="write a whole number such as 8",
        field=f".{_field}",
    )(_pieces_are_whole(_field))


@RULES.rule(
    "spec",
    cel="""has(self.cohort)
        || self.pools.all(p, !has(p.resources) || p.resources.all(r, !has(r.borrowingLimit)))""",
    problem="borrowingLimit is about what is borrowed within a cohort, and the queue is in none",
    remedy="set cohort, or remove borrowingLimit",
    field=".cohort",
)
def _borrowers_have_a_cohort(new: Any, _old: Any) -> bool:
    resources = [one for pool in new["pools"] for one in pool.get("resources") or ()]
    return bool(new.get("cohort")) or all(one.get("borrowingLimit") is None for one in resources)


@RULES.rule(
    "spec.namespaceSelector.matchExpressions[]",
    cel="""self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0
        : !has(self.values) || self.values.size() == 0""",
    problem="In and NotIn compare with values, Exists and DoesNotExist do not",
    remedy="add values, or remove them",
)
def _comparison_has_its_values(new: Any, _old: Any) -> bool:
    return bool(new.get("values")) == (new["operator"] in ("In", "NotIn"))


@RULES.rule(
    "spec.windows[name].schedule",
    cel=f"self.matches('{crons.FORM}')",
    problem="this is not a schedule",
    remedy=crons.REMEDY,
)
def _schedule_has_five_fields(new: Any, _old: Any) -> bool:
    # What may stand in them no CRD can know; the operator says so in the status.
    return field_rules.matches(crons.FORM, new)


@RULES.rule(
    "spec.windows[name].zone",
    cel=f"self.matches('{zones.NAME}')",
    problem="this is not the name of a time zone",
    remedy=zones.NAME_REMEDY,
)
def _zone_has_the_form_of_a_name(new: Any, _old: Any) -> bool:
    return field_rules.matches(zones.NAME, new)


for _name in ("estimatedDuration", "checkpoint.interval", "checkpoint.restartOverhead"):
    field_rules.duration(RULES, f"spec.defaults.{_name}")
field_rules.duration(RULES, "spec.preemption.minRunTime", zero=True)
field_rules.duration(RULES, "spec.preemption.reclaimGrace", zero=True)
field_rules.percent(RULES, "spec.overload.bestEffortShare")
field_rules.percent(RULES, "spec.overload.promiseBudget")
field_rules.duration(RULES, "spec.bindTimeout")
field_rules.duration(RULES, "spec.gangReadyTimeout")
field_rules.duration(RULES, "spec.windows[name].duration")
field_rules.percent(RULES, "spec.windows[name].keepFree")
