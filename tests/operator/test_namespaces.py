"""Whose jobs a queue takes, and which queue a job is in that names none: both by labels of namespaces."""

from __future__ import annotations

import cluster
from manifests import group

from lstqueue.api import names
from lstqueue.kube import port

SELECTOR = {"matchLabels": {"team": "vision"}}


def label(made: cluster.Cluster, **labels: str | None) -> None:
    made.patch(port.NAMESPACES, cluster.NAMESPACE, {"metadata": {"labels": labels}})


@cluster.virtual
async def test_a_job_of_a_namespace_that_its_queue_does_not_take_waits_until_it_does() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(namespaceSelector=SELECTOR)
        made.submit("job", group(run_for="1h"))
        await made.until(lambda: made.code("job") == "NamespaceNotSelected", "it is told")
        message = made.status("job")["pending"]["message"]
        assert "Queue research" in message
        assert "namespaceSelector" in message
        await made.rest("1h")
        assert made.status("job").get("attempt", 0) == 0
        label(made, team="vision")
        await made.until_phase("job", "Running", within="1m")
        label(made, team=None)
        await made.until_phase("job", "Succeeded", within="2h")


@cluster.virtual
async def test_a_job_without_a_queue_is_in_that_of_its_namespace() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit_spec("job", {"groups": [group(run_for="1h")]})
        await made.until(lambda: made.code("job") == "QueueNotSet", "it is told")
        assert names.LABEL_DEFAULT_QUEUE in made.status("job")["pending"]["message"]
        assert "queue" not in made.status("job")
        label(made, **{names.LABEL_DEFAULT_QUEUE: cluster.QUEUE})
        await made.until_phase("job", "Running", within="1m")
        assert made.status("job")["admission"]["queue"] == cluster.QUEUE
        await made.until_phase("job", "Succeeded", within="2h")
        assert made.status("job")["queue"] == cluster.QUEUE


@cluster.virtual
async def test_a_default_queue_that_does_not_exist_is_named() -> None:
    async with cluster.run(nodes=1) as made:
        label(made, **{names.LABEL_DEFAULT_QUEUE: "missing"})
        made.submit_spec("job", {"groups": [group(run_for="1h")]})
        await made.until(lambda: made.code("job") == "QueueNotFound", "it is told")
        assert made.status("job")["queue"] == "missing"
        made.queue("missing")
        await made.until_phase("job", "Succeeded", within="2h")


@cluster.virtual
async def test_a_job_that_runs_stays_in_its_queue_when_the_default_changes() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.queue("other")
        label(made, **{names.LABEL_DEFAULT_QUEUE: cluster.QUEUE})
        made.submit_spec("job", {"groups": [group(run_for="1h")]})
        await made.until_phase("job", "Running")
        label(made, **{names.LABEL_DEFAULT_QUEUE: "other"})
        await made.rest("10m")
        assert made.status("job")["admission"]["queue"] == cluster.QUEUE
        await made.until_phase("job", "Succeeded", within="2h")
