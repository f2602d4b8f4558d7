"""Sweeps: enough of the jobs make their deadline, the others give way, and a failure brings the next."""

from __future__ import annotations

import cluster
from manifests import group, own

from lstqueue.api import names
from lstqueue.kube import port

SWEEP = {"sweep": {"name": "lr-search", "need": 2}}


def trial(made: cluster.Cluster, name: str, run_for: str, **more: object) -> None:
    fields: cluster.Object = {"deadlineIn": "20h", "estimatedDuration": run_for, **SWEEP, **more}
    made.submit(name, group(run_for=run_for), **fields)


@cluster.virtual
async def test_once_enough_are_at_work_the_others_have_no_deadline() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        for number, hours in enumerate(("2h", "3h", "4h", "5h")):
            trial(made, f"trial-{number}", hours)
        await made.until_all("Running", "trial-0", "trial-1")
        await made.until(lambda: made.status("trial-3").get("spare"), "it is told")
        status = made.status("trial-3")
        assert status["verdict"]["level"] == "UNKNOWN"
        assert '"lr-search" has enough without it' in status["verdict"]["reason"]
        assert not made.status("trial-0").get("spare")
        # It stands behind whoever has a deadline, though that came later and is later.
        made.submit("urgent", group(run_for="1h"), deadlineIn="30h", estimatedDuration="1h")
        await made.until_phase("trial-0", "Succeeded", within="3h")
        await made.until_phase("urgent", "Running", within="1m")
        await made.restart()
        await made.until_all("Succeeded", *[f"trial-{number}" for number in range(4)], within="20h")
        assert made.status("trial-3")["spare"] is True


@cluster.virtual
async def test_one_that_fails_has_the_next_take_its_place() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        trial(made, "trial-0", "2h", backoffLimit=0)
        trial(made, "trial-1", "3h")
        trial(made, "trial-2", "4h")
        await made.until_phase("trial-0", "Running")
        assert made.status("trial-2")["spare"] is True
        (pod,) = made.pods("trial-0")
        made.end_pod(pod)
        await made.until_phase("trial-0", "Failed", within="10m")
        await made.until(lambda: not made.status("trial-2").get("spare"), "it is wanted")
        await made.until(lambda: made.status("trial-2")["verdict"]["level"] == "LIKELY", "it is judged")
        await made.until_all("Succeeded", "trial-1", "trial-2", within="20h")


@cluster.virtual
async def test_what_has_succeeded_counts_until_the_sweep_is_over_whatever_its_time_to_live() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        one = {
            "sweep": {"name": "lr-search", "need": 1},
            "ttlSecondsAfterFinished": 600,
            "onMissed": "Cancel",
        }
        for number in range(3):
            trial(made, f"trial-{number}", "2h", deadlineIn="3h", **one)
            await made.rest("2s")
        await made.until(lambda: made.phase("trial-2") == "Succeeded", "all have run", within="9h")
        assert {made.phase(f"trial-{number}") for number in range(3)} == {"Succeeded"}
        await made.until(lambda: not made.store.list(port.DEADLINE_JOBS), "they are removed", within="30m")


@cluster.virtual
async def test_who_is_spare_is_not_wanted_once_its_deadline_is_past() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        one = {"sweep": {"name": "lr-search", "need": 1}, "onMissed": "Cancel"}
        trial(made, "trial-0", "5h", deadlineIn="4h", **one)
        trial(made, "trial-1", "6h", deadlineIn="4h", **one)
        await made.until_phase("trial-0", "Failed", within="5h")
        await made.until_phase("trial-1", "Succeeded", within="9h")
        assert made.status("trial-1")["spare"] is True


@cluster.virtual
async def test_a_spare_one_misses_nothing_and_is_not_cancelled() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        one = {"sweep": {"name": "lr-search", "need": 1}}
        trial(made, "trial-0", "2h", **one)
        trial(made, "trial-1", "3h", deadlineIn="4h", onMissed="Cancel", **one)
        await made.until_all("Succeeded", "trial-0", "trial-1", within="20h")
        conditions = {item["type"]: item["status"] for item in made.status("trial-1")["conditions"]}
        assert conditions.get("DeadlineMissed", "False") == "False"


@cluster.virtual
async def test_of_those_that_wait_their_histories_say_who_is_done_soonest() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        labels = {"quick": {names.LABEL_HISTORY: "quick"}, "slow": {names.LABEL_HISTORY: "slow"}}

        def submit(name: str, kind: str, run_for: str, **spec: object) -> None:
            body = own(
                "DeadlineJob", name, {"queue": cluster.QUEUE, "groups": [group(run_for=run_for)], **spec}
            )
            body["metadata"]["labels"] = labels[kind]
            made.create(port.DEADLINE_JOBS, body)

        submit("earlier", "quick", "1h")
        submit("before", "slow", "2h")
        await made.until_all("Succeeded", "earlier", "before", within="5h")
        made.submit("holder", group(run_for="6h"), preemptible=False)
        await made.until_phase("holder", "Running")
        one = {"sweep": {"name": "lr-search", "need": 1}, "deadlineIn": "1d"}
        submit("a", "slow", "2h", estimatedDuration="3h", **one)
        submit("b", "quick", "1h", estimatedDuration="4h", **one)
        await made.until(lambda: made.status("a").get("spare"), "it is longer than it says")
        assert not made.status("b").get("spare")
        await made.restart()
        await made.rest("5m")
        assert (made.status("a").get("spare"), made.status("b").get("spare", False)) == (True, False)
