"""An embedded cluster in a process of its own and in real time: `python cluster_process.py NODES`.

Prints its URL on the first line and runs until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
import time

from lstqueue.embedded import world


async def main(nodes: int) -> None:
    loop = asyncio.get_running_loop()
    epoch = round((time.time() - loop.time()) * 1000)
    async with world.World(epoch_ms=epoch) as cluster:
        cluster.add_nodes(nodes)
        print(cluster.url, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        print(f"{cluster.audit.checks} invariant checks, {len(cluster.audit.violations)} violated")
        for violation in cluster.audit.violations[:3]:
            print(violation)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
