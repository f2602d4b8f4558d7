"""Two teams in a cohort: what one does not use the other may; queues that cannot stand together say so."""

from __future__ import annotations

import cluster
from manifests import group, pool

from lstqueue.kube import port


def teams(made: cluster.Cluster, **more: object) -> None:
    made.queue("red", gpus=8, cohort="ml", **more)
    made.queue("blue", gpus=8, cohort="ml", **more)


def queue_condition(made: cluster.Cluster, queue: str, kind: str) -> dict[str, object]:
    conditions = made.store.get(port.GPU_QUEUES, None, queue).get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == kind), {})


def usage(made: cluster.Cluster, queue: str) -> dict[str, object]:
    rows = made.store.get(port.GPU_QUEUES, None, queue).get("status", {}).get("usage", ())
    return rows[0] if rows else {}


@cluster.virtual
async def test_a_team_runs_on_what_the_other_lends_and_both_say_so() -> None:
    async with cluster.run(nodes=2) as made:
        teams(made)
        for name in ("one", "two"):
            made.submit(name, group(run_for="1h"), queue="red", estimatedDuration="1h", deadlineIn="9h")
        await made.until_all("Running", "one", "two")
        await made.until(lambda: usage(made, "red").get("borrowed") == "8", "red has borrowed")
        assert (usage(made, "red")["used"], usage(made, "blue")["borrowed"]) == ("16", "0")
        assert queue_condition(made, "red", "Conflict")["status"] == "False"
        await made.until_all("Succeeded", "one", "two", within="2h")


@cluster.virtual
async def test_a_cohort_shares_its_nodes_with_no_other_and_the_younger_queue_stands_still() -> None:
    async with cluster.run(nodes=2) as made:
        teams(made, order="edf")
        await made.rest("1m")
        made.queue("green", gpus=8, cohort="web")
        made.submit("one", group(run_for="1h"), queue="green", estimatedDuration="1h", deadlineIn="9h")
        await made.until(lambda: made.code("one") == "QueueConflict", "its queue admits nobody")
        await made.until(
            lambda: queue_condition(made, "green", "Conflict").get("status") == "True", "it says so"
        )
        assert "select other nodes" in str(queue_condition(made, "green", "Conflict")["message"])
        made.patch(port.GPU_QUEUES, "green", {"spec": {"cohort": "ml"}})
        await made.until_phase("one", "Running")
        await made.until(lambda: queue_condition(made, "green", "OrderOverridden"), "another order holds")
        said = queue_condition(made, "green", "OrderOverridden")["message"]
        assert said == 'Jobs go in the order edf of the oldest queue of cohort "ml", and not in lst.'
        assert queue_condition(made, "green", "Conflict")["status"] == "False"
        made.patch(port.GPU_QUEUES, "green", {"spec": {"pools": [pool("other", nodeSelector={"zone": "b"})]}})
        await made.until_phase("one", "Succeeded", within="2h")
