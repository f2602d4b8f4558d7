"""Every figure that a pass depends on, with its range; docs/engine.md says where each comes from.

Times are integer milliseconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from lstqueue.engine import switches

MINUTE = 60_000
HOUR = 60 * MINUTE


class Order(enum.Enum):
    """How a queue orders its jobs (docs/engine.md, step 3)."""

    LST = "lst"
    EDF = "edf"
    FIFO = "fifo"
    SJF = "sjf"  # this and the next for comparisons only, no queue has them
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Config:
    """Every figure a pass depends on, in ms where it is a time. docs/engine.md says where each comes from.

    `order` overrides the queues' own order when set; it and `switches` make the policies of evaluations.
    """

    order: Order | None = None
    switches: switches.Switches = field(default_factory=switches.Switches)
    overhead_share: float = 0.25  # a in the static key
    quantum: int = 5 * MINUTE  # Q in the static key
    late_hysteresis: int = 10 * MINUTE
    lo_factor: float = 0.25
    hi_factor: float = 1.5
    outrun_factor: float = 1.5
    progress_prior: float = 0.03  # of the work counts as seen at the pace that was expected before
    progress_doubt: float = 0.05  # of the work has to be seen for doubt to fall to 1 / root of 2
    forecast_interval: int = MINUTE
    forecast_tolerance: int = 5 * MINUTE  # smaller moves of a forecast are not published
    forecast_share: float = 0.1  # nor are those below this part of the time until what was told
    forecast_depth: int = 1000  # waiting jobs a forecast follows, in order; 0 makes none
    shedding: bool = True  # whether step 2 gives up jobs of an overload at all
    shed_floor: float = 0.4  # of what there is until a far deadline, this part may be asked for
    shed_extra: float = 0.5  # and for a near one this part more
    shed_decay: int = 12 * HOUR  # over which the second part falls to 1/e
    shed_width: float = 0.5  # the power by which width counts among those who could be given up; 1 is by area
    shed_weight: int = 2  # how often a job counts that was given up; 1 lets bands flap
    shed_step: int = 5 * MINUTE  # in which time moves for step 2
    sharing: bool = True  # whether queues keep a share for best-effort work at all
    share_protects: bool = True  # whether the jobs within it are no victims
    reclaims: bool = True  # whether queues of a cohort take back what others borrow
    share_keeps: bool = True  # whether what comes free is kept for one that is overdue
    share_late: bool = False  # whether it is kept for those who have missed a deadline as well
    share_unknown: int = 24 * HOUR  # what such work without an estimate is taken to run, in that share
    relaxes: bool = True  # whether gangs wait for a better domain that they prefer at all
    trigger_least: int = HOUR  # slack at which a job may have others suspended, besides a share of mid
    trigger_share: float = 0.4
    trigger_margin: int = 2_000  # two passes
    harm_least: int = 10 * MINUTE  # a suspension is taken to cost a victim's slack no less
    harm_margin: int = 10 * MINUTE  # by which a victim's slack must stay above the other's
    unsaved_most: int = 10 * MINUTE  # run time a victim may lose while the other can wait for its checkpoint
    pressing: int = 15 * MINUTE  # slack at which the other waits no more, nor for room that is leaving
    moving: bool = True  # whether those who lose little are suspended where room is left for them elsewhere
    move_least: int = 12 * HOUR  # run time of gangs for which others are moved
    move_share: float = 0.5  # of a gang's share of the pool is what those hold at most who move for it
    move_step: int = 2 * MINUTE  # in which time moves for that
    move_tries: int = 3  # searches of a pass, each without those who found no place in the one before
    wasted_most: int = 2  # suspensions in a row that saved nothing; then only past the next checkpoint
    cap_window: int = 24 * HOUR  # in which Queue.cap counts
    failed_starts_most: int = 3  # in a row; then it ranks with the rest, and nobody leaves for it
    claim_margin: int = 2 * MINUTE  # beyond the victims' grace: writes, controllers and kubelets at work
    avoid_graces: int = 2  # for how many graces nodes that did not come free in time are avoided
    reserve_most: int = 2  # jobs for which room is kept in a pool; 0 keeps none
    reserve_share: float = 0.5  # of a pool is kept at most, for all of them
    reserve_early: bool = True  # only for those with slack to wait; the others may have somebody suspended
    reserve_whole: bool = True  # whether its nodes are closed altogether to those who stay for longer
    reserve_slips: int = 2  # when it was put off so often, only those are guests who can be suspended
    promising: bool = True  # whether anything is promised, and promises that were made are kept
    slot_grace: int = 3 * MINUTE  # in which those in a slot have to leave it: their grace, and writes
    launch_margin: int = 5 * MINUTE  # from admission to all members at work, beside `restore`, for promises
    promise_quiet: int = 7 * 24 * HOUR  # without an overload for so long, there is none
    promise_calm: float = 0.3  # of what a queue has may then be promised until any time, by hi
    promise_area: float = 0.06  # else what is no more than so many hours of the whole pool, by hi
    promise_lead: int = 30 * MINUTE  # no new slot begins sooner, so that those in it may have ended by then
    promise_most: int = 64  # searches for slots of those who are new in one pass
    promise_moves: int = 16  # searches in one pass for other slots than those in doubt whose time is not near
    promise_again: int = 64  # and of those who had none

    def __post_init__(self) -> None:
        """Refuse figures with which a pass would not end or not mean anything.

        Raises:
            ValueError: Names the field and the range it must be in.
        """
        ranges = (
            ("overhead_share", self.overhead_share, 0 <= self.overhead_share <= 1, "0 to 1"),
            ("quantum", self.quantum, self.quantum >= 1, "1 ms or more"),
            ("late_hysteresis", self.late_hysteresis, self.late_hysteresis >= 0, "0 ms or more"),
            ("lo_factor", self.lo_factor, 0 < self.lo_factor <= 1, "above 0, at most 1"),
            ("hi_factor", self.hi_factor, 1 <= self.hi_factor <= 100, "1 to 100"),
            ("outrun_factor", self.outrun_factor, 1.01 <= self.outrun_factor <= 100, "1.01 to 100"),
            ("progress_prior", self.progress_prior, 0 < self.progress_prior <= 1, "above 0, at most 1"),
            ("progress_doubt", self.progress_doubt, 0 < self.progress_doubt <= 1, "above 0, at most 1"),
            ("forecast_interval", self.forecast_interval, self.forecast_interval >= 1, "1 ms or more"),
            ("forecast_tolerance", self.forecast_tolerance, self.forecast_tolerance >= 1, "1 ms or more"),
            ("forecast_share", self.forecast_share, 0 <= self.forecast_share < 1, "0 to below 1"),
            ("forecast_depth", self.forecast_depth, self.forecast_depth >= 0, "0 or more"),
            ("shed_floor", self.shed_floor, 0 < self.shed_floor <= 100, "above 0, at most 100"),
            # Up to there what may be asked for until a deadline falls as time passes, whatever the decay.
            ("shed_extra", self.shed_extra, 0 <= self.shed_extra <= 7 * self.shed_floor, "0 to 7 shed_floor"),
            ("shed_decay", self.shed_decay, self.shed_decay >= 1, "1 ms or more"),
            ("shed_width", self.shed_width, 0 <= self.shed_width <= 1, "0 to 1"),
            ("shed_weight", self.shed_weight, 1 <= self.shed_weight <= 100, "1 to 100"),
            ("shed_step", self.shed_step, self.shed_step >= 1, "1 ms or more"),
            ("share_unknown", self.share_unknown, self.share_unknown >= 1, "1 ms or more"),
            ("trigger_share", self.trigger_share, 0 <= self.trigger_share <= 10, "0 to 10"),
            ("harm_least", self.harm_least, self.harm_least >= 1, "1 ms or more"),
            ("claim_margin", self.claim_margin, self.claim_margin >= 1, "1 ms or more"),
            ("move_least", self.move_least, self.move_least >= 0, "0 ms or more"),
            ("move_share", self.move_share, 0 <= self.move_share <= 10, "0 to 10"),
            ("move_step", self.move_step, self.move_step >= 1, "1 ms or more"),
            ("move_tries", self.move_tries, 0 <= self.move_tries <= 100, "0 to 100"),
            ("cap_window", self.cap_window, self.cap_window >= 1, "1 ms or more"),
            ("wasted_most", self.wasted_most, self.wasted_most >= 1, "1 or more"),
            ("failed_starts_most", self.failed_starts_most, self.failed_starts_most >= 1, "1 or more"),
            ("avoid_graces", self.avoid_graces, self.avoid_graces >= 1, "1 or more"),
            ("reserve_most", self.reserve_most, self.reserve_most >= 0, "0 or more"),
            ("reserve_share", self.reserve_share, 0 <= self.reserve_share <= 1, "0 to 1"),
            ("slot_grace", self.slot_grace, self.slot_grace >= 1, "1 ms or more"),
            ("launch_margin", self.launch_margin, self.launch_margin >= 0, "0 ms or more"),
            ("promise_calm", self.promise_calm, 0 <= self.promise_calm <= 1, "0 to 1"),
            ("promise_quiet", self.promise_quiet, self.promise_quiet >= 0, "0 ms or more"),
            ("promise_area", self.promise_area, self.promise_area >= 0, "0 or more"),
            ("promise_most", self.promise_most, self.promise_most >= 0, "0 or more"),
            ("promise_lead", self.promise_lead, self.promise_lead >= 0, "0 ms or more"),
            ("promise_moves", self.promise_moves, self.promise_moves >= 0, "0 or more"),
            ("promise_again", self.promise_again, self.promise_again >= 0, "0 or more"),
            ("reserve_slips", self.reserve_slips, self.reserve_slips >= 0, "0 or more"),
        )
        for name, value, fine, allowed in ranges:
            if not fine:
                raise ValueError(f"config.{name} is {value}; it must be {allowed}")
