"""Percentages as people write them ("5%", "12.5%"), to and from parts per million.

A text with its sign, as Kubernetes writes shares (`maxSurge: 25%`): a bare 5 could mean five of something and
0.05 a share, and floats are not for specs. The CRDs check the same grammar with `PATTERN`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from lstqueue.api import errors

MAX_LENGTH = 8
PATTERN = "^([0-9]{1,2}([.][0-9]{1,4})?|100([.]0{1,4})?)%$"
"""0 to 100 %, to a part per million; as RE2 and Python both understand it."""
REMEDY = 'write a percentage from "0%" to "100%" such as "5%" or "2.5%"'

_FORM = re.compile(PATTERN.removesuffix("$") + r"\Z")
_UNIT = 10_000  # ppm in a percent


def parse(text: str) -> int:
    """Return a percentage in ppm.

    Raises:
        BadValueError: It is none.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH or not _FORM.match(text):
        raise errors.BadValueError(f"{errors.show(text)} is not a percentage", REMEDY)
    return int(Fraction(text.removesuffix("%")) * _UNIT)


def format(ppm: int) -> str:
    """Write ppm as a percentage, as short as it goes."""
    whole, rest = divmod(ppm, _UNIT)
    part = f".{rest:04}".rstrip("0") if rest else ""
    return f"{whole}{part}%"
