"""Which nodes come first where gangs are not placed by the interconnect, for comparisons."""

from __future__ import annotations

import enum


class Rule(enum.Enum):
    """An order of nodes; `rivals` has what comes of it."""

    TIGHTEST = "tightest"  # fewest free first, as where nothing is known of an interconnect (`placement`)
    MOST_FREE = "most-free"  # most free first, as the default scoring of kube-scheduler has it
    RANDOM = "random"  # in an order that what is free determines, and nothing else
