"""Rules that more than one kind has: durations, and the text forms behind them.

As rules rather than patterns of the schema, because a rule has a message that a person can act on.
"""

from __future__ import annotations

import re
from typing import Any

from lstqueue.api import bandwidths, cel, durations, errors, percents

SERVICE_NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""Form of an RFC 1035 label; its length is checked elsewhere."""


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text matches as RE2 has it: unanchored, and `$` is the very end."""
    if pattern.endswith("$"):
        pattern = pattern[:-1] + r"\Z"
    return re.search(pattern, text) is not None


def duration(rules: cel.RuleSet, at: str, *, zero: bool = False) -> None:
    """Add the rule that the text at `at` is a duration, of more than zero unless `zero` has a meaning."""
    cel_text = f"self.matches('{durations.PATTERN}')"
    if not zero:
        cel_text += f" && self.matches('{durations.NON_ZERO}')"

    def holds(new: Any, _old: Any) -> bool:
        try:
            durations.parse(new, positive=not zero)
        except errors.BadValueError:
            return False
        return True

    problem = "this is not a duration" if zero else "this is not a duration of more than zero"
    rules.add(cel.Rule(at, cel_text, problem, durations.REMEDY, holds))


def bandwidth(rules: cel.RuleSet, at: str) -> None:
    """Add the rule that the text at `at` is a bandwidth."""

    def holds(new: Any, _old: Any) -> bool:
        try:
            bandwidths.parse(new)
        except errors.BadValueError:
            return False
        return True

    text = f"self.matches('{bandwidths.PATTERN}')"
    rules.add(cel.Rule(at, text, "this is not a bandwidth", bandwidths.REMEDY, holds))


def percent(rules: cel.RuleSet, at: str) -> None:
    """Add the rule that the text at `at` is a percentage."""

    def holds(new: Any, _old: Any) -> bool:
        try:
            percents.parse(new)
        except errors.BadValueError:
            return False
        return True

    text = f"self.matches('{percents.PATTERN}')"
    rules.add(cel.Rule(at, text, "this is not a percentage", percents.REMEDY, holds))
