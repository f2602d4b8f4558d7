"""Why a job waits, as JSON for whoever asks: the engine's explanation of the last pass, in the API's terms.

A rendering only: the numbers are those the pass decided with. It is built when asked for, and not before.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import quantities, times
from lstqueue.engine import explain, model
from lstqueue.topology import model as topology


def tell(snapshot: model.Snapshot, plan: model.Plan, uid: str) -> dict[str, Any]:
    """Return the explanation of one job.

    Raises:
        ValueError: the pass knew no such job.
    """
    found = explain.explain(snapshot, plan, uid)
    told: dict[str, Any] = {
        "code": found.code.value if found.code else None,
        "message": found.message,
        "needed": _amounts(found.needed),
        "free": _amounts(found.free),
        "podsThatFitNow": found.largest,
        "blockers": [
            {"namespace": blocker.namespace, "name": blocker.name, "how": blocker.how}
            for blocker in found.blockers
        ],
        "change": found.change,
        "preemption": found.preemption,
        "at": times.format(plan.now),
    }
    if found.start is not None:
        told["start"] = {"earliest": times.format(found.start[0]), "latest": times.format(found.start[1])}
    return told


def _amounts(resources: topology.Resources) -> dict[str, str]:
    return {name: quantities.format(name, amount) for name, amount in resources}
