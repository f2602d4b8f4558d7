"""One trouble at one write of the operator: it dies there, its answer is lost, somebody else was faster.

A trouble counts the operator's writes from the moment it is made and strikes at the one it is for. A process
that is killed sends nothing more, whatever it was about to send, and is started again at once or later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import cluster

from cases import wires
from lstqueue.embedded import faults

Counts = Callable[[faults.Call], bool]


class Trouble:
    """Strikes once, at the `number`-th write that `counts`."""

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts) -> None:
        self.made = made
        self.struck: faults.Call | None = None
        self._left = number
        self._counts = counts

    def is_it(self, call: faults.Call) -> bool:
        """Whether this request is the one."""
        if self.struck is not None or not self._counts(call):
            return False
        self._left -= 1
        if self._left:
            return False
        self.struck = call
        return True

    async def aftermath(self) -> None:
        """What has to be done once it has struck; waits for that."""

    def judge(self) -> None:
        """Say what is wrong with how the operator met it."""


class Killed(Trouble):
    """The operator dies just before or just after the write takes effect."""

    def __init__(
        self, made: cluster.Cluster, number: int, *, counts: Counts, before: bool, away: str = "0s"
    ) -> None:
        super().__init__(made, number, counts=counts)
        self._before = before
        self._away = away
        self._dead = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        made.calls.listeners.append(self._look)

    def _look(self, call: faults.Call) -> None:
        task = self.made._task
        if self._task is not None and task is self._task:
            raise asyncio.CancelledError  # its other writers did not hear of it yet
        if self.is_it(call):
            assert task is not None
            self._task = task
            task.cancel()
            self._dead.set()
            if self._before:
                raise asyncio.CancelledError

    async def aftermath(self) -> None:
        await self._dead.wait()
        await self.made.kill()
        if self._away != "0s":
            await self.made.rest(self._away)
        await self.made.start()


class InFlight(Killed):
    """The operator dies after it has sent the write, which arrives when its successor is already at work."""

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts, late: float) -> None:
        super().__init__(made, number, counts=counts, before=False)
        made.faults.delay(late, when=lambda call: call is self.struck, times=1)


class KilledTwice(Killed):
    """It dies just after the write, and its successor two writes later."""

    SECOND = 2

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts) -> None:
        super().__init__(made, number, counts=counts, before=False)

    async def aftermath(self) -> None:
        again = Killed(self.made, self.SECOND, counts=self._after(), before=False)
        await super().aftermath()
        await again.aftermath()

    def _after(self) -> Counts:
        return lambda call: self._dead.is_set() and self.made._task is not self._task and self._counts(call)


class Lost(Trouble):
    """The write takes effect and nobody answers."""

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts) -> None:
        super().__init__(made, number, counts=counts)
        made.faults.lose_response(when=self.is_it, times=1)


class Refused(Trouble):
    """The server is not available for that moment, and says when it will be."""

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts, status: int = 503) -> None:
        super().__init__(made, number, counts=counts)
        if status == 429:
            made.faults.throttle(retry_after=3.0, when=self.is_it, times=1)
        else:
            made.faults.fail(status, "ServiceUnavailable", when=self.is_it, times=1)


class Outrun(Trouble):
    """Somebody else writes to the very object a moment before, something that concerns nobody.

    Where there is no object yet, the server says that it could not decide between two: as it does when two
    writes meet at a quota.
    """

    MARK = "example.com/touched"

    def __init__(self, made: cluster.Cluster, number: int, *, counts: Counts) -> None:
        super().__init__(made, number, counts=counts)
        self._patched = False
        made.faults.conflict(when=self._creates, times=1)

    def _creates(self, call: faults.Call) -> bool:
        if not self.is_it(call):
            return False
        if call.verb == "create":
            return True
        self._touch(call)
        return False

    def _touch(self, call: faults.Call) -> None:
        body = {"metadata": {"annotations": {self.MARK: "yes"}}}
        if self.made.store.find(call.resource, call.namespace, call.name) is not None:
            self.made.store.patch(call.resource, call.namespace, call.name, body)
            # What is to go for good may be deleted whoever wrote to it meanwhile.
            self._patched = call.verb == "patch"

    def judge(self) -> None:
        assert isinstance(self.made.api, wires.Wire)
        told = [error for error in self.made.api.failed if error.status == 409]
        assert told or not self._patched, f"not conditional on what was read: {self.struck}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of trouble: how it is made, and whether it takes the operator away for long."""

    make: Callable[..., Trouble]
    away: bool = False


KINDS: dict[str, Kind] = {
    "killed after": Kind(lambda made, number, counts: Killed(made, number, counts=counts, before=False)),
    "killed before": Kind(lambda made, number, counts: Killed(made, number, counts=counts, before=True)),
    "answer lost": Kind(lambda made, number, counts: Lost(made, number, counts=counts)),
    "outrun": Kind(lambda made, number, counts: Outrun(made, number, counts=counts)),
    "unavailable": Kind(lambda made, number, counts: Refused(made, number, counts=counts)),
    "throttled": Kind(lambda made, number, counts: Refused(made, number, counts=counts, status=429)),
    "in flight": Kind(lambda made, number, counts: InFlight(made, number, counts=counts, late=0.4)),
    "long in flight": Kind(lambda made, number, counts: InFlight(made, number, counts=counts, late=20.0)),
    "killed twice": Kind(lambda made, number, counts: KilledTwice(made, number, counts=counts)),
    "away": Kind(
        lambda made, number, counts: Killed(made, number, counts=counts, before=False, away="20m"), away=True
    ),
}
