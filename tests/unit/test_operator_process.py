"""`lstqueue operator` as a process: how signals and the loss of its kinds end it, and what it says then."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

from click import testing

from cases import objects as cases
from lstqueue import cli
from lstqueue.embedded import faults, server, store
from lstqueue.kube import port

# A shell that runs the tests in the background lets them, and so the operator, ignore SIGINT.
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
PROGRAM += "from lstqueue import cli; cli.main()"


class Operator:
    """A process, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def until_said(self, words: str) -> None:
        """Read its log until these words."""
        assert self.process.stdout is not None
        while words not in self.said:
            line = (await self.process.stdout.readline()).decode()
            assert line, self.said
            self.said += line

    async def end(self) -> int:
        """Read the rest, and return its exit code."""
        assert self.process.stdout is not None
        self.said += (await self.process.stdout.read()).decode()
        return await self.process.wait()


@contextlib.asynccontextmanager
async def operator(url: str, *arguments: str) -> AsyncIterator[Operator]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-u", "-c", PROGRAM, "operator", "--url", url, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
    )
    try:
        async with asyncio.timeout(60):
            yield Operator(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_two_signals_end_it_as_one_does() -> None:
    objects = store.Store(now=lambda: 1_767_225_600_000)
    async with server.ApiServer(objects) as api, operator(api.url) as here:
        works = asyncio.Event()
        objects.subscribe(lambda event: works.set() if event.object.get("status") else None)
        objects.create(port.GPU_QUEUES, None, cases.queue("research"))
        await works.wait()
        here.process.send_signal(signal.SIGINT)
        here.process.send_signal(signal.SIGTERM)
        here.process.send_signal(signal.SIGINT)
        assert await here.end() == 0
        assert "Traceback" not in here.said
        assert "InvalidStateError" not in here.said


async def test_kinds_that_are_gone_end_it_with_one_sentence() -> None:
    async with server.ApiServer(store.Store(now=lambda: 1_767_225_600_000)) as api, operator(api.url) as here:
        await here.until_said("Initial authentication has finished")
        ours = faults.calls(resource=port.GPU_QUEUES)
        api.faults.fail(404, "NotFound", message="404 page not found", when=ours, times=None)
        api.faults.cut_watches(port.GPU_QUEUES)
        assert await here.end() == 1
        assert "Traceback" not in here.said
        last = here.said.strip().splitlines()[-1]
        assert last.startswith("Error: GPUQueues are not served any more: the CRDs of lstqueue were deleted")
        assert "kubectl apply -f crds/" in last


async def test_a_lease_that_it_may_never_have_is_no_readiness() -> None:
    async with server.ApiServer(store.Store(now=lambda: 1_767_225_600_000)) as api:
        elected = ("--leader-elect", "--lease-namespace", "nowhere", "--probe-port", "0")
        async with operator(api.url, *elected) as here:
            await here.until_said('namespaces "nowhere" not found')
            assert await here.end() == 1
            assert "answers again" not in here.said
            assert "check --lease-namespace" in here.said.splitlines()[-1]


def test_the_help_names_all_that_the_probes_serve() -> None:

    said = " ".join(testing.CliRunner().invoke(cli.main, ["operator", "--help"]).output.split())
    for path in ("/livez", "/readyz", "/metrics", "/why/NAMESPACE/NAME"):
        assert path in said
