"""Users in a process of their own: `python submit_process.py URL KIND PODS FIRST COUNT IN_FLIGHT`.

Keeps so many jobs of one shape on their way until all have been submitted and have succeeded. KIND is
`inline` for DeadlineJobs with a group, `labelled` for Jobs with the queue's label.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

import crowd

from lstqueue.kube import client, port


async def main(url: str, kind: str, *, pods: int, first: int, count: int, in_flight: int) -> None:
    resource = port.JOBS if kind == "labelled" else port.DEADLINE_JOBS
    make = crowd.labelled if kind == "labelled" else crowd.gang
    api = await client.connect(url=url)
    version = (await api.list_page(port.DEADLINE_JOBS, limit=1)).resource_version
    places, over = asyncio.Semaphore(in_flight), set[str]()

    async def watch() -> None:
        stream = api.watch(port.DEADLINE_JOBS, resource_version=version, timeout_seconds=3600)
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                uid, status = event.object["metadata"].get("uid"), event.object.get("status") or {}
                if status.get("phase") == "Succeeded" and uid not in over:
                    over.add(uid)
                    places.release()
                if len(over) == count:
                    return

    watching = asyncio.create_task(watch())
    for number in range(first, first + count):
        await places.acquire()
        await api.create(resource, "default", make(number, replicas=pods, gpus=1))
    await watching
    await api.close()


if __name__ == "__main__":
    _, where, what, *figures = sys.argv
    each, begin, many, at_once = map(int, figures)
    asyncio.run(main(where, what, pods=each, first=begin, count=many, in_flight=at_once))
