"""A day of everything at once, drawn from a seed: in the end every job is over and nothing was broken."""

from __future__ import annotations

import random

import cluster
import pytest
from manifests import group

from cases import effort
from lstqueue.embedded import faults
from lstqueue.kube import port

NODES = 4
STEPS = 60
FINAL = frozenset({"Succeeded", "Failed", "Rejected"})


class Chaos:
    """Random acts of users, administrators, hardware and the network."""

    def __init__(self, made: cluster.Cluster, seed: int) -> None:
        self.made = made
        self.rng = random.Random(seed)
        self.jobs = 0
        self.foreign = 0
        self.latency = self.rng.choice([0.0, 0.01, 0.3, 2.0])
        self.slow_down()

    async def act(self) -> None:
        acts = [
            *([self.submit] * 8),
            *([self.delete] * 2),
            *([self.edit] * 3),
            *([self.cordon] * 2),
            *([self.break_node] * 2),
            *([self.intrude] * 2),
            *([self.evict] * 2),
            *([self.lose_pod] * 2),
            *([self.pause] * 2),
            self.stop_queue,
            self.taint,
            self.replace_node,
            self.meddle,
            self.trouble,
            self.watches,
            self.restart,
        ]
        await self.rng.choice(acts)()

    def slow_down(self) -> None:
        """Let every answer to a write take its time."""
        if self.latency:
            self.made.faults.delay(self.latency, when=faults.writes)

    async def submit(self) -> None:
        self.jobs += 1
        minutes = self.rng.choice([3, 10, 30, 90])
        endings: list[dict[str, str]] = [{"run_for": f"{minutes}m"}] * 4 + [{"fail_after": f"{minutes}m"}]
        groups = [
            group(
                name,
                self.rng.randint(1, 2),
                gpus=self.rng.choice([1, 4, 8]),
                start_after=self.rng.choice(["0s", "1m", "20m"]) if self.rng.random() < 0.3 else "0s",
                terminate_after=self.rng.choice(["1s", "30s", "5m"]),
                **self.rng.choice(endings),
            )
            for name in ("leader", "worker")[: self.rng.randint(1, 2)]
        ]
        extra: cluster.Object = {"backoffLimit": self.rng.randint(0, 2)}
        if self.rng.random() < 0.7:
            extra["estimatedDuration"] = f"{minutes}m"
            extra["deadlineIn"] = f"{minutes * self.rng.randint(1, 9)}m"
        if self.rng.random() < 0.2:
            extra["successPolicy"] = "Leader"
        if self.rng.random() < 0.5:
            extra["checkpoint"] = {"interval": f"{minutes // 3}m", "onSuspend": self.rng.random() < 0.5}
        if self.rng.random() < 0.5:
            extra["minRunTime"] = self.rng.choice(["0s", "1m", "2h"])
        if self.rng.random() < 0.3:
            extra["onMissed"] = self.rng.choice(["Cancel", "Continue"])
            extra["onInfeasible"] = self.rng.choice(["BestEffort", "Reject"])
        self.made.submit(f"job-{self.jobs:03}", *groups, **extra)

    def some_job(self) -> str | None:
        names = [raw["metadata"]["name"] for raw in self.made.store.list(port.DEADLINE_JOBS)]
        open_jobs = [name for name in names if self.made.phase(name) not in FINAL]
        return self.rng.choice(open_jobs) if open_jobs else None

    def some_node(self) -> str:
        return str(self.rng.choice([raw["metadata"]["name"] for raw in self.made.store.list(port.NODES)]))

    async def delete(self) -> None:
        if name := self.some_job():
            self.made.delete(name)
            if self.rng.random() < 0.5:
                self.made.submit(name, group("leader", run_for="5m"))

    async def edit(self) -> None:
        if name := self.some_job():
            self.made.edit(name, importance=self.rng.randint(-3, 3), estimatedDuration="20m")

    async def pause(self) -> None:
        if name := self.some_job():
            self.made.edit(name, active=self.rng.random() < 0.5)

    async def stop_queue(self) -> None:
        policy = self.rng.choice(["Hold", "HoldAndDrain"])
        self.made.patch_queue(stopPolicy=policy)
        await self.made.rest(self.rng.choice(["1s", "10m"]))
        self.made.patch_queue(stopPolicy="None")

    async def taint(self) -> None:
        name = self.some_node()
        self.made.world.taint(name, "maintenance")
        await self.made.rest("3m")
        self.made.world.untaint(name, "maintenance")

    async def cordon(self) -> None:
        cordoned = self.rng.choice([True, None])
        self.made.patch(port.NODES, self.some_node(), {"spec": {"unschedulable": cordoned}})

    async def break_node(self) -> None:
        name = self.some_node()
        self.made.world.fail_node(name, how=self.rng.choice(["crashed", "unknown"]))
        await self.made.rest(self.rng.choice(["1m", "8m"]))
        self.made.world.heal_node(name)

    async def replace_node(self) -> None:
        self.made.delete(self.some_node(), port.NODES)
        await self.made.rest("2m")
        self.made.world.add_nodes(1)

    async def intrude(self) -> None:
        self.foreign += 1
        self.made.foreign_pod(f"foreign-{self.foreign}", self.some_node(), gpus=self.rng.choice([1, 8]))

    async def evict(self) -> None:
        if pods := [pod for pod in self.made.pods() if pod["status"]["phase"] == "Running"]:
            self.made.evict(self.rng.choice(pods))

    async def lose_pod(self) -> None:
        if pods := self.made.pods():
            self.made.delete(self.rng.choice(pods)["metadata"]["name"], port.PODS)

    async def meddle(self) -> None:
        if children := self.made.store.list(port.JOBS):
            child = self.rng.choice(list(children))["metadata"]["name"]
            if self.rng.random() < 0.5:
                self.made.delete(child, port.JOBS)
            else:
                suspended = {"spec": {"suspend": self.rng.random() < 0.5}}
                self.made.patch(port.JOBS, child, suspended)

    async def trouble(self) -> None:
        kind = self.rng.randint(0, 3)
        if kind == 0:
            self.made.faults.lose_response(times=None)
        elif kind == 1:
            self.made.faults.conflict(times=None)
        elif kind == 2:
            self.made.faults.throttle(retry_after=5.0, times=None)
        else:
            self.made.faults.fail(503, "ServiceUnavailable", when=faults.any_call, times=None)
        await self.made.rest(self.rng.choice(["2s", "20s", "3m"]))
        self.made.calm()
        self.slow_down()

    async def watches(self) -> None:
        self.made.faults.cut_watches()
        if self.rng.random() < 0.5:
            self.made.faults.compact()

    async def restart(self) -> None:
        await self.made.kill()
        await self.made.rest(self.rng.choice(["1s", "3m"]))
        await self.made.start()

    def calm(self) -> None:
        """Take back whatever keeps a job from ending."""
        self.made.calm()
        for raw in list(self.made.store.list(port.NODES)):
            self.made.patch(port.NODES, raw["metadata"]["name"], {"spec": {"unschedulable": None}})
        for raw in list(self.made.store.list(port.DEADLINE_JOBS)):
            self.made.edit(raw["metadata"]["name"], active=True)
        for number in range(1, self.foreign + 1):
            if self.made.store.find(port.PODS, cluster.NAMESPACE, f"foreign-{number}"):
                self.made.delete(f"foreign-{number}", port.PODS)


async def day(seed: int) -> None:
    async with cluster.run(nodes=NODES, slack=5000, reaction="15m") as made:
        made.queue(gpus=NODES * 8)
        chaos = Chaos(made, seed)
        for _ in range(STEPS):
            await chaos.act()
            await made.rest(f"{chaos.rng.randint(1, 400)}s")
        chaos.calm()
        jobs = [raw["metadata"]["name"] for raw in made.store.list(port.DEADLINE_JOBS)]
        await made.until(
            lambda: all(made.phase(name) in FINAL for name in jobs), "every job ends", within="4d"
        )


@pytest.mark.parametrize("seed", effort.sample(range(20), quick=2))
def test_every_job_ends_and_nothing_is_broken(seed: int) -> None:
    cluster.alone(lambda: day(seed))
