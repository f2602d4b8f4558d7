import contextlib
import copy
import re

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import crd_rules, effort, objects
from lstqueue.api import base, cel, deadlinejob, errors, gpuqueue, interconnect, rules, schema, structural

KINDS = ("DeadlineJob", "GPUQueue", "Interconnect")
PARSE = {"DeadlineJob": deadlinejob.parse, "GPUQueue": gpuqueue.parse, "Interconnect": interconnect.parse}


def nodes(node, path=""):
    yield path, node
    for name, field in node.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_one_that_an_api_server_takes(kind):
    opaque = {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}
    for path, node in nodes(schema.openapi(kind)):
        assert "type" in node or opaque & set(node), path
        assert not {"$ref", "$defs", "allOf", "oneOf", "not", "const", "title", "nullable"} & set(node), path
        assert ("anyOf" in node) == ("x-kubernetes-int-or-string" in node), path
        assert "items" in node or node.get("type") != "array", path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("default", 0) is not None, path
        # RE2 knows neither lookaround nor backreferences, and escapes read differently in YAML and CEL.
        assert not re.search(r"\(\?|\\", node.get("pattern", "")), path


@pytest.mark.parametrize("kind", KINDS)
def test_everything_a_rule_may_walk_over_is_bounded(kind):
    """The server estimates the cost of a rule from the largest value there could be."""
    for path, node in nodes(schema.openapi(kind)["properties"]["spec"]):
        if node.get("type") == "string":
            assert {"maxLength", "enum", "format"} & set(node), path
        if node.get("type") == "array" and not path.endswith(".containers"):
            assert "maxItems" in node, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path
        if "x-kubernetes-int-or-string" in node:
            assert "maxLength" in node, path


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_objects_with_keys_require_them(kind):
    for path, node in nodes(schema.openapi(kind)):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            item = node["items"]
            assert key in item["required"] or "default" in item["properties"][key], path


@pytest.mark.parametrize("kind", KINDS)
def test_no_default_hides_in_an_object_that_may_be_absent(kind):
    """A server fills in an object's defaults only where the object is."""
    for path, node in nodes(schema.openapi(kind)):
        for name, field in node.get("properties", {}).items():
            optional = name not in node.get("required", ()) and "default" not in field
            if optional and field.get("type") == "object":
                assert not any("default" in inner for inner in field.get("properties", {}).values()), path


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_explains_itself(kind):
    for part in ("spec", "status"):
        for path, node in nodes(schema.openapi(kind)["properties"][part], part):
            if ".template" not in path and not path.endswith("]"):
                assert re.fullmatch(r"[A-Za-z].*\.", node["description"]), path


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_rules_fit_what_a_server_allows(kind):
    for _, node in nodes(schema.openapi(kind)):
        for rule in node.get("x-kubernetes-validations", ()):
            assert rule["message"].isascii()
            assert len(rule["message"]) < 300
            assert "\n" not in rule["message"] + rule["rule"]


def test_defaults_are_filled_in_and_nulls_removed():
    job = objects.job(importance=None, deadline=None, groups=[objects.group(replicas=objects.ABSENT)])
    job["spec"]["groups"][0]["template"]["spec"]["nodeName"] = None
    schema.default("DeadlineJob", job)
    wanted = {
        "importance": 0,
        "value": 1,
        "preemptible": True,
        "successPolicy": "All",
        "backoffLimit": 3,
        "onInfeasible": "Queue",
        "onMissed": "Demote",
        "active": True,
    }
    assert job["spec"] == objects.job(**wanted, groups=[objects.group(replicas=1)])["spec"]


def test_an_object_that_is_absent_gets_its_defaults_all_the_same():
    queue = objects.queue(overload={})
    schema.default("GPUQueue", queue)
    spec = queue["spec"]
    assert spec["preemption"] == {
        "withinQueue": "NoHarm",
        "minRunTime": "15m",
        "maxPerJobPerDay": 4,
        "reclaimWithinCohort": "Any",
        "reclaimGrace": "15m",
    }
    assert spec["overload"] == {"shedding": True, "bestEffortShare": "5%", "promiseBudget": "0%"}
    assert (spec["stopPolicy"], spec["mode"]) == ("None", "Enforce")


def test_defaults_do_not_overwrite_and_are_not_shared():
    queues = [objects.queue(order="fifo", bindTimeout="1s"), objects.queue()]
    for queue in queues:
        schema.default("GPUQueue", queue)
    assert (queues[0]["spec"]["order"], queues[0]["spec"]["bindTimeout"]) == ("fifo", "1s")
    assert (queues[1]["spec"]["order"], queues[1]["spec"]["bindTimeout"]) == ("lst", "2m")


def test_unknown_fields_are_pruned_but_never_in_a_template():
    job = objects.job(
        dedline="1h",
        groups=[
            objects.group(
                slices=2,
                template={
                    "spec": {"containers": [{"x": {"y": 1}}], "z": [], "volumes": [{"name": "v"}]},
                    "w": 1,
                },
            )
        ],
    )
    kept = copy.deepcopy(job["spec"]["groups"][0]["template"])
    job["status"] = {"phase": "Pending", "mood": "good"}
    job["extra"] = True
    gone = schema.prune("DeadlineJob", job)
    assert gone == ["extra", "spec.dedline", "spec.groups[0].slices", "status.mood"]
    assert job["spec"]["groups"][0]["template"] == kept
    assert set(job) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert schema.prune("DeadlineJob", job) == []


def test_labels_of_a_selector_are_no_unknown_fields():
    queue = objects.queue(pools=[objects.pool(nodeSelector={"kubernetes.io/arch": "arm64"})])
    assert schema.prune("GPUQueue", queue) == []
    assert queue["spec"]["pools"][0]["nodeSelector"] == {"kubernetes.io/arch": "arm64"}


@pytest.mark.parametrize("value", [None, [], "x", 7, True, 0.5])
def test_an_object_of_any_shape_is_judged_and_not_crashed_on(value):
    for kind in KINDS:
        for obj in (value, {"spec": value}, {"spec": {"groups": [value], "pools": [value]}}):
            given_ = copy.deepcopy(obj)
            schema.default(kind, given_)
            schema.prune(kind, given_)
            assert schema.validate(kind, given_) != []


def test_only_what_keeps_a_server_from_asking_its_rules_blocks():
    assert not schema.blocks("DeadlineJob", objects.job(queue="Research"))
    for blocking in ({"queue": 7}, {"queue": "q" * 64}, {"groups": []}, {"successPolicy": "Any"}):
        found = schema.blocks("DeadlineJob", objects.job(**blocking))
        assert found == (blocking != {"groups": []})


def test_a_model_that_no_schema_can_express_is_refused_by_field():
    class Tree(base.Model):
        branches: tuple["Tree", ...] = ()

    class Union(base.Model):
        either: int | str

    class Loose(base.Model):
        above: float = pydantic.Field(gt=0)

    for model, field in ((Tree, "branches"), (Union, "either"), (Loose, "above")):
        with pytest.raises(structural.UnstructurableError, match=field):
            structural.schema(model)


def test_a_rule_needs_a_place_in_the_schema():
    rule = cel.Rule("spec.colour", "true", "no colour", "remove it", lambda _new, _old: True)
    with pytest.raises(structural.UnstructurableError, match=r"spec\.colour"):
        structural.attach({"properties": {"spec": {"properties": {}}}}, [rule])


TEXTS = (
    "",
    "a",
    "A",
    "1h",
    "0s",
    "90",
    "1e3",
    "500m",
    "-5",
    "Ki",
    "All",
    "Exists",
    "lst",
    "x" * 400,
    "ü",
    "a\n",
)
MOMENTS = ("2026-03-02T06:00:00Z", "2026-02-29T00:00:00Z")
OTHERS = (None, 0, -1, 1, 7, 5000, 0.5, True, [], {}, ["x"], {"a": 1}, [None])
VALUES = st.sampled_from((*TEXTS, *MOMENTS, *OTHERS))
# No schema can know which zones there are, so these are either none in form or do exist.
ZONES = st.sampled_from(("", "a b", "ü", "a\n", "x" * 400, None, 7, [], {}, "UTC", "Asia/Tokyo"))
ACCEPTED = [case for case in crd_rules.CASES if case.accepted and case.old is None]


@st.composite
def specs(draw):
    """A valid object with one or two of its values replaced or removed; templates are left alone."""
    case = draw(st.sampled_from(ACCEPTED))
    obj = copy.deepcopy(case.new)
    for _ in range(draw(st.integers(0, 2))):
        holder, key = "spec", None
        place = obj
        while isinstance(place.get(holder) if isinstance(place, dict) else place[holder], dict | list):
            inner = place[holder]
            keys = (
                [k for k in inner if k != "template"] if isinstance(inner, dict) else list(range(len(inner)))
            )
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            place, holder = inner, key
            if draw(st.booleans()):
                break
        if key is None:
            continue
        if draw(st.booleans()):
            place[holder] = copy.deepcopy(draw(VALUES if holder != "zone" else ZONES))
        else:
            del place[holder]
    return case.kind, obj


@settings(max_examples=effort.examples(100))
@given(specs())
def test_the_models_read_exactly_what_the_schema_accepts(sample):
    kind, obj = sample
    as_written = copy.deepcopy(obj)
    schema.default(kind, obj)
    schema.prune(kind, obj)
    accepted = not schema.validate(kind, obj) and not rules.violations(kind, obj)
    for version in (obj, as_written):
        with contextlib.nullcontext() if accepted else pytest.raises(errors.InvalidSpecError):
            PARSE[kind](version)
