"""What a clock is believed: clocks differ by seconds, and what lies further off was told by a wrong one."""

from __future__ import annotations

from lstqueue.engine import model

ERROR = model.MINUTE
"""Ms by which clocks may differ, or one be set back, and be right as clocks are."""


def beyond(at: int, reference: int) -> bool:
    """Whether a time (ms) lies so far after another that is no earlier than it that a clock was wrong."""
    return at - reference > ERROR
