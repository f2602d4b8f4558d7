"""A day of everything at once with PyTorchJobs: in the end each is over, and so is what spoke for it."""

from __future__ import annotations

import cluster
import pytest
import test_existing_jobs_chaos
from pytorch import PyTorch

from cases import effort
from lstqueue.kube import port


class Chaos(test_existing_jobs_chaos.Chaos):
    """The same acts, done to PyTorchJobs."""

    RESOURCE = port.PYTORCH_JOBS

    def __init__(self, made: cluster.Cluster, seed: int) -> None:
        super().__init__(made, seed)
        self.existing: PyTorch = PyTorch(made)

    async def submit(self) -> None:
        self.jobs += 1
        name, minutes = f"own-{self.jobs:03}", self.rng.choice([3, 10, 30, 90])
        said = {"estimated-duration": f"{minutes}m"}
        if self.rng.random() < 0.6:
            said["deadline-in"] = f"{minutes * self.rng.randint(1, 9)}m"
        self.existing.create(
            name,
            workers=self.rng.randint(0, 2),
            restart=self.rng.choice(["Never", "OnFailure", "ExitCode"]),
            suspend=self.rng.random() < 0.7,
            queue=cluster.QUEUE if self.rng.random() < 0.8 else None,
            gpus=self.rng.choice([1, 4, 8]),
            said=said,
            terminate_after=self.rng.choice(["1s", "30s", "5m"]),
            policy=self.rng.choice([{}, {"cleanPodPolicy": "Running"}]),
            run_for=f"{minutes}m",
        )
        if not self.labelled(name):
            self.existing.refer(f"ref-{self.jobs:03}", name, estimatedDuration=f"{minutes}m")

    def widen(self, name: str) -> None:
        replicas = self.existing.job(name)["spec"]["pytorchReplicaSpecs"]
        if "Worker" in replicas:
            change = {"Worker": {"replicas": self.rng.randint(1, 3)}}
            self.existing.patch(name, {"spec": {"pytorchReplicaSpecs": change}})

    def some_job(self) -> str | None:
        name = super().some_job()
        return None if name is not None and name.startswith("pytorchjob-own") else name


@pytest.mark.slow
@pytest.mark.parametrize("seed", effort.sample(range(20), quick=2))
def test_every_pytorchjob_ends_and_nothing_is_broken(seed: int) -> None:
    cluster.alone(lambda: test_existing_jobs_chaos.day(seed, Chaos, node_leases=True))
