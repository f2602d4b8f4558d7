"""Merge patch (RFC 7396) and JSON patch (RFC 6902) on JSON objects.

Both return a new object and leave the old one untouched. The merge patch shares every subtree it does not
touch, which is what keeps a status write cheap; the JSON patch copies first. Strategic merge patch, which
needs to know the lists of built-in kinds, is in `strategic`.
"""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import failures

Json = Any


def copy_json(value: Json) -> Json:
    """A deep copy of JSON data, several times faster than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return value


def merge(target: Json, patch: Json) -> Json:
    """Apply a merge patch: objects merge by key, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def apply_json_patch(target: Json, operations: Json) -> Json:
    """Apply a list of JSON patch operations in order.

    Raises:
        port.InvalidError: 400 for a list that is no JSON patch, 422 for an operation that does not fit the
            object or a `test` that failed.
    """
    if not isinstance(operations, list):
        raise failures.bad_request("a JSON patch is a list of operations")
    document = copy_json(target)
    for operation in operations:
        if not isinstance(operation, dict):
            raise failures.bad_request("each operation of a JSON patch is an object")
        document = _apply(document, operation)
    return document


def _apply(document: Json, operation: dict[str, Json]) -> Json:
    verb, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise failures.bad_request(f"JSON patch operation {verb!r} has no path")
    if verb in ("add", "replace", "test"):
        if "value" not in operation:
            raise failures.bad_request(f"JSON patch operation {verb!r} at {path!r} has no value")
        value = operation["value"]
        if verb == "add":
            return _add(document, path, copy_json(value))
        if verb == "replace":
            return _replace(document, path, copy_json(value))
        if not _same(_find(document, path), value):
            raise failures.unprocessable(f"testing path {path!r}: test failed")
        return document
    if verb == "remove":
        return _remove(document, path)
    if verb in ("move", "copy"):
        return _transfer(document, operation, path)
    raise failures.bad_request(f"unknown JSON patch operation {verb!r}")


def _transfer(document: Json, operation: dict[str, Json], path: str) -> Json:
    source = operation.get("from")
    if not isinstance(source, str):
        raise failures.bad_request(f"JSON patch operation {operation['op']!r} at {path!r} has no from")
    value = copy_json(_find(document, source))
    if operation["op"] == "copy":
        return _add(document, path, value)
    if path.startswith(source + "/"):
        raise failures.unprocessable(f"cannot move {source!r} into itself")
    return _add(_remove(document, source), path, value)


def _same(left: Json, right: Json) -> bool:
    """Equality of JSON values; Python's own holds true and 1 for equal."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def _tokens(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise failures.bad_request(f"JSON pointer {path!r} does not start with a slash")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _step(node: Json, token: str, path: str) -> Json:
    if isinstance(node, dict) and token in node:
        return node[token]
    if isinstance(node, list):
        return node[_index(node, token, path, past_end=False)]
    raise failures.unprocessable(f"path {path!r} does not exist")


def _index(node: list[Json], token: str, path: str, *, past_end: bool) -> int:
    if token in ("-",) and past_end:
        return len(node)
    if not token.isascii() or not token.isdigit() or (len(token) > 1 and token[0] == "0"):
        raise failures.unprocessable(f"{token!r} in path {path!r} is no list index")
    index = int(token)
    if index > len(node) - (0 if past_end else 1):
        raise failures.unprocessable(f"index {index} in path {path!r} is out of bounds")
    return index


def _find(document: Json, path: str) -> Json:
    node = document
    for token in _tokens(path):
        node = _step(node, token, path)
    return node


def _parent(document: Json, path: str) -> tuple[Json, str]:
    tokens = _tokens(path)
    node = document
    for token in tokens[:-1]:
        node = _step(node, token, path)
    return node, tokens[-1]


def _add(document: Json, path: str, value: Json) -> Json:
    if path == "":
        return value
    node, token = _parent(document, path)
    if isinstance(node, list):
        node.insert(_index(node, token, path, past_end=True), value)
    elif isinstance(node, dict):
        node[token] = value
    else:
        raise failures.unprocessable(f"path {path!r} does not exist")
    return document


def _replace(document: Json, path: str, value: Json) -> Json:
    if path == "":
        return value
    node, token = _parent(document, path)
    _step(node, token, path)
    node[_index(node, token, path, past_end=False) if isinstance(node, list) else token] = value
    return document


def _remove(document: Json, path: str) -> Json:
    if path == "":
        raise failures.unprocessable("the whole object cannot be removed")
    node, token = _parent(document, path)
    _step(node, token, path)
    if isinstance(node, list):
        del node[_index(node, token, path, past_end=False)]
    else:
        del node[token]
    return document
