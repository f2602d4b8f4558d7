"""Rules that give the jobs of a trace their deadlines, where the trace has none or others are wanted.

| rule | deadline |
|---|---|
| `file` | as the trace has it |
| `uniform:A:B` | submit + U(A, B) × run time |
| `factor:X` | submit + X × run time |
| `sdsc` | submit + max(U(1.1, 3.0) × run time, run time + 15 min), for batch machines with short jobs |
| `none` | nobody has one |

Draws come from `random.Random(seed)`, one for each row of the file in its order, dropped rows included, so
that a job's deadline depends on the seed and its row alone. Jobs that the trace itself declares best effort
keep having none. A share of the others can be made best effort, by draws of their own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lstqueue.evaluate import workload

LOOSEST = 1000.0
"""The largest factor that is no slip."""
SDSC = (1.1, 3.0)
SDSC_MARGIN = 900_000


class DeadlineError(ValueError):
    """A rule that cannot be read or does not suit the trace; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by name; `low` and `high` are the factors it draws from."""

    name: str
    low: float = 0.0
    high: float = 0.0


FORMS = "file, uniform:A:B, factor:X, sdsc or none"


def parse(text: str) -> Rule:
    """Read a rule as the command line has it.

    Raises:
        DeadlineError: No such rule, or factors it cannot have.
    """
    name, *arguments = text.split(":")
    if name in ("file", "sdsc", "none") and not arguments:
        return Rule(name, *(SDSC if name == "sdsc" else ()))
    if name == "factor" and len(arguments) == 1:
        factor = _factor(arguments[0], text)
        return Rule(name, factor, factor)
    if name == "uniform" and len(arguments) == 2:
        low, high = (_factor(argument, text) for argument in arguments)
        if low > high:
            raise DeadlineError(f"{text!r} draws from {low} to {high}; write the smaller factor first")
        return Rule(name, low, high)
    raise DeadlineError(f"{text!r} is no rule for deadlines; it must be {FORMS}")


def apply(trace: workload.Workload, rule: Rule, *, seed: int, best_effort: float = 0.0) -> workload.Workload:
    """Return the trace with the deadlines of `rule`.

    Args:
        trace: As read, whole or cut.
        rule: What sets them.
        seed: Of all draws.
        best_effort: Share of the jobs with a deadline that lose it, 0 to 1.

    Raises:
        DeadlineError: The rule is `file` and the trace has no deadlines, or the share is out of range.
    """
    if not 0 <= best_effort <= 1:
        raise DeadlineError(f"the best-effort share is {best_effort}; it must be 0 to 1")
    if rule.name == "file" and _lacks(trace):
        raise DeadlineError(
            f"--deadlines file: {trace.name} has no deadlines of its own; give a rule that sets them, as in "
            "--deadlines uniform:1.1:3.0, or --deadlines none"
        )
    rows = 1 + max((work.row for work in trace.works), default=-1)
    factors = list(_draws(rule, rows, seed))
    # Of their own, so that the share moves nobody's deadline.
    chance = random.Random(f"{seed}/best-effort")  # noqa: S311 - a simulation, no secret
    spared = [chance.random() >= best_effort for _ in range(rows)]
    works = [
        replace(work, deadline=_deadline(work, rule, factors[work.row]) if spared[work.row] else None)
        for work in trace.works
    ]
    return replace(trace, works=tuple(works))


def _draws(rule: Rule, rows: int, seed: int) -> Iterator[float]:
    draw = random.Random(seed)  # noqa: S311 - a simulation, no secret
    for _ in range(rows):
        yield draw.uniform(rule.low, rule.high)


def _deadline(work: workload.Work, rule: Rule, factor: float) -> int | None:
    if rule.name == "none" or work.undated:
        return None
    if rule.name == "file":
        return work.deadline
    span = int(factor * work.duration)
    if rule.name == "sdsc":
        span = max(span, work.duration + SDSC_MARGIN)
    return work.submit + span


def _lacks(trace: workload.Workload) -> bool:
    """Whether no job has a deadline, and that is not what the trace says of each."""
    return all(work.deadline is None for work in trace.works) and not all(
        work.undated for work in trace.works
    )


def _factor(text: str, rule: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 < factor <= LOOSEST:
        raise DeadlineError(f"{rule!r} has {text!r} as a factor; it must be above 0, at most {LOOSEST:.0f}")
    return factor
