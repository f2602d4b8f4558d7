"""Windows of a queue, on the wall clock of a zone: who starts before one, and who waits for its end."""

from __future__ import annotations

import cluster
from manifests import group

from lstqueue.kube import port

DAYTIME = {"name": "serving", "schedule": "0 8 * * *", "zone": "UTC", "duration": "12h", "keepFree": "50%"}


@cluster.virtual
async def test_by_night_all_of_it_and_by_day_half() -> None:
    async with cluster.run(nodes=2) as made:  # it is midnight
        made.queue(gpus=16, windows=[DAYTIME])
        made.submit("short", group(run_for="5h"), deadlineIn="40h", estimatedDuration="5h")
        made.submit("long", group(run_for="6h"), deadlineIn="40h", estimatedDuration="6h")
        made.submit("longer", group(run_for="7h"), deadlineIn="40h", estimatedDuration="7h")
        # Pessimistically, that is half as long again, only the first is through by eight; one other may stay.
        await made.until_phase("short", "Running")
        await made.until_phase("longer", "Running")
        await made.until_phase("long", "Pending")
        await made.until_phase("short", "Succeeded", within="6h")
        await made.rest("30m")
        assert made.code("long") == "Window"
        assert 'window of queue "research" begins' in made.status("long")["pending"]["message"]
        await made.until_phase("long", "Running", within="4h")  # when the other has left, there is half
        assert made.phase("longer") == "Succeeded"
        await made.until_phase("long", "Succeeded", within="10h")


@cluster.virtual
async def test_a_window_that_is_taken_away_holds_nobody_up() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8, windows=[DAYTIME | {"keepFree": "100%"}])
        made.submit("long", group(run_for="9h"), deadlineIn="40h", estimatedDuration="9h")
        await made.until(lambda: made.code("long") == "Window", "it waits")
        await made.restart()
        await made.rest("10m")
        assert made.code("long") == "Window"
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"windows": []}})
        await made.until_phase("long", "Running", within="1m")
