"""A cluster in which deadlines are promised, and what is to be seen of it in statuses."""

from __future__ import annotations

import cluster
from manifests import group

GUARDED = {"minRunTime": "2d"}
"""Nobody is suspended for another before it has run so long, but for a slot."""


def condition(made: cluster.Cluster, name: str, kind: str) -> tuple[str, str] | None:
    for one in made.status(name).get("conditions") or ():
        if one["type"] == kind:
            return one["status"], one["reason"]
    return None


def level(made: cluster.Cluster, name: str) -> str:
    return str((made.status(name).get("verdict") or {}).get("level"))


def missed(made: cluster.Cluster, name: str) -> bool:
    return condition(made, name, "DeadlineMissed") == ("True", "DeadlineMissed")


async def promised(made: cluster.Cluster) -> None:
    """One node that somebody has for long, whom nobody else can have suspended, and a promise."""
    made.queue(promises=True, preemption=GUARDED)
    made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
    await made.until_phase("holder", "Running")
    made.submit("report", group(run_for="1h"), deadlineIn="10h", estimatedDuration="1h")
    await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised")
