"""Bandwidths in a spec ("400Gb/s", "50GB/s"), to and from whole MB/s, one way.

Both units that people use are read: network ports are sold in bits, links of accelerators in bytes.
"""

from __future__ import annotations

import re

from lstqueue.api import errors

MAX_LENGTH = 16
PATTERN = "^[1-9][0-9]{0,8}(Gb/s|GB/s|MB/s)$"
"""As RE2 and Python both understand it."""
REMEDY = 'write a whole number and Gb/s, GB/s or MB/s, such as "50GB/s" or "400Gb/s"'

_FORM = re.compile(PATTERN.removesuffix("$") + r"\Z")
_MEGABYTES = {"Gb/s": 125, "GB/s": 1000, "MB/s": 1}


def parse(text: str) -> int:
    """Return a bandwidth in MB/s.

    Raises:
        BadValueError: It is none.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH or not _FORM.match(text):
        raise errors.BadValueError(f"{errors.show(text)} is not a bandwidth", REMEDY)
    return int(text[:-4]) * _MEGABYTES[text[-4:]]


def format(megabytes: int) -> str:
    """Write MB/s in the largest unit that has no fraction."""
    return f"{megabytes // 1000}GB/s" if megabytes % 1000 == 0 else f"{megabytes}MB/s"
