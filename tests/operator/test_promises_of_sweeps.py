"""The jobs of a sweep are promised their deadline together, once as many are there as have to succeed."""

from __future__ import annotations

import cluster
from manifests import group
from vows import GUARDED, level, missed

WANTED = {"name": "lr", "need": 2}


@cluster.virtual
async def test_a_sweep_is_promised_when_enough_of_it_are_there() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(promises=True, preemption=GUARDED)
        for holder in ("h0", "h1"):
            made.submit(holder, group(run_for="30h"), estimatedDuration="30h")
        await made.until_all("Running", "h0", "h1")
        given = {"deadlineIn": "10h", "estimatedDuration": "1h", "sweep": WANTED}
        made.submit("a", group(run_for="1h"), **given)
        await made.until(lambda: level(made, "a") == "UNLIKELY", "it is told", within="5m")
        assert "slot" not in made.status("a")
        made.submit("b", group(run_for="1h"), **given)
        await made.until(lambda: level(made, "b") == "FEASIBLE", "they are promised", within="5m")
        await made.until(lambda: level(made, "a") == "FEASIBLE", "they are promised", within="1m")
        made.submit("c", group(run_for="1h"), **given)
        await made.until(lambda: made.status("c").get("spare"), "it is spare", within="5m")
        assert "slot" not in made.status("c")
        await made.until_all("Succeeded", "a", "b", within="10h")
        assert not missed(made, "a")
        assert not missed(made, "b")
        await made.until_all("Succeeded", "h0", "h1", "c", within="60h")
