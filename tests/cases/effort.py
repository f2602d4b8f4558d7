"""How hard properties are tried: little by `make test`, more by `make slow`, long when exploring.

HYPOTHESIS_PROFILE says which: `quick` (the default), `thorough` or `explore`. A number of examples given to a
test overrides that of the profile, so the tests ask here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")

QUICK = 25
"""Examples of a test that names no number."""

THOROUGH = 4
"""How many times as many examples `make slow` draws, the first of them the same."""

LONG = 20
"""How many times as many examples exploring takes; give pytest a longer --timeout with it."""

TIMES = {"quick": 1, "thorough": THOROUGH, "explore": LONG}


def examples(quick: int) -> int:
    """How many examples to draw: `quick` of them, or many."""
    return quick * TIMES[PROFILE]


def sample(values: Iterable[Any], *, quick: int) -> list[Any]:
    """Return the values of a parametrised test; those after the first `quick` are for `make slow`."""
    return [
        value if number < quick else pytest.param(value, marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]
