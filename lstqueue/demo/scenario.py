"""From what is asked for to manifests: the queue, and a DeadlineJob or a Job for each job of the trace.

A gang of up to eight GPUs is one pod, a wider one takes whole nodes. An inline one of several pods has a
leader group of one and a worker group, as a training job would; a user's own Job is Indexed, and says in a
label and annotations what a DeadlineJob says in fields. How long a pod runs, and what it saves, is told to
the kubelets by `sim/` annotations, to the operator by estimate and checkpoint: the same figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lstqueue.api import durations, names, times
from lstqueue.demo import mix, trace
from lstqueue.kube import port

GPUS_PER_NODE = 8
GPU = "nvidia.com/gpu"
NAMESPACE = "default"
QUEUE = "research"
SLOTS = 4
"""How many pods of a bag run at once at most."""

Object = dict[str, Any]

UNLIKE = {names.LABEL_HISTORY: ""}
"""All templates are alike here, so that they say nothing of how long a job runs."""


def fitting(jobs: Iterable[trace.TraceJob], *, nodes: int) -> list[trace.TraceJob]:
    """Return the jobs that an empty cluster has room for; wider ones would wait for ever."""
    return [job for job in jobs if job.gpus <= nodes * GPUS_PER_NODE]


def queue(order: str, *, gpus: int) -> Object:
    """Return the GPUQueue over the whole cluster; under fifo nobody is ever suspended for another."""
    pool = {"name": "all", "resources": [{"name": GPU, "nominal": gpus}]}
    spec: Object = {"order": order, "pools": [pool]}
    if order == "fifo":
        spec["preemption"] = {"withinQueue": "Never"}
        spec["overload"] = {"shedding": False}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GPUQueue",
        "metadata": {"name": QUEUE},
        "spec": spec,
    }


def manifest(ask: mix.Ask) -> tuple[port.Resource, Object]:
    """Return what its user creates."""
    if ask.kind is mix.Kind.INLINE:
        return port.DEADLINE_JOBS, _deadline_job(ask)
    return port.JOBS, _bag(ask) if ask.kind is mix.Kind.BAG else _indexed(ask)


def _deadline_job(ask: mix.Ask) -> Object:
    job = ask.job
    template = _template(ask, min(job.gpus, GPUS_PER_NODE), job.duration)
    pods = _pods(job)
    counts = {"worker": 1} if pods == 1 else {"leader": 1, "worker": pods - 1}
    spec: Object = {
        "queue": QUEUE,
        "estimatedDuration": durations.format(job.duration),
        "groups": [{"name": name, "replicas": count, "template": template} for name, count in counts.items()],
    }
    if ask.deadline is not None:
        spec["deadline"] = times.format(ask.deadline)
    if ask.saves is not None:
        spec["checkpoint"] = {
            "interval": durations.format(mix.INTERVAL),
            "onSuspend": ask.saves.on_suspend,
            "restartOverhead": durations.format(mix.RESTORE),
        }
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        "metadata": {"name": ask.name, "namespace": NAMESPACE, "labels": UNLIKE},
        "spec": spec,
    }


def _indexed(ask: mix.Ask) -> Object:
    pods = _pods(ask.job)
    said = {"estimated-duration": durations.format(ask.job.duration)}
    if ask.deadline is not None:
        said["deadline"] = times.format(ask.deadline)
    if ask.saves is not None:
        said["checkpoint-interval"] = durations.format(mix.INTERVAL)
        said["checkpoint-on-suspend"] = "true" if ask.saves.on_suspend else "false"
        said["restart-overhead"] = durations.format(mix.RESTORE)
    template = _template(ask, min(ask.job.gpus, GPUS_PER_NODE), ask.job.duration)
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template}
    return _job(ask, said, spec)


def _bag(ask: mix.Ask) -> Object:
    slots = min(ask.job.gpus, SLOTS)
    said = {
        "estimated-duration": durations.format(ask.job.duration),
        "deadline-at": f"{mix.MORNING} {mix.ZONE}",
    }
    template = _template(ask, ask.job.gpus // slots, ask.job.duration // mix.ROUNDS)
    return _job(ask, said, {"completions": slots * mix.ROUNDS, "parallelism": slots, "template": template})


def _job(ask: mix.Ask, said: dict[str, str], spec: Object) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": ask.name,
            "namespace": NAMESPACE,
            "labels": {names.LABEL_QUEUE: QUEUE, **UNLIKE},
            "annotations": {f"{names.GROUP}/{key}": value for key, value in said.items()},
        },
        "spec": {"suspend": True, **spec},
    }


def _pods(job: trace.TraceJob) -> int:
    """How many pods a gang has."""
    return -(-job.gpus // GPUS_PER_NODE)


def _template(ask: mix.Ask, gpus: int, run_for: int) -> Object:
    annotations = {"sim/run-for": f"{run_for // 1000}s"}
    if ask.saves is not None:
        annotations["sim/checkpoint-every"] = durations.format(mix.INTERVAL)
        annotations["sim/checkpoint-on-term"] = "true" if ask.saves.on_suspend else "false"
        annotations["sim/restore-for"] = durations.format(mix.RESTORE)
    container = {"name": "train", "image": "example/train", "resources": {"limits": {GPU: gpus}}}
    return {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
