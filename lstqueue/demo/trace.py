"""The shipped slice of a trace, with deadlines drawn by a stated rule."""

from __future__ import annotations

import csv
import importlib.resources
import random
from dataclasses import dataclass

SLICE = "elasticflow-cluster03-slice.csv"
TIGHTEST, LOOSEST = 1.1, 3.0


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job: `submit` and `deadline` in ms from the start of the trace, `duration` in ms at full gang."""

    number: int
    submit: int
    gpus: int
    duration: int
    deadline: int


def load(*, seed: int, jobs: int | None = None) -> list[TraceJob]:
    """Return the first `jobs` of the slice (all without it), deadlines at submit + U(1.1, 3.0) × duration.

    The draws come from `random.Random(seed)`, one for each row in file order, whatever `jobs` is.
    """
    draw = random.Random(seed)  # noqa: S311 - a simulation, no secret
    text = importlib.resources.files(__package__).joinpath("data", SLICE).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    first = int(rows[0]["submission_time"])
    found = []
    for number, row in enumerate(rows):
        submit, duration = (int(row["submission_time"]) - first) * 1000, int(row["duration"]) * 1000
        deadline = submit + int(draw.uniform(TIGHTEST, LOOSEST) * duration)
        found.append(TraceJob(number, submit, int(row["num_gpu"]), duration, deadline))
    return found[:jobs]
