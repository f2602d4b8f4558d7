"""Switches that make other policies of the one engine, for comparisons; the operator leaves all as they are.

Each replaces one rule of a step by the rule that another policy is known for, and nothing else: what is
placed where, quota, claims and forecasts stay. They are apart from the figures of `model.Config`, since a
figure is tuned and a switch is chosen.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lstqueue.topology import rules

STEP = 60_000
"""Steps (ms) in which time moves for the ranks of those who run, where ranks change with time."""


class Preempts(enum.Enum):
    """Who may be suspended for a job, and from when on (step 5)."""

    HARMLESS = "harmless"  # at its last moment, and only those whom it does no harm or who rank below
    TIER = "tier"  # at any time, and whoever is of a lower tier
    RANK = "rank"  # at any time, and whoever stands behind it in the order, whatever that costs


class Backfill(enum.Enum):
    """Whose starts are kept, and others pass only where that does not move them (step 4)."""

    EASY = "easy"  # the first that lacks room: its earliest start
    CONSERVATIVE = "conservative"  # everybody: the earliest start
    SLACK = "slack"  # everybody: the last start that its slack allows


@dataclass(frozen=True, slots=True)
class Switches:
    """What a policy does otherwise.

    Attributes:
        strict: Whether a job that lacks room holds up everybody behind it in its queue (step 4); None: in a
            `fifo` queue it does.
        backfill: Whose starts are kept while others pass (step 4, `backfill` and `agenda`); `strict` then
            means nothing. None: nobody's.
        backfill_most: How many starts are kept at most, of those of all; the others start where they fit now.
        backfill_slack: How long after its submission (ms) a job may be made to start that has no deadline to
            meet, for `Backfill.SLACK`.
        demotes_late: Whether a job that cannot meet its deadline any more ranks with the rest (step 1). If
            not it keeps its place; only with `Preempts.RANK` it may also have others suspended.
        preempts: The rule of step 5.
        urgent: Slack in ms at which a job goes before all others of its tier (step 3), as long as it can
            still meet its deadline; None: no job does.
        service_step: For the order `service`: run time in ms of the whole pool. A job that got less of it
            (run time × its share of the pool) goes before all that got more.
        placing: Which nodes come first (step 4); None: those that an interconnect makes best, or the tightest
            where nothing is known of one. What gangs ask of the interconnect is then not kept.
    """

    strict: bool | None = None
    backfill: Backfill | None = None
    backfill_most: int = 100
    backfill_slack: int = 4 * 60 * STEP
    demotes_late: bool = True
    preempts: Preempts = Preempts.HARMLESS
    urgent: int | None = None
    service_step: int = 2 * STEP
    placing: rules.Rule | None = None

    def __post_init__(self) -> None:
        """Refuse what means nothing.

        Raises:
            ValueError: Names the field and the range it must be in.
        """
        if self.urgent is not None and self.urgent < 0:
            raise ValueError(f"switches.urgent is {self.urgent}; it must be 0 ms or more, or None")
        if self.backfill_most < 1:
            raise ValueError(f"switches.backfill_most is {self.backfill_most}; it must be 1 or more")
        if self.backfill_slack < 0:
            raise ValueError(f"switches.backfill_slack is {self.backfill_slack} ms; it must be 0 or more")
        if self.service_step < 1:
            raise ValueError(f"switches.service_step is {self.service_step}; it must be 1 ms or more")

    @property
    def by_rank(self) -> bool:
        """Whether the order alone says who may be suspended."""
        return self.preempts is not Preempts.HARMLESS
