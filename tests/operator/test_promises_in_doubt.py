"""A promise beside what makes it untrue: at risk while that may pass, taken back with its cause where not."""

from __future__ import annotations

import cluster
from manifests import group, pool
from vows import condition, level, missed, promised

from lstqueue.embedded import faults
from lstqueue.kube import port


@cluster.virtual
async def test_a_quota_below_what_was_promised_takes_the_promise_back_at_once() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        made.patch_queue(pools=[pool("all", gpus=0)])
        await made.until(
            lambda: condition(made, "report", "DeadlinePromised") == ("False", "Edited"), "it is told"
        )
        assert "slot" not in made.status("report")
        assert level(made, "report") == "IMPOSSIBLE"
        assert made.status("report")["pending"]["code"] == "QuotaTooSmall"
        made.patch_queue(pools=[pool("all", gpus=1000)])
        await made.until_all("Succeeded", "report", "holder", within="60h")


@cluster.virtual
async def test_one_that_is_paused_or_whose_queue_is_held_is_at_risk_until_it_may_go_on() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        slot = made.status("report")["slot"]
        for stop, go in (
            (lambda: made.edit("report", active=False), lambda: made.edit("report", active=True)),
            (lambda: made.patch_queue(stopPolicy="Hold"), lambda: made.patch_queue(stopPolicy="None")),
            (lambda: made.patch_queue(mode="Observe"), lambda: made.patch_queue(mode="Enforce")),
        ):
            stop()
            await made.until(lambda: level(made, "report") == "AT_RISK", "it is told", within="1h")
            assert made.status("report")["verdict"]["reason"] == made.status("report")["pending"]["message"]
            assert condition(made, "report", "DeadlineAtRisk") == ("True", "AT_RISK")
            go()
            await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised", within="1h")
            assert made.status("report")["slot"] == slot
        await made.until_phase("report", "Succeeded", within="10h")
        assert not missed(made, "report")
        await made.until_phase("holder", "Succeeded", within="40h")


@cluster.virtual
async def test_one_that_is_paused_when_its_slot_begins_loses_its_promise() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        made.edit("report", active=False)
        await made.until(
            lambda: condition(made, "report", "DeadlinePromised") == ("False", "Edited"),
            "it is told",
            within="10h",
        )
        assert made.phase("holder") == "Running"
        made.edit("report", active=True)
        await made.until_all("Succeeded", "report", "holder", within="60h")


def second_probe() -> faults.When:
    """The second time that the server is asked what it would make of a pod."""
    probes: list[faults.Call] = []

    def match(call: faults.Call) -> bool:
        if call.resource == port.PODS and call.verb == "create":
            probes.append(call)
            return len(probes) == 2
        return False

    return match


@cluster.virtual
async def test_a_slot_is_owed_before_the_server_has_said_what_its_pods_will_be() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        await made.kill()
        made.faults.delay(1800.0, when=second_probe())  # that of the report, which is younger than the holder
        made.submit("stays", group(run_for="9h"), estimatedDuration="9h", preemptible=False, importance=3)
        made.edit("holder", active=False)
        await made.start()
        await made.until_phase("report", "Succeeded", within="10h")
        assert not missed(made, "report")
