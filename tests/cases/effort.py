"""How hard properties are tried: little in the quick tests, long when HYPOTHESIS_PROFILE is `explore`.

A number of examples given to a test overrides that of the profile, so the tests ask here.
"""

from __future__ import annotations

import os

LONG = 20
"""How many times as many examples exploring takes; give pytest a longer --timeout with it."""


def examples(quick: int) -> int:
    """How many examples to draw: `quick` of them, or many."""
    return quick * LONG if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else quick
