"""A cluster without Kubeflow's kinds lacks nothing else, and gets them when they are installed."""

from __future__ import annotations

import cluster
from existing import Existing
from pytorch import PyTorch

from lstqueue.embedded import faults
from lstqueue.kube import port


@cluster.virtual
async def test_jobs_run_without_it_and_pytorchjobs_once_it_is_there() -> None:
    async with cluster.run(nodes=2, start=False, slack=100) as made:
        jobs, others = PyTorch(made), Existing(made)
        kind = faults.calls(resource=port.PYTORCH_JOBS)
        made.faults.fail(404, "NotFound", when=kind, times=None)
        await made.start()
        made.queue()
        others.create("train", run_for="10m")
        await others.until_phase("train", "Succeeded")
        assert made.operator.behind() == []
        jobs.refer("mine", "pretrain")
        await made.until(lambda: made.code("mine") == "JobNotFound", "it is said that there is none")
        made.calm()
        jobs.create("pretrain", run_for="10m")
        await jobs.until_phase("pretrain", "Succeeded")
