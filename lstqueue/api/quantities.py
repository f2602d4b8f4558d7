"""Kubernetes quantities ("500m", "1.5Gi", "1e3") to and from the integer units that lstqueue reckons in.

The unit follows from the resource: `cpu` in millicores, `memory` and `ephemeral-storage` (and huge pages) in
bytes, all else in whole pieces. Fractions of a millicore or byte are rounded up, as a request must be; a
fraction of a piece is an error, as the API server has it. Amounts above `LARGEST` are errors too: columns of
them must be summed in 64 bits.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from lstqueue.api import errors

MAX_LENGTH = 32
"""Characters of a quantity in a GPUQueue; a pod's may be longer."""
LARGEST = 10**18
"""The largest amount in the unit of its resource: 1E."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([A-Za-z]{0,2}|[eE][+-]?[0-9]+)")
_MAX_EXPONENT = 100
_MAX_TEXT = 256


def parse(resource: str, value: str | int | float) -> int:
    """Return an amount of `resource` in its unit, rounded up.

    Args:
        resource: the name, such as "cpu" or "nvidia.com/gpu".
        value: as it stands in JSON: a string or a number.

    Raises:
        BadValueError: it is no quantity, negative, too large, or a part of something that comes whole.
    """
    if type(value) is int and 0 <= value <= LARGEST // 1000:
        return value * 1000 if resource == "cpu" else value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise errors.BadValueError(f"{errors.show(value)} is not a quantity", _remedy(resource))
    return _parse(resource, str(value))


def format(resource: str, amount: int) -> str:
    """Return the canonical text of an amount in the unit of `resource`: "1500m", "64Gi", "8"."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if _in_bytes(resource) and amount:
        for suffix, power in reversed(_BINARY.items()):
            if amount % (1 << power) == 0:
                return f"{amount >> power}{suffix}"
    return str(amount)


@functools.lru_cache(maxsize=4096)
def _parse(resource: str, text: str) -> int:
    number = _number(resource, text)
    if number < 0:
        raise errors.BadValueError(f"{errors.show(text)} is negative", _remedy(resource))
    number *= 1000 if resource == "cpu" else 1
    whole = -int(-number // 1)
    if whole != number and not divisible(resource):
        problem = f"{errors.show(text)} is not a whole number of {resource}"
        raise errors.BadValueError(problem, _remedy(resource))
    if whole > LARGEST:
        raise errors.BadValueError(f"{errors.show(text)} is too large", "write at most 1E (1P of cpu)")
    return whole


def _number(resource: str, text: str) -> Fraction:
    """Return the value of a quantity without regard to its resource, save for the words of an error."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT and text.isascii() else None
    if not match:
        raise errors.BadValueError(f"{errors.show(text)} is not a quantity", _remedy(resource))
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    if not whole and not fraction:
        raise errors.BadValueError(f"{errors.show(text)} has no number", _remedy(resource))
    digits = Fraction(int(whole + fraction), 10 ** len(fraction))
    if sign == "-":
        digits = -digits
    if suffix in _BINARY:
        return digits * (1 << _BINARY[suffix])
    if suffix in _DECIMAL:
        return digits * Fraction(10) ** _DECIMAL[suffix]
    if len(suffix) < 2 or suffix[0] not in "eE" or suffix[1:].isalpha():
        raise errors.BadValueError(f"{errors.show(text)} has an unknown suffix", _remedy(resource))
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise errors.BadValueError(f"{errors.show(text)} has too large an exponent", _remedy(resource))
    return digits * Fraction(10) ** exponent


def divisible(resource: str) -> bool:
    """Tell whether a resource is reckoned in millicores or bytes, and not in whole pieces."""
    return resource == "cpu" or _in_bytes(resource)


def _in_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def _remedy(resource: str) -> str:
    if resource == "cpu":
        return 'write cores such as 4, "0.5" or "500m"'
    if _in_bytes(resource):
        return 'write bytes such as "64Gi" or "500M"'
    return f"write a whole number of {resource} such as 8"
