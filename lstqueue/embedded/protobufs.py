"""The protobuf bodies that are read here: what `kubectl drain` sends to delete pods, or to evict them.

kubectl's typed clients speak protobuf and take JSON for an answer, but never send it. Objects in protobuf
would need the schema of every kind and are refused; options have five fields, and nodes are drained often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstqueue.embedded import failures

_MAGIC = b"k8s\0"
_RAW = 2
"""Field of the envelope that holds the message; the others name its kind and encoding."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_SIGN = 1 << 63


def delete_options(body: bytes) -> dict[str, Any]:
    """Return DeleteOptions as they are in JSON.

    Raises:
        port.InvalidError: 400 when the body is no protobuf message in the envelope of Kubernetes.
    """
    try:
        return _options(_message(body))
    except (ValueError, IndexError) as error:
        raise failures.bad_request(f"the body of the request is not DeleteOptions: {error}") from error


def eviction(body: bytes) -> dict[str, Any]:
    """Return an Eviction as it is in JSON; of its metadata the name alone.

    Raises:
        port.InvalidError: 400 when the body is no protobuf message in the envelope of Kubernetes.
    """
    try:
        message = _message(body)
        names = [text.decode() for meta in _texts(message, 1) for text in _texts(meta, 1)]
        options = _options(b"".join(_texts(message, 2)))
    except (ValueError, IndexError) as error:
        raise failures.bad_request(f"the body of the request is not an Eviction: {error}") from error
    return {"metadata": {"name": "".join(names)}, "deleteOptions": options}


def _message(body: bytes) -> bytes:
    if not body.startswith(_MAGIC):
        raise ValueError("it does not start with k8s")
    return b"".join(_texts(body[len(_MAGIC) :], _RAW))


def _options(message: bytes) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            options["gracePeriodSeconds"] = value - 2 * _SIGN if value & _SIGN else value
        elif number == 2 and isinstance(value, bytes):
            names = {1: "uid", 2: "resourceVersion"}
            options["preconditions"] = {
                names[key]: text.decode()
                for key, text in _fields(value)
                if key in names and isinstance(text, bytes)
            }
        elif number == 4 and isinstance(value, bytes):
            options["propagationPolicy"] = value.decode()
        elif number == 5 and isinstance(value, bytes):
            options.setdefault("dryRun", []).append(value.decode())
    return options


def _texts(message: bytes, wanted: int) -> Iterator[bytes]:
    for number, value in _fields(message):
        if number == wanted and isinstance(value, bytes):
            yield value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a message; a length-delimited value as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(message, position)
        elif wire in _WIDTHS:
            size = _WIDTHS[wire]
        else:
            raise ValueError(f"wire type {wire} is not known")
        if position + size > len(message):
            raise ValueError("it ends in the middle of a field")
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")
