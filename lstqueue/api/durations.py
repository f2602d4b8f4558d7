"""Durations as people write them ("1d12h30m", "1.5h", "90s"), to and from integer milliseconds.

The grammar is Go's without signs and without units below the millisecond, plus `d` for 24 hours. The digits
of each part are bounded, so that no duration exceeds some 1,400 years and every sum of a time and a duration
stays a date that can be written. A fraction of a millisecond counts as a whole one, so that a duration is
zero only if all its digits are. The CRDs check the same grammar with `PATTERN` and `NON_ZERO`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from lstqueue.api import errors

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MAX_LENGTH = 32
"""Characters of a duration; with `PATTERN` this bounds its value."""

_FRACTION = "([.][0-9]{1,9})?"
PATTERN = (
    rf"^([0-9]{{1,5}}{_FRACTION}d|[0-9]{{1,6}}{_FRACTION}h|[0-9]{{1,8}}{_FRACTION}m"
    rf"|[0-9]{{1,10}}{_FRACTION}s|[0-9]{{1,13}}{_FRACTION}ms)+$"
)
"""Every duration that can be read, as RE2 and Python both understand it."""
NON_ZERO = "[1-9]"
"""What occurs in a duration that is more than zero."""

REMEDY = 'write a duration such as "90s", "1.5h" or "1d12h30m"'

_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1}
_WHOLE = re.compile(PATTERN.removesuffix("$") + r"\Z")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")


def parse(text: str, *, positive: bool = False) -> int:
    """Return a duration in ms, rounded up.

    Args:
        text: such as "1d12h30m"; parts may come in any order and repeat.
        positive: refuse zero.

    Raises:
        BadValueError: it is no duration, or zero where that makes no sense.
    """
    if not isinstance(text, str):
        raise errors.BadValueError(f"{errors.show(text)} is not a duration", REMEDY)
    if len(text) > MAX_LENGTH or not _WHOLE.match(text):
        raise errors.BadValueError(_problem(text), REMEDY)
    total = sum(Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    whole = -int(-total // 1)
    if positive and not whole:
        raise errors.BadValueError(f"{errors.show(text)} is zero", "write a duration of more than zero")
    return whole


def format(ms: int) -> str:
    """Return the canonical text of a duration in ms: "1d12h30m", "1m30s", "1s500ms", "0s".

    A negative one gets a leading minus; that is for display, `parse` refuses it.
    """
    if ms < 0:
        return "-" + format(-ms)
    parts = []
    rest = ms
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _problem(text: str) -> str:
    """Say what is wrong with a text that is no duration, guessing what was meant."""
    shown = errors.show(text)
    if not text:
        return "a duration is empty"
    if text.startswith("-"):
        return f"{shown} is negative"
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return f"{shown} has no unit"
    if any(character.isspace() for character in text):
        return f"{shown} has spaces in it"
    if len(text) > MAX_LENGTH or re.fullmatch(f"({_PART.pattern})+", text):
        return f"{shown} is too long or too large for a duration"
    return f"{shown} is not a duration"
