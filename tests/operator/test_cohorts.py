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
async def test_a_lender_has_its_nominal_quota_back_and_nothing_nominal_is_suspended() -> None:
    async with cluster.run(nodes=2) as made:
        teams(made)
        for name in ("one", "two"):
            made.submit(name, group(run_for="3h"), queue="red", estimatedDuration="3h", deadlineIn="30h")
            await made.rest("1m")
        await made.until_all("Running", "one", "two")
        made.submit("mine", group(run_for="1h"), queue="blue", estimatedDuration="1h")
        await made.until(lambda: made.code("mine") == "QuotaExceeded", "the borrowers have a minimum run")
        await made.until_phase("mine", "Running", within="16m")
        assert made.condition("two", "Suspended")["reason"] == "Reclaimed"
        assert made.phase("one") == "Running"
        assert made.store.get(port.GPU_QUEUES, None, "blue")["status"]["reclaimedAt"]
        assert usage(made, "red")["borrowed"] in ("0", "8")
        await made.until(lambda: usage(made, "red")["borrowed"] == "0", "red has given back")
        await made.restart()
        await made.until_phase("mine", "Succeeded", within="2h")
        await made.until_all("Succeeded", "one", "two", within="9h")
        assert "runs" in made.status("two")
        assert [run["reason"] for run in made.status("one").get("runs", ())] in ([], ["Succeeded"])


@cluster.virtual
async def test_a_queue_knows_when_it_took_back_though_the_job_that_did_is_gone() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue("red", gpus=8, cohort="ml")
        made.queue("blue", gpus=16, cohort="ml")
        for name in ("one", "two", "three"):
            made.submit(name, group(run_for="9h"), queue="red", estimatedDuration="9h", deadlineIn="90h")
        await made.until_all("Running", "one", "two", "three")
        await made.rest("20m")
        made.submit("mine", group(run_for="1h"), queue="blue", estimatedDuration="1h")
        await made.until_phase("mine", "Running", within="5m")
        made.delete("mine")
        await made.restart()
        made.submit("other", group(run_for="1h", gpus=8), queue="blue", estimatedDuration="1h")
        made.submit("more", group(run_for="1h", gpus=8), queue="blue", estimatedDuration="1h")
        await made.rest("10m")
        ran = [name for name in ("one", "two", "three") if made.phase(name) == "Running"]
        assert len(ran) >= 2, "only one of them had to leave"
        await made.until_all("Running", "other", "more", within="20m")


@cluster.virtual
async def test_a_quota_that_is_lowered_evicts_nobody_until_somebody_needs_it() -> None:
    async with cluster.run(nodes=2) as made:
        teams(made, preemption={"reclaimWithinCohort": "Never"})
        for name in ("one", "two"):
            made.submit(name, group(run_for="2h"), queue="red", estimatedDuration="2h", deadlineIn="30h")
        await made.until_all("Running", "one", "two")
        made.patch(port.GPU_QUEUES, "red", {"spec": {"pools": [pool("all", gpus=0)]}})
        made.submit("mine", group(run_for="1h"), queue="blue", estimatedDuration="1h", deadlineIn="30h")
        await made.rest("1h")
        assert made.code("mine") == "QuotaExceeded"
        assert 'cohort "ml"' in made.status("mine")["pending"]["message"]
        assert usage(made, "red")["borrowed"] == "16"
        await made.until_all("Succeeded", "one", "two", "mine", within="9h")
        assert all("suspension" not in made.status(name) for name in ("one", "two"))


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
