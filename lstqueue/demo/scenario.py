"""From a trace to manifests: the queue, and a DeadlineJob for each job of the trace.

A job of up to eight GPUs is one pod; a wider one is a gang of whole nodes, with a leader group of one and a
worker group, as a training job would be. How long a pod runs is told to the embedded kubelets by annotation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lstqueue.api import durations, names, times
from lstqueue.demo import trace

GPUS_PER_NODE = 8
GPU = "nvidia.com/gpu"
NAMESPACE = "default"
QUEUE = "research"


def fitting(jobs: Iterable[trace.TraceJob], *, nodes: int) -> list[trace.TraceJob]:
    """Return the jobs that an empty cluster has room for; wider ones would wait for ever."""
    return [job for job in jobs if job.gpus <= nodes * GPUS_PER_NODE]


def queue(order: str, *, gpus: int) -> dict[str, Any]:
    """Return the GPUQueue over the whole cluster."""
    pool = {"name": "all", "resources": [{"name": GPU, "nominal": gpus}]}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GPUQueue",
        "metadata": {"name": QUEUE},
        "spec": {"order": order, "pools": [pool]},
    }


def deadline_job(job: trace.TraceJob, *, epoch: int) -> dict[str, Any]:
    """Return the DeadlineJob of a job of the trace; `epoch` is the trace's start, ms since the Unix epoch."""
    nodes, rest = divmod(job.gpus, GPUS_PER_NODE)
    if not nodes:
        groups = [_group("worker", 1, rest, job)]
    elif nodes == 1 and not rest:
        groups = [_group("worker", 1, GPUS_PER_NODE, job)]
    else:
        groups = [
            _group("leader", 1, GPUS_PER_NODE, job),
            _group("worker", nodes - 1 + bool(rest), GPUS_PER_NODE, job),
        ]
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        "metadata": {"name": f"trace-{job.number:03}", "namespace": NAMESPACE},
        "spec": {
            "queue": QUEUE,
            "deadline": times.format(epoch + job.deadline),
            "estimatedDuration": durations.format(job.duration),
            "groups": groups,
        },
    }


def _group(name: str, replicas: int, gpus: int, job: trace.TraceJob) -> dict[str, Any]:
    container = {
        "name": "train",
        "image": "example/train",
        "resources": {"limits": {GPU: gpus}},
    }
    return {
        "name": name,
        "replicas": replicas,
        "template": {
            "metadata": {"annotations": {"sim/run-for": f"{job.duration // 1000}s"}},
            "spec": {"containers": [container]},
        },
    }
