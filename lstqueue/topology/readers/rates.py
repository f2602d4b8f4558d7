"""Bandwidths and latencies as people write them: `400Gb/s`, `50GB/s`, `600ns`."""

from __future__ import annotations

import re

from lstqueue.topology.found import TopologyError
from lstqueue.topology.readers import fields

_RATE = re.compile(r"(\d{1,9})\s*(Gb/s|GB/s|MB/s)")
_MEGABYTES = {"Gb/s": 125, "GB/s": 1000, "MB/s": 1}
_LATENCY = re.compile(r"(\d{1,6})\s*(ns|us)")
_NANOSECONDS = {"ns": 1, "us": 1000}
_LONGEST = 1_000_000
"""Ns of a cable: more are a mistake."""


def bandwidth(value: object, where: str) -> int:
    """Return MB/s one way; 0 where none is said.

    Raises:
        TopologyError: It is none, or nothing goes through.
    """
    if value is None:
        return 0
    match = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise TopologyError(where, f"is {fields.shown(value)}; write such as 400Gb/s or 50GB/s, one way")
    if not int(match[1]):
        why = "leave it out where it is unknown, and a cable that is dead"
        raise TopologyError(where, f"is {fields.shown(value)}, which carries nothing; {why}")
    return int(match[1]) * _MEGABYTES[match[2]]


def latency(value: object, where: str) -> int:
    """Return ns one way; 0 where none is said.

    Raises:
        TopologyError: It is none, or longer than a cable can take.
    """
    if value is None:
        return 0
    match = _LATENCY.fullmatch(value.strip()) if isinstance(value, str) else None
    found = int(match[1]) * _NANOSECONDS[match[2]] if match else 0
    if not 0 < found <= _LONGEST:
        raise TopologyError(
            where, f"is {fields.shown(value)}; write such as 600ns or 2us, one way, up to 1 ms"
        )
    return found
