"""A job of a trace as a DeadlineJob: the gang, what the operator is told of it, what kubelets make of it.

The operator gets the estimate, the kubelets the run time. Costs are said twice in the same way: as the
checkpoint of the spec, and as the `sim/*` annotations of the pods.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import durations, names, quantities, times
from lstqueue.evaluate import lives, workload
from lstqueue.topology import model as topology

NEVER = "99999d"
"""Between checkpoints of a job that saves nothing by itself: without any, a later start costs nothing."""


class CostError(ValueError):
    """Costs that the embedded kubelets do not have; the message says what to change."""


def check(costs: lives.Costs) -> None:
    """Refuse costs that pods cannot show.

    Raises:
        CostError: A later start is quicker than the first.
    """
    if costs.restore < costs.launch:
        raise CostError(
            f"--restore {durations.format(costs.restore)} is less than --launch "
            f"{durations.format(costs.launch)}: pods start alike each time, and then read what was saved; "
            "give a --restore that has both"
        )


def job(life: lives.Life, name: str, costs: lives.Costs) -> dict[str, Any]:
    """Return the DeadlineJob of this name."""
    work, estimate = life.work, life.estimate
    spec: dict[str, Any] = {
        "queue": life.queue or lives.QUEUE,
        "importance": work.importance,
        "value": work.value,
        "groups": [
            {"name": f"g{index}", "replicas": pods.count, "template": _template(work, pods, costs)}
            for index, pods in enumerate(work.pods)
        ],
    }
    if work.deadline is not None:
        spec["deadline"] = times.format(work.deadline)
    if estimate is not None:
        spec["estimatedDuration"] = durations.format(estimate.mid)
    checkpoint: dict[str, Any] = {"onSuspend": costs.saves_on_suspend}
    if costs.checkpoint:
        checkpoint["interval"] = durations.format(costs.checkpoint)
    if reading := costs.restore - costs.launch:
        checkpoint["restartOverhead"] = durations.format(reading)
    spec["checkpoint"] = checkpoint
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        # All templates are alike, so that nothing of them says how long a job runs: its figure does.
        "metadata": {"name": name, "labels": {names.LABEL_HISTORY: ""}},
        "spec": spec,
    }


def _template(work: workload.Work, pods: workload.Pods, costs: lives.Costs) -> dict[str, Any]:
    asked = {
        resource: quantities.format(resource, amount)
        for resource, amount in pods.requests
        if resource != topology.PODS
    }
    annotations = {
        "sim/start-after": durations.format(costs.bind + costs.launch),
        "sim/run-for": durations.format(work.duration),
        "sim/restore-for": durations.format(costs.restore - costs.launch),
        "sim/checkpoint-every": durations.format(costs.checkpoint) if costs.checkpoint else NEVER,
        "sim/checkpoint-on-term": "true" if costs.saves_on_suspend else "false",
        "sim/terminate-after": durations.format(costs.termination),
    }
    return {
        "metadata": {"annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": -(-costs.grace // 1000),
            "containers": [{"name": "train", "image": "example/train", "resources": {"limits": asked}}],
        },
    }
