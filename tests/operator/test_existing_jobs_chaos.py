"""A day of everything at once with users' own Jobs: in the end each is over, and so is what spoke for it."""

from __future__ import annotations

import cluster
import pytest
import test_chaos
from existing import Existing

from cases import effort
from lstqueue.kube import port


class Chaos(test_chaos.Chaos):
    """The acts of the other day, and what users do to their own Jobs."""

    RESOURCE = port.JOBS

    def __init__(self, made: cluster.Cluster, seed: int) -> None:
        super().__init__(made, seed)
        self.existing = Existing(made)

    async def submit(self) -> None:
        if self.rng.random() < 0.3:
            await super().submit()
            return
        self.jobs += 1
        name, minutes = f"own-{self.jobs:03}", self.rng.choice([3, 10, 30, 90])
        width = self.rng.randint(1, 3)
        total = self.rng.choice([width, width, width * 3, None])
        said = {"estimated-duration": f"{minutes}m"}
        if self.rng.random() < 0.6:
            said["deadline-in"] = f"{minutes * self.rng.randint(1, 9)}m"
        self.existing.create(
            name,
            parallelism=width,
            completions=total,
            indexed=total is not None and self.rng.random() < 0.6,
            suspend=self.rng.random() < 0.7,
            queue=cluster.QUEUE if self.rng.random() < 0.8 else None,
            gpus=self.rng.choice([1, 4, 8]),
            said=said,
            terminate_after=self.rng.choice(["1s", "30s", "5m"]),
            **self.rng.choice([{"run_for": f"{minutes}m"}] * 4 + [{"fail_after": f"{minutes}m"}]),
        )
        if not self.labelled(name):
            self.existing.refer(f"ref-{self.jobs:03}", name, estimatedDuration=f"{minutes}m")

    def labelled(self, name: str) -> bool:
        return bool(self.existing.job(name)["metadata"].get("labels", {}).get("lstqueue.dev/queue"))

    def mine(self) -> list[str]:
        """The users' own Jobs that are not over."""
        own = [
            raw for raw in self.made.store.list(self.RESOURCE) if not raw["metadata"].get("ownerReferences")
        ]
        names = [raw["metadata"]["name"] for raw in own]
        return [name for name in names if not self.existing.over(name)]

    async def meddle(self) -> None:
        mine = self.mine()
        if not mine or self.rng.random() < 0.2:
            await super().meddle()
            return
        name = self.rng.choice(mine)
        act = self.rng.randint(0, 5)
        if act == 0:
            self.made.delete(name, self.RESOURCE)
        elif act == 1 and (ledger := self.existing.ledger(name)):
            self.made.delete(ledger)
        elif act == 2:
            self.widen(name)
        elif act == 3:
            self.existing.say(name, deadline_in=f"{self.rng.randint(1, 20)}h")
        else:
            self.existing.suspend(name, value=self.rng.random() < 0.5)

    def widen(self, name: str) -> None:
        spec = self.existing.job(name)["spec"]
        width = self.rng.randint(1, 3)
        elastic = spec["completionMode"] == "Indexed" and spec.get("completions") == spec["parallelism"]
        change = {"parallelism": width, **({"completions": width} if elastic else {})}
        self.existing.patch(name, {"spec": change})

    async def cordon(self) -> None:
        await self.meddle()

    def some_job(self) -> str | None:
        """Nobody takes the names of the DeadlineJobs that stand for Jobs: those would wait for ever."""
        name = super().some_job()
        return None if name is not None and name.startswith("job-own") else name

    def calm(self) -> None:
        super().calm()
        for raw in self.made.store.list(port.DEADLINE_JOBS):
            if raw["spec"].get("active") is False:
                self.made.edit(raw["metadata"]["name"], active=True)

    async def settle(self) -> None:
        """Suspend what runs without lstqueue, so that it is queued, and wait until all is over."""
        await self.made.rest("20m")
        for name in self.mine():
            if self.made.code(self.existing.ledger(name)) == "SuspensionUndone":
                self.existing.suspend(name)
        self.calm()
        queued = [name for name in self.mine() if self.labelled(name)]
        await self.made.until(
            lambda: not [name for name in queued if name in self.mine()], "every Job is over", within="4d"
        )


async def day(seed: int, kind: type[Chaos] = Chaos, *, node_leases: bool = False) -> None:
    async with cluster.run(
        nodes=test_chaos.NODES, slack=8000, reaction="15m", node_leases=node_leases
    ) as made:
        made.queue(gpus=test_chaos.NODES * 8)
        chaos = kind(made, seed)
        for _ in range(test_chaos.STEPS):
            await chaos.act()
            await made.rest(f"{chaos.rng.randint(1, 400)}s")
        chaos.calm()
        await chaos.settle()
        jobs = [raw["metadata"]["name"] for raw in made.store.list(port.DEADLINE_JOBS)]
        await made.until(
            lambda: all(made.phase(name) in (*cluster.FINAL, "") for name in jobs),
            "every job ends",
            within="4d",
        )


@pytest.mark.parametrize("seed", effort.sample(range(20), quick=2))
def test_every_own_job_ends_and_nothing_is_broken(seed: int) -> None:
    cluster.alone(lambda: day(seed))
