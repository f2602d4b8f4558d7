"""Why a job waits, as JSON for whoever asks: the engine's explanation of the last pass, in the API's terms.

A rendering only: the numbers are those the pass decided with. It is built when asked for, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstqueue.api import quantities, times
from lstqueue.engine import explain, model
from lstqueue.operator import allowances
from lstqueue.topology import model as topology


def tell(
    snapshot: model.Snapshot, plan: model.Plan, uid: str, quotas: allowances.Allowances
) -> dict[str, Any]:
    """Return the explanation of one job.

    Args:
        snapshot: What the pass saw.
        plan: What it made of that.
        uid: The job.
        quotas: The ResourceQuotas, of which the engine knows nothing.

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
        "blockers": [*map(_blocker, found.blockers), *_quota_blockers(quotas, uid)],
        "change": found.change,
        "preemption": found.preemption,
        "at": times.format(plan.now),
    }
    if found.start is not None:
        told["start"] = {"earliest": times.format(found.start[0]), "latest": times.format(found.start[1])}
    return told


def _blocker(found: model.Blocker) -> dict[str, str]:
    told = {
        "kind": "DeadlineJob" if found.uid else "Pod",
        "namespace": found.namespace,
        "name": found.name,
        "how": found.how,
    }
    return told | {"node": found.node} if found.node else told


def _quota_blockers(quotas: allowances.Allowances, uid: str) -> Iterator[dict[str, str]]:
    """The ResourceQuotas that a waiting job is too large for now, and who else is charged to them."""
    namespace, short, holders = quotas.in_the_way(uid)
    for name in short:
        yield {"kind": "ResourceQuota", "namespace": namespace, "name": name, "how": "limiting"}
    for name in holders[: explain.MOST]:
        yield {"kind": "DeadlineJob", "namespace": namespace, "name": name, "how": "holding"}


def _amounts(resources: topology.Resources) -> dict[str, str]:
    return {name: quantities.format(name, amount) for name, amount in resources}
