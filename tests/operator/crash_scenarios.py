"""Small worlds in which much is written, for troubles at each write; and what became of everybody in them.

A scenario is a script of what users, administrators and hardware do. It begins calmly; what is written from
`act` on may go wrong. Its outcome is what users see at the end, of each job by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

import cluster
from existing import Existing
from manifests import group
from pytorch import PyTorch

from lstqueue.api import conditions
from lstqueue.kube import port

SAVES = {"interval": "30m", "onSuspend": True}


class End(NamedTuple):
    """How one job ended: what of it must not depend on when the operator was there."""

    phase: str
    attempt: int
    restarts: int
    runs: tuple[str, ...]
    missed: bool


Outcome = dict[str, tuple[End, ...]]
"""Ends by name of the DeadlineJob, or of the Job it speaks for; more than one is a ledger too many."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`names` must be over at the end, within `within` from `act` on.

    `unseen` may be over before anybody has seen them, if the operator is away: then nothing tells of them.
    """

    nodes: int
    begin: Callable[[cluster.Cluster], Awaitable[None]]
    act: Callable[[cluster.Cluster], Awaitable[None]]
    names: tuple[str, ...]
    unseen: tuple[str, ...] = ()
    within: str = "12h"


def outcome(made: cluster.Cluster) -> Outcome:
    """Return how everybody ended."""
    found: dict[str, list[End]] = {}
    for raw in made.store.list(port.DEADLINE_JOBS):
        status = raw.get("status") or {}
        missed = any(
            item["type"] == conditions.Type.DEADLINE_MISSED and item["status"] == "True"
            for item in status.get("conditions") or ()
        )
        name = (raw["spec"].get("jobRef") or raw["metadata"])["name"]
        end = End(
            phase=status.get("phase", ""),
            attempt=status.get("attempt", 0),
            restarts=status.get("restarts", 0),
            runs=tuple(run["reason"] for run in status.get("runs") or ()),
            missed=missed,
        )
        found.setdefault(name, []).append(end)
    return {name: tuple(sorted(ends)) for name, ends in sorted(found.items())}


def over(made: cluster.Cluster, name: str) -> bool:
    """Whether a job is over, or a user's own Job was before anybody saw it."""
    ends = outcome(made).get(name)
    if ends is None:
        found = made.store.find(port.JOBS, cluster.NAMESPACE, name)
        return found is not None and bool(Existing(made).over(name))
    return all(end.phase in cluster.FINAL for end in ends)


async def nothing(made: cluster.Cluster) -> None:
    made.queue()


# Admissions and completions


async def admissions(made: cluster.Cluster) -> None:
    """Three want the same nodes at once: one is first, whoever is in doubt holds what was decided."""
    made.submit("pair", group("leader", run_for="10m"), group("worker", 2, gpus=4, run_for="10m"))
    made.submit("whole", group("worker", 2, run_for="10m"), deadlineIn="2h", estimatedDuration="10m")
    made.submit("last", group(gpus=1, run_for="5m"))


# Preemption


async def two_holders(made: cluster.Cluster) -> None:
    made.queue()
    for name in ("one", "two"):
        made.submit(name, group(run_for="3h"), estimatedDuration="3h", checkpoint=SAVES)
    await made.until_all("Running", "one", "two")
    await made.rest("30m")


async def preemption(made: cluster.Cluster) -> None:
    """A gang at its last moment needs the nodes of two others."""
    made.submit("gang", group("worker", 2, run_for="30m"), deadlineIn="50m", estimatedDuration="30m")


async def own_holder(made: cluster.Cluster) -> None:
    made.queue()
    Existing(made).create("held", said={"estimated-duration": "3h"}, run_for="3h")
    await Existing(made).until_phase("held", "Running")
    await made.rest("30m")


async def own_preemption(made: cluster.Cluster) -> None:
    """A user's own gang makes room for another one of a user's own."""
    said = {"estimated-duration": "30m", "deadline-in": "50m"}
    Existing(made).create("urgent", said=said, run_for="30m")


async def pytorch_holder(made: cluster.Cluster) -> None:
    made.queue()
    leaves = {"terminate_after": "20s", "restart": "Never"}
    PyTorch(made).create("held", said={"estimated-duration": "3h"}, run_for="3h", **leaves)
    await PyTorch(made).until_phase("held", "Running")
    await made.rest("30m")


async def pytorch_preemption(made: cluster.Cluster) -> None:
    """A PyTorchJob makes room for another; resumed over a pod that leaves it would fail for good."""
    said = {"estimated-duration": "30m", "deadline-in": "55m"}
    PyTorch(made).create("urgent", said=said, run_for="30m", on_master={"run-for": "20m"})


# Failures


async def failure(made: cluster.Cluster) -> None:
    """A gang of which a member fails each time begins again once, and ends; another waits for its room."""
    made.submit(
        "fails",
        group("leader", run_for="1h"),
        group("worker", fail_after="5m"),
        backoffLimit=1,
        importance=1,
    )
    made.submit("next", group("worker", 2, run_for="5m"))


async def running_pair(made: cluster.Cluster) -> None:
    made.queue()
    made.submit("gang", group("worker", 2, run_for="1h"), estimatedDuration="1h", checkpoint=SAVES)
    await made.until_phase("gang", "Running")
    await made.rest("5m")


async def lost_node(made: cluster.Cluster) -> None:
    """A node dies under a gang, and comes back when its gang has long found another."""
    node = made.placement("gang")[0]
    made.world.fail_node(node)
    await made.until(lambda: made.status("gang")["attempt"] == 2, "it goes elsewhere")
    await made.until_phase("gang", "Running")
    await made.rest("10m")
    made.world.heal_node(node)


async def failed_start(made: cluster.Cluster) -> None:
    """Somebody takes a node between the decision and the start: the gang backs off and goes elsewhere."""
    made.submit("gang", group("worker", 2, run_for="10m", start_after="1m"))
    await made.until_phase("gang", "Admitted")
    made.foreign_pod("intruder", made.placement("gang")[0])
    await made.until_phase("gang", "Succeeded", within="3h")
    made.delete("intruder", port.PODS)


# Users' own Jobs


async def own_gang(made: cluster.Cluster) -> None:
    """Two labelled Jobs want the same nodes at once."""
    jobs = Existing(made)
    jobs.create("first", run_for="10m", said={"estimated-duration": "10m"})
    jobs.create("second", run_for="10m", said={"estimated-duration": "10m", "deadline-in": "4h"})


async def bag(made: cluster.Cluster) -> None:
    """A labelled Job of independent pods beside a gang that waits for the last of them."""
    jobs = Existing(made)
    jobs.create("bag", completions=5, indexed=False, run_for="10m", said={"estimated-duration": "30m"})
    await jobs.until_phase("bag", "Running")
    made.submit("gang", group("worker", 2, run_for="5m"))


async def on_sight(made: cluster.Cluster) -> None:
    """Labelled Jobs that run before anybody saw them: one is stopped and queued, the other counted as is."""
    jobs = Existing(made)
    jobs.create("stopped", parallelism=1, completions=1, suspend=False, run_for="10m")
    adopt = {"adopt": "true"}
    jobs.create("adopted", parallelism=1, completions=1, suspend=False, run_for="10m", said=adopt)


# Pauses and ends that users want


async def pause(made: cluster.Cluster) -> None:
    """A user pauses a gang while it runs, and lets it go on an hour later."""
    made.edit("gang", active=False)
    await made.until_phase("gang", "Pending")
    await made.rest("1h")
    made.edit("gang", active=True)


async def mixed_holders(made: cluster.Cluster) -> None:
    made.queue()
    made.submit("inline", group(run_for="1h"), estimatedDuration="1h", checkpoint=SAVES)
    Existing(made).create("own", parallelism=1, completions=1, run_for="1h")
    await made.until_phase("inline", "Running")
    await Existing(made).until_phase("own", "Running")
    await made.rest("5m")


async def drain(made: cluster.Cluster) -> None:
    """A queue is drained of a gang and a user's own Job, and opened again."""
    made.patch_queue(stopPolicy="HoldAndDrain")
    await made.until_phase("inline", "Pending")
    await Existing(made).until_phase("own", "Pending")
    await made.rest("1h")
    made.patch_queue(stopPolicy="None")


async def removal(made: cluster.Cluster) -> None:
    """A running gang is deleted, and one that was to be forgotten soon is over."""
    made.submit("short", group("worker", 2, run_for="5m"), ttlSecondsAfterFinished=60)
    made.delete("gang")
    await made.until(lambda: "short" not in outcome(made), "it is forgotten")
    made.submit("next", group("worker", 2, run_for="5m"))


SCENARIOS: dict[str, Scenario] = {
    "admissions": Scenario(2, nothing, admissions, ("pair", "whole", "last")),
    "preemption": Scenario(2, two_holders, preemption, ("one", "two", "gang")),
    "preemption of own Jobs": Scenario(2, own_holder, own_preemption, ("held", "urgent")),
    "preemption of PyTorchJobs": Scenario(2, pytorch_holder, pytorch_preemption, ("held", "urgent")),
    "failure": Scenario(2, nothing, failure, ("fails", "next")),
    "lost node": Scenario(3, running_pair, lost_node, ("gang",)),
    "failed start": Scenario(3, nothing, failed_start, ("gang",)),
    "own gang": Scenario(2, nothing, own_gang, ("first", "second")),
    "bag": Scenario(2, nothing, bag, ("bag", "gang")),
    "on sight": Scenario(2, nothing, on_sight, ("stopped", "adopted"), ("stopped", "adopted")),
    "pause": Scenario(2, running_pair, pause, ("gang",)),
    "drain": Scenario(2, mixed_holders, drain, ("inline", "own")),
    "removal": Scenario(2, running_pair, removal, ("next",)),
}
