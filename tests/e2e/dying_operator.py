"""The program `lstqueue`, run by path: it kills itself with SIGKILL after one of its writes.

It does so as soon as the server has answered, and before the operator hears of it. So nothing is flushed,
given back or said good-bye to, and the crash is at the same point each time. The first argument is a list of
such points in JSON, of which it dies of the first that it comes to; the others are those of the program.
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


DIES = "dies after point "


def die_after(points: list[Point]) -> None:
    """Have every client of this process die of these writes, saying which it was."""
    _wrap(points, "create", "create", "")
    _wrap(points, "patch", "patch", "")
    _wrap(points, "patch_status", "patch", "/status")


def _wrap(points: list[Point], method: str, verb: str, subresource: str) -> None:
    inner = getattr(client.KubeClient, method)

    async def write(
        self: Any, resource: port.Resource, namespace: str | None, *args: Any, **more: Any
    ) -> Any:
        *named, body = args
        name = named[0] if named else body["metadata"].get("name", "")
        answer = await inner(self, resource, namespace, *args, **more)
        what = f"{verb} {resource.plural}{subresource}"
        for number, point in enumerate(points):
            if not more.get("dry_run") and point.matches(what, name, body):
                print(f"{DIES}{number}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(client.KubeClient, method, write)


if __name__ == "__main__":
    die_after([Point(**point) for point in json.loads(sys.argv[1])])
    cli.main(sys.argv[2:])
