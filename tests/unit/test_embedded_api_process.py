"""The server in a process of its own, in real time."""

import asyncio
import os
import signal
import sys

from lstqueue.kube import client, port


async def test_the_server_runs_alone_until_it_is_interrupted() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lstqueue.embedded", stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = (await process.stdout.readline()).decode().strip()
            assert url.startswith("http://127.0.0.1:")
            api = await client.connect(url=url)
            created = await api.create(port.NAMESPACES, None, {"metadata": {"name": "one"}})
            assert created["metadata"]["creationTimestamp"] > "2025"
            await api.close()
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
