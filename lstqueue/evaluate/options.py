"""What a replay may be told, each option once, with its default, as the command line has it.

Every command that replays takes all of `Replayed`, so what one of them can do the others can. The click
options are made from these fields (`cli_options`), and a test holds both to each other. What the texts come
to is the business of `setup`: nothing here reads or checks anything, and `lstqueue --help` need not wait.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COSTS = ("launch", "restore", "checkpoint", "grace", "termination", "bind", "lag")
"""Fields of `lives.Costs` that are options of the same name; those of a start are the first and `bind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What says which jobs come, and how many GPUs are there for them; a bound depends on no more.

    `costs` are durations by field of `lives.Costs`. `fits` is the number of nodes for which gangs are left
    out that do not fit, where it is not `nodes`; no option, but what a sweep over `nodes` sets.
    """

    nodes: int | None = None
    gpus_per_node: int | None = None
    inventory: str | None = None
    deadlines: str = "file"
    best_effort: float = 0.0
    shake: str = "0s"
    limit: int | None = None
    settings: str = "default"
    costs: Mapping[str, str] = field(default_factory=dict)
    warm_up: str = "0s"
    cool_down: str = "0s"
    fits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Loaded):
    """What every replay may be told beside that, but for its trace, its policy and its seed."""

    queues: str | None = None
    estimates: str = "exact"
    saves_on_suspend: bool = False
    failures: float = 0.0
    gpu_failures: float = 0.0
    drains: float = 0.0
    repair: str = "4h"
    maintenance: str | None = None
    topology: str | None = None
    communication: float = 0.0
    prefer: str | None = None
    max_wait: str | None = None
    pass_every: str = "1s"  # noqa: S105 - no password, a time between passes
    verdicts: bool = True
    invariants: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class One(Replayed):
    """One replay: the trace, the policy, what is drawn, and whether to work out the fluid bound."""

    trace: str
    policy: str = "lst"
    seed: int = 1
    bound: bool = False


DEFAULTS: Mapping[str, Any] = {
    one.name: one.default for one in dataclasses.fields(Replayed) if one.default is not dataclasses.MISSING
}
"""By the name of the option, with `_` for `-`."""


def path_of(trace: str) -> str:
    """The path of a FORMAT:PATH."""
    return trace.partition(":")[2]


def shared(asked: Replayed) -> dict[str, Any]:
    """What one command was told that every replay of it is."""
    return {one.name: getattr(asked, one.name) for one in dataclasses.fields(Replayed)}
