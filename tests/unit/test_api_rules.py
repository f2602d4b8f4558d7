"""The table of cases through the Python twins; the end-to-end suite runs the same on a real API server."""

import copy

import pytest

from cases import crd_case, crd_rules, objects
from lstqueue.api import cel, deadlinejob, errors, gpuqueue, interconnect, rules, schema


def stored(case: crd_case.Case) -> tuple[objects.Object, objects.Object | None]:
    """The old and the new object as a write would have a server compare them."""
    new, old = copy.deepcopy(case.new), copy.deepcopy(case.old)
    for obj in (new, old):
        if obj is not None:
            schema.default(case.kind, obj)
            schema.prune(case.kind, obj)
    if old is not None and case.subresource == "status":
        new["spec"] = old["spec"]
    else:
        new.pop("status", None)
        if old is not None and "status" in old:
            new["status"] = old["status"]
    return new, old


def findings(case: crd_case.Case) -> list[tuple[str, str]]:
    new, old = stored(case)
    found = schema.validate(case.kind, new)
    if not schema.blocks(case.kind, new):
        found += rules.violations(case.kind, new, old)
    return found


@pytest.mark.parametrize("case", crd_rules.CASES, ids=lambda case: case.name)
def test_a_write_is_accepted_or_refused_with_field_and_reason(case):
    found = findings(case)
    if case.accepted:
        assert found == []
    else:
        assert any(case.field in field and case.message in message for field, message in found), found


PARSE = {"DeadlineJob": deadlinejob.parse, "GPUQueue": gpuqueue.parse, "Interconnect": interconnect.parse}
CREATIONS = [case for case in crd_rules.CASES if case.old is None]


@pytest.mark.parametrize("case", CREATIONS, ids=lambda case: case.name)
def test_reading_a_file_is_as_strict_as_the_server(case):
    if case.accepted:
        PARSE[case.kind](case.new)
        return
    with pytest.raises(errors.InvalidSpecError) as caught:
        PARSE[case.kind](case.new)
    fields = [problem.field for problem in caught.value.problems]
    assert any(case.field in field or field in case.field for field in fields), fields


def test_every_case_has_its_own_name():
    names = [case.name for case in crd_rules.CASES]
    assert len(set(names)) == len(names)


def test_every_rule_is_broken_by_some_case():
    said = {message for case in crd_rules.CASES for _, message in findings(case)}
    for kind, kept in rules.RULES.items():
        for rule in kept:
            assert rule.message in said, f"{kind} {rule.at}: {rule.message}"


def test_a_job_without_an_older_one_breaks_no_rule_about_changes():
    assert rules.violations("DeadlineJob", objects.job(status=objects.ADMITTED)) == []


def test_a_rule_that_meets_the_wrong_shape_is_broken_and_no_crash():
    job = objects.job(deadlineIn=["1h"], groups=[{"name": 7}, "leader"])
    found = dict(rules.violations("DeadlineJob", job, objects.job(deadlineIn="1h")))
    assert {"spec.deadlineIn", "spec.groups"} <= set(found)


def test_older_items_are_found_by_key_and_only_where_there_is_one():
    kept = cel.RuleSet()
    seen = []

    def look(new, old):
        seen.append((new["v"], old and old["v"]))
        return True

    for at in ("spec.keyed[name]", "spec.plain[]"):
        kept.add(cel.Rule(at, "self == oldSelf", "changed", "change it back", look))
    new = {"spec": {kind: [{"name": "b", "v": 1}, {"name": "a", "v": 2}] for kind in ("keyed", "plain")}}
    old = {"spec": {kind: [{"name": "a", "v": 3}] for kind in ("keyed", "plain")}}
    assert list(kept.broken(new, old)) == []
    assert seen == [(2, 3)]
