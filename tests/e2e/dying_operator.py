"""The program `lstqueue`, run by path: it kills itself with SIGKILL after one of its writes.

It does so as soon as the server has answered, and before the operator hears of it. So nothing is flushed,
given back or said good-bye to, and the crash is at the same point each time. The first argument is that point
in JSON, empty for none; the others are those of the program.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from typing import Any

from lstqueue import cli
from lstqueue.kube import client, port


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """A write: `what` is verb, plural and subresource, `name` begins its object's, `says` is in its JSON."""

    what: str
    name: str = ""
    says: str = ""

    def matches(self, what: str, name: str, body: port.Object) -> bool:
        text = json.dumps(body, separators=(",", ":"))
        return what == self.what and name.startswith(self.name) and self.says in text


def die_after(point: Point) -> None:
    """Have every client of this process die of the write."""
    _wrap(point, "create", "create", "")
    _wrap(point, "patch", "patch", "")
    _wrap(point, "patch_status", "patch", "/status")


def _wrap(point: Point, method: str, verb: str, subresource: str) -> None:
    inner = getattr(client.KubeClient, method)

    async def write(
        self: Any, resource: port.Resource, namespace: str | None, *args: Any, **more: Any
    ) -> Any:
        *named, body = args
        name = named[0] if named else body["metadata"].get("name", "")
        answer = await inner(self, resource, namespace, *args, **more)
        what = f"{verb} {resource.plural}{subresource}"
        if not more.get("dry_run") and point.matches(what, name, body):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(client.KubeClient, method, write)


if __name__ == "__main__":
    if sys.argv[1]:
        die_after(Point(**json.loads(sys.argv[1])))
    cli.main(sys.argv[2:])
