"""Label and field selectors as they appear in a request's query.

A selector is parsed once into a predicate over objects. Labels know `=`, `==`, `!=`, `in`, `notin`, existence
and non-existence; fields know `=`, `==` and `!=` on the fields that a kind lists as selectable. An empty
selector is `None`, so that callers can skip the call altogether.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from lstqueue.embedded import failures
from lstqueue.kube import port

Predicate = Callable[[port.Object], bool]

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}"
LABEL_VALUE = re.compile(rf"({_NAME})?")
LABEL_KEY = re.compile(_KEY)

_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<no>{_KEY})"
    rf"|(?P<key>{_KEY})\s*(?:(?P<op>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[-A-Za-z0-9_.,\s]*)\))?)\s*(?:,|$)"
)


@lru_cache(maxsize=1024)
def labels(text: str) -> Predicate | None:
    """Parse a label selector.

    Raises:
        port.InvalidError: 400 when the text is no selector.
    """
    tests: list[Predicate] = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None or match.end() == position:
            raise failures.bad_request(
                f"unable to parse requirement: {text[position:]!r} in selector {text!r}"
            )
        if match.end() == len(text) and text.endswith(","):
            raise failures.bad_request(f"unable to parse requirement: selector {text!r} ends with a comma")
        tests.append(_label_test(match))
        position = match.end()
    return _every(tests)


def _label_test(match: re.Match[str]) -> Predicate:
    if match["absent"]:
        absent = match["no"]
        return lambda obj: absent not in _labels_of(obj)
    key = match["key"]
    if match["op"] in ("=", "=="):
        value = _checked(match["value"])
        return lambda obj: _labels_of(obj).get(key) == value
    if match["op"] == "!=":
        value = _checked(match["value"])
        return lambda obj: _labels_of(obj).get(key) != value
    if match["set"] is None:
        return lambda obj: key in _labels_of(obj)
    values = frozenset(_checked(part.strip()) for part in match["values"].split(","))
    if match["set"] == "in":
        return lambda obj: _labels_of(obj).get(key) in values
    return lambda obj: _labels_of(obj).get(key) not in values


def _checked(value: str) -> str:
    if LABEL_VALUE.fullmatch(value) is None:
        raise failures.bad_request(f"unable to parse requirement: {value!r} is no label value")
    return value


def _labels_of(obj: port.Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found


def fields(text: str, selectable: Mapping[str, tuple[str, ...]]) -> Predicate | None:
    """Parse a field selector against the kind's selectable fields, each given as a path into the object.

    Raises:
        port.InvalidError: 400 for a malformed text or a field that cannot be selected.
    """
    tests: list[Predicate] = []
    for part in filter(None, text.split(",")):
        key, operator, value = _split_field(part, text)
        path = selectable.get(key)
        if path is None:
            raise failures.bad_request(f'field label not supported: "{key}"')
        tests.append(_field_test(path, value, equal=operator != "!="))
    return _every(tests)


def _split_field(part: str, text: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        key, found, value = part.partition(operator)
        if found:
            return key.strip(), operator, value.strip()
    raise failures.bad_request(f"invalid field selector: {text!r}; can't understand {part!r}")


def _field_test(path: tuple[str, ...], value: str, *, equal: bool) -> Predicate:
    return lambda obj: (_field(obj, path) == value) is equal


def _field(obj: port.Object, path: tuple[str, ...]) -> str:
    node: object = obj
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    if node is None:
        return ""
    if isinstance(node, bool):
        return "true" if node else "false"
    return str(node)


def _every(tests: list[Predicate]) -> Predicate | None:
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def both(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """The conjunction of two parsed selectors."""
    return _every([test for test in (left, right) if test is not None])
