"""What a GPUQueue must keep beyond the types of its fields: CEL for the API server, and the Python twins.

A toleration is added to pods when they are released; one that the API server would refuse there would stop
every job of the pool, so it is refused here.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import cel, errors, field_rules, quantities

NAME_LENGTH = 63
"""Characters of a queue's name; jobs name it in `spec.queue`."""

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


@RULES.rule(
    "spec.pools[name].resources[name].nominal",
    cel="""type(self) == int ? self >= 0 : (isQuantity(self)
        && quantity(self).sign() >= 0 && quantity(self).compareTo(quantity('1E')) <= 0)""",
    problem="this is not a quantity from 0 to 1E",
    remedy='write one such as 64, "500m" or "2Ti"',
)
def _nominal_is_a_quantity(new: Any, _old: Any) -> bool:
    try:
        quantities.parse("memory", new)
    except errors.BadValueError:
        return False
    return True


field_rules.duration(RULES, "spec.defaults.estimatedDuration")
field_rules.duration(RULES, "spec.bindTimeout")
field_rules.duration(RULES, "spec.gangReadyTimeout")
