"""Merge patch and JSON patch on plain JSON, by the tables and rules of their RFCs."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.embedded import patches
from lstqueue.kube import port

MERGES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES)
def test_merge(target: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert patches.merge(target, patch) == expected
    assert target == before


def test_a_merge_shares_what_it_does_not_touch() -> None:
    target = {"spec": {"big": [1, 2, 3]}, "status": {"a": 1}}
    assert patches.merge(target, {"status": {"a": 2}})["spec"] is target["spec"]


APPLIED: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
    ({"foo": ["a", "c"]}, [{"op": "add", "path": "/foo/1", "value": "b"}], {"foo": ["a", "b", "c"]}),
    ({"foo": ["a"]}, [{"op": "add", "path": "/foo/-", "value": ["b"]}], {"foo": ["a", ["b"]]}),
    ({"foo": ["a"]}, [{"op": "add", "path": "/foo/1", "value": "b"}], {"foo": ["a", "b"]}),
    ({"foo": "bar", "baz": 1}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["a", "b", "c"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a", "c"]}),
    ({"foo": 1}, [{"op": "replace", "path": "/foo", "value": None}], {"foo": None}),
    ({"foo": [1, 2]}, [{"op": "replace", "path": "/foo/0", "value": 3}], {"foo": [3, 2]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
    ({"l": [1, 2, 3, 4]}, [{"op": "move", "from": "/l/1", "path": "/l/3"}], {"l": [1, 3, 4, 2]}),
    ({"a": {"b": []}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": []}, "c": {"b": []}}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    (
        {"a": {"x": [1], "y": 2}},
        [{"op": "test", "path": "/a", "value": {"y": 2, "x": [1]}}],
        {"a": {"x": [1], "y": 2}},
    ),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
    ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
]


@pytest.mark.parametrize(("target", "operations", "expected"), APPLIED)
def test_json_patch(target: Any, operations: list[dict[str, Any]], expected: Any) -> None:
    before = copy.deepcopy(target)
    assert patches.apply_json_patch(target, operations) == expected
    assert target == before


def test_a_copied_value_is_a_copy() -> None:
    operations = [
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/x", "value": 1},
    ]
    assert patches.apply_json_patch({"a": {}}, operations) == {"a": {}, "b": {"x": 1}}


REFUSED: list[tuple[Any, dict[str, Any], int]] = [
    ({"a": 1}, {"op": "test", "path": "/a", "value": True}, 422),
    ({"a": 1}, {"op": "test", "path": "/a", "value": "1"}, 422),
    ({"a": 1}, {"op": "test", "path": "/b", "value": None}, 422),
    ({"a": [1]}, {"op": "add", "path": "/a/2", "value": 1}, 422),
    ({"a": [1]}, {"op": "add", "path": "/a/01", "value": 1}, 422),
    ({"a": [1]}, {"op": "add", "path": "/a/-1", "value": 1}, 422),
    ({"a": [1]}, {"op": "add", "path": "/a/٣", "value": 1}, 422),
    ({"a": [1]}, {"op": "remove", "path": "/a/-"}, 422),
    ({"a": [1]}, {"op": "remove", "path": "/a/1"}, 422),
    ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, 422),
    ({"a": 1}, {"op": "replace", "path": "/b", "value": 1}, 422),
    ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/c"}, 422),
    ({"a": 1}, {"op": "remove", "path": ""}, 422),
    ({"a": 1}, {"op": "add", "path": "/b"}, 400),
    ({"a": 1}, {"op": "add", "value": 1}, 400),
    ({"a": 1}, {"op": "add", "path": "b", "value": 1}, 400),
    ({"a": 1}, {"op": "move", "path": "/b"}, 400),
    ({"a": 1}, {"op": "jump", "path": "/b"}, 400),
    ({"a": 1}, {}, 400),
]


@pytest.mark.parametrize(("target", "operation", "status"), REFUSED)
def test_operations_that_are_refused(target: Any, operation: dict[str, Any], status: int) -> None:
    before = copy.deepcopy(target)
    with pytest.raises(port.InvalidError) as caught:
        patches.apply_json_patch(target, [operation])
    assert caught.value.status == status
    assert target == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(target=JSON, patch=JSON)
def test_merging_twice_is_merging_once(target: Any, patch: Any) -> None:
    once = patches.merge(target, patch)
    assert patches.merge(once, patch) == once


@given(value=JSON)
def test_a_copy_is_equal_and_apart(value: Any) -> None:
    copied = patches.copy_json(value)
    assert copied == value
    if isinstance(value, list | dict):
        assert copied is not value
