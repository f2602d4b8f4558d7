"""While our clock is not to be believed time alone ends nothing; everything else goes on."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.api import durations
from lstqueue.kube import port


@cluster.virtual
async def test_what_is_over_by_a_clock_that_is_ahead_is_paused_restarted_and_drained_as_ever() -> None:
    async with cluster.run(nodes=4, slack=400, reaction="15h") as made:
        made.queue(gpus=32)
        ahead, real = [0], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        dated = {"deadlineIn": "12h", "onMissed": "Cancel"}
        made.submit("paused", group(run_for="9h"), **dated)
        made.submit("broken", group(run_for="9h"), maxRunTime="12h")
        made.submit("goes-on", group(run_for="9h"), **dated)
        await made.until_all("Running", "paused", "broken", "goes-on")
        ahead[0] = 2 * durations.DAY
        await made.rest("1m")
        made.edit("paused", active=False)
        made.end_pod(made.pods("broken")[0])
        await made.until_phase("paused", "Pending", within="2m")
        await made.until(lambda: made.status("broken").get("restarts") == 1, "it restarts", within="2m")
        await made.until_phase("broken", "Running", within="5m")
        told = made.status("goes-on")["pending"]
        assert (told["code"], "ahead of the API server's" in told["message"]) == ("ClockUnknown", True)
        writes = made.calls.writes()
        await made.rest("1h")
        assert made.calls.writes() - writes <= 130  # two of them ask for the time, once a minute
        ahead[0] = 0
        await made.rest("5m")
        assert made.phase("goes-on") == "Running"
        assert "pending" not in made.status("goes-on")
        made.patch_queue(stopPolicy="HoldAndDrain")
        await made.until_all("Pending", "broken", "goes-on", within="5m")
        made.world.audit.violations.clear()


@pytest.mark.parametrize("everything", [False, True], ids=["events", "all that is created"])
@cluster.virtual
async def test_a_server_that_does_not_tell_its_time_ends_limits_late_at_most(everything: bool) -> None:
    async with cluster.run(nodes=2, slack=4000, reaction="15h") as made:
        made.queue(gpus=16)
        made.submit("limited", group(run_for="20h"), maxRunTime="1h")
        made.submit("dated", group(run_for="20h"), deadlineIn="1h", onMissed="Cancel")
        await made.until_all("Running", "limited", "dated")
        made.faults.fail(
            500,
            "InternalError",
            message='failed calling webhook "x"',
            when=lambda call: call.verb == "create" and (everything or call.resource == port.EVENTS),
            times=None,
        )
        await made.rest("59m")
        assert (made.phase("limited"), made.phase("dated")) == ("Running", "Running")
        await made.until_all("Failed", "limited", "dated", within="15m")
        made.world.audit.violations.clear()


@cluster.virtual
async def test_a_job_that_is_over_is_kept_while_the_time_is_not_known_and_nothing_is_asked_in_a_row() -> None:
    async with cluster.run(nodes=1, slack=400, reaction="2h") as made:
        made.queue(gpus=8)
        ahead, real = [0], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        made.submit("over", group(run_for="1m"), ttlSecondsAfterFinished=86_400)
        await made.until_phase("over", "Succeeded")
        ahead[0] = 2 * durations.DAY
        await made.rest("1m")
        before = made.operator.loop.passes
        await made.rest("1h")
        assert made.phase("over") == "Succeeded"
        assert made.operator.loop.passes - before < 200  # it asks once a minute
        ahead[0] = 0
        await made.until(lambda: not made.phase("over"), "it is removed in its time", within="25h")
