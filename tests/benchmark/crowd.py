"""Thousands of jobs on an embedded cluster in a process of its own, for benchmarks."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from lstqueue.kube import port

NODES = 250
HERE = pathlib.Path(__file__).resolve().parent


@contextlib.asynccontextmanager
async def cluster(nodes: int) -> AsyncIterator[str]:
    script = str(HERE / "cluster_process.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, str(nodes), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        assert url.startswith("http://"), "the cluster process did not start"
        yield url
    finally:
        last_words, _ = await process.communicate(b"")
        print(last_words.decode().strip())


def template(*, seconds: int, gpus: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"metadata": {"annotations": {"sim/run-for": f"{seconds}s"}}, "spec": {"containers": [container]}}


def gang(
    number: int, *, replicas: int = 1, seconds: int = 1, importance: int = 0, gpus: int = 8
) -> dict[str, Any]:
    pods = template(seconds=seconds, gpus=gpus)
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": f"job-{number:05}", "namespace": "default"},
        "spec": {
            "queue": "bench",
            "deadlineIn": f"{2 + number % 48}h",
            "estimatedDuration": f"{seconds}s",
            "importance": importance,
            "groups": [{"name": "worker", "replicas": replicas, "template": pods}],
        },
    }


def labelled(number: int, *, replicas: int = 1, seconds: int = 1, gpus: int = 8) -> dict[str, Any]:
    """Return a suspended Indexed Job with the queue's label, as its user would write it."""
    deadline, pods = f"{2 + number % 48}h", template(seconds=seconds, gpus=gpus)
    pods["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number:05}",
            "namespace": "default",
            "labels": {"lstqueue.dev/queue": "bench"},
            "annotations": {
                "lstqueue.dev/deadline-in": deadline,
                "lstqueue.dev/estimated-duration": f"{seconds}s",
            },
        },
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "parallelism": replicas,
            "completions": replicas,
            "backoffLimit": 0,
            "template": pods,
        },
    }


async def submit(
    api: port.KubeApi,
    count: int,
    *,
    resource: port.Resource = port.DEADLINE_JOBS,
    make: Callable[[int], dict[str, Any]] = gang,
) -> None:
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            await api.create(resource, "default", make(number))

    await asyncio.gather(*(one_after_the_other() for _ in range(16)))


def queue(nodes: int = NODES) -> dict[str, Any]:
    """Return a queue that has all GPUs of so many nodes."""
    pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": nodes * 8}]}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "GPUQueue",
        "metadata": {"name": "bench"},
        "spec": {"pools": [pool]},
    }
