"""What is written in one cell of a trace: a number, a time, a name, or nothing that is known.

Numbers are read as decimals, never as floats, so that a time in ms is exact and the same everywhere. A cell
that is empty or says nan, null, none, na or "-" is unknown, which is no error: what becomes of its row is for
`collect` to say. Anything else that is no number is an error, since it means another column or format.
"""

from __future__ import annotations

import decimal
import re

UNKNOWN = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})
"""What stands for an unknown value, in lower case."""

FURTHEST = 100 * 366 * 86_400_000
"""The largest time in ms, either way, that is no mistake of the unit: a hundred years."""
MOST = 1_000_000
"""The largest count that is no mistake of the column."""
LONGEST_NAME = 200

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)


class CellError(ValueError):
    """What is wrong with a cell and what to do; whoever knows the file adds the place."""


def unknown(cell: str) -> bool:
    """Whether the cell says that nothing is known."""
    return cell.strip().lower() in UNKNOWN


def number(cell: str) -> decimal.Decimal | None:
    """Read a number; None where it is unknown.

    Raises:
        CellError: It is something else.
    """
    cell = cell.strip()
    if cell.lower() in UNKNOWN:
        return None
    if len(cell) > LONGEST_NAME or not _NUMBER.fullmatch(cell):
        raise CellError(f"{_shown(cell)} is no number; leave the cell empty where it is unknown")
    return decimal.Decimal(cell)


def ms(cell: str, unit: int) -> int | None:
    """Read a time given in units of `unit` ms, as whole ms; a positive one never becomes 0.

    Raises:
        CellError: It is no number, or over a hundred years.
    """
    if _plain(cell) and (whole := int(cell) * unit) <= FURTHEST:
        return whole
    amount = number(cell)
    if amount is None:
        return None
    # Compared before it is multiplied out, and not by abs, which rounds: 1e999999999 has a billion digits.
    if amount.copy_abs() > FURTHEST // unit:
        raise CellError(f"{_shown(cell)} is over a hundred years; it is in units of {unit} ms here")
    exact = amount * unit
    return int(exact.to_integral_value(rounding=decimal.ROUND_HALF_EVEN)) or (1 if exact > 0 else 0)


def count(cell: str) -> int | None:
    """Read a whole number; None where it is unknown.

    Raises:
        CellError: It is no number, not whole, or beyond what can be meant.
    """
    if _plain(cell) and (whole := int(cell)) <= MOST:
        return whole
    amount = number(cell)
    if amount is None:
        return None
    if amount.copy_abs() > MOST:
        raise CellError(f"{_shown(cell)} is beyond {MOST}; check which column it is")
    if amount != amount.to_integral_value():
        raise CellError(f"{_shown(cell)} is not whole; it must be a count")
    return int(amount)


def name(cell: str) -> str:
    """Read a name; empty where it is unknown.

    Raises:
        CellError: It could not be shown in a terminal, or is longer than any name.
    """
    cell = cell.strip()
    if not cell.isprintable():
        raise CellError(f"{_shown(cell)} has control characters; remove them")
    if len(cell) > LONGEST_NAME:
        raise CellError(f"{_shown(cell)} is longer than {LONGEST_NAME} characters; shorten it")
    return cell


def _plain(cell: str) -> bool:
    """Whether it is a short integer, as nearly all cells are: read at once, ten times as fast."""
    return len(cell) < 16 and cell.isascii() and cell.isdigit()


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")
