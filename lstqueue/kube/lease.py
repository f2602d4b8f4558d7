"""Who leads: one Lease, held by one process at a time, and the time until which its holder may write.

A candidate reads the Lease every few seconds and takes it when its holder gave it back, or showed no sign of
life for the Lease's duration by the candidate's own monotonic clock; clocks may differ by hours. Every write
is conditional on the version that was read. A leader that could not renew it in time gives up by itself,
well before anybody else's time begins.

It is no lock: a leader that was frozen in the middle of a request cannot know it. `check` keeps it from
beginning a write after its time; what was under way is fenced by the preconditions that every write carries.
An elector leads once: who lost the Lease must end all it has under way, and the surest way is to end the
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from lstqueue.kube import backoff, lease_record, port

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

Terms = lease_record.Terms

_NEVER = float("-inf")

_LEAST = 0.01
"""Seconds below which nothing is waited for: a timer may fire early by less."""


class LeaseError(Exception):
    """Leading is not possible, or no more; the message says why and what to do."""


class LostError(LeaseError, port.FencedError):
    """This process does not lead and may write nothing."""


class RefusedError(LeaseError):
    """The API server does not let us use the Lease."""


class Elector:
    """One candidature: `acquire`, then `hold`. Runs on the time of the running loop.

    Args:
        api: where the Lease is. Not behind a rate limit: a renewal that queues comes too late.
        terms: which Lease, as whom.
        now: ms since the epoch; written into the Lease for people, and never read.
        jitter: maps (identity, number) to [0, 1).

    Attributes:
        terms: as given.
        holder: who held the Lease when it was last looked at, "" for nobody.
    """

    def __init__(
        self,
        api: port.KubeApi,
        terms: Terms,
        *,
        now: Callable[[], int],
        jitter: Callable[[str, int], float] = backoff.hashed,
    ) -> None:
        self._api = api
        self.terms = terms
        self.holder = ""
        self._now = now
        self._jitter = jitter
        self._pauses = 0
        self._turn = asyncio.Lock()
        self._watchman = lease_record.Watchman(terms)
        # As last written by us; None when it has to be read again.
        self._written: port.Object | None = None
        self._tenure: tuple[str, int] | None = None
        self._tried = False
        self._until = _NEVER
        self._lost: LostError | None = None
        self._over = False
        self._trouble = ""
        self._refused_at: float | None = None
        self._writes = False
        self._refused_write = False

    @property
    def leading(self) -> bool:
        """Whether a write may begin."""
        return asyncio.get_running_loop().time() < self._until

    @property
    def refused(self) -> str:
        """Why the server does not let this candidate use the Lease, "" while it does or is out of reach."""
        return self._trouble if self._refused_at is not None else ""

    def check(self) -> None:
        """Let a write begin.

        Raises:
            LostError: it must not.
        """
        if self.leading:
            return
        if self._lost is not None:
            raise self._lost
        if self._tenure is None or self._over:
            raise LostError(f"this process does not hold the {self.terms}; it may not write")
        # It overslept, and this is found out before the next renewal could.
        self._lose("its time was over before it was renewed")

    async def acquire(self) -> None:
        """Wait until this process leads; a server that cannot be reached is waited for.

        Raises:
            RefusedError: the server has refused us the Lease for as long as a leader would have tried.
        """
        _LOG.info("%s: %s waits to lead", self.terms, self.terms.identity)
        while True:
            try:
                async with self._turn:
                    wrote = await self._within(self._take(), self.terms.answer)
                # That it can be read says nothing about a server that would not have it written; but while
                # another lives there is nothing to write, and whether we may shows when there is.
                if wrote or not self._refused_write or self.holder not in ("", self.terms.identity):
                    self._answered()
            except port.ConflictError:
                pass  # another candidate was quicker
            except port.ApiError as error:
                self._failed(error)
            if self.leading:
                _LOG.info("%s: %s leads", self.terms, self.terms.identity)
                return
            left = self._watchman.free_at - asyncio.get_running_loop().time()
            await asyncio.sleep(min(self._pause(), max(left, _LEAST)) if left > 0 else self._pause())

    async def hold(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work while the Lease is ours, which it is until the work has ended; then give it back.

        Raises:
            LostError: it was lost first; the work was cancelled.
        """
        keeping = asyncio.create_task(self._keep(), name="lease")
        working = asyncio.ensure_future(work())
        try:
            await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # In this order: while the work cleans up, nobody else may begin.
            ended = [await _end(working), await _end(keeping)]
            await self.release()
        for error in (self._lost, *reversed(ended)):
            if error is not None:
                raise error

    async def release(self) -> None:
        """Write no more, and give the Lease back if it is ours; should that fail, others wait it out."""
        if self._over:
            return
        self._over, self._until = True, _NEVER
        async with self._turn:
            if self._tried:
                try:
                    await self._within(self._give_back(), self.terms.retry)
                except port.ApiError as error:
                    _LOG.warning("%s was not given back, others wait it out: %s", self.terms, error)

    # A candidate

    async def _take(self) -> bool:
        """Look at the Lease, and take it if it is free; return whether it was written, or claimed."""
        self._writes = False
        raw = await self._read()
        at = asyncio.get_running_loop().time()
        holder = lease_record.holder_of(raw)
        if holder != self.holder:
            _LOG.info("%s is held by %s", self.terms, holder or "nobody")
        self.holder = holder
        self._watchman.see(raw, at)
        if at < self._watchman.free_at:
            return False
        self._writes = True
        if not self._watchman.unsure:
            await self._write(raw, again=holder == self.terms.identity)
            return True
        self._watchman.claim()
        made = await self._write(raw, again=False, leads=False)
        self._watchman.see(made, asyncio.get_running_loop().time())
        return True

    def _failed(self, error: port.ApiError) -> None:
        """Note a try that failed; say so once.

        Raises:
            RefusedError: it is no outage, and has lasted.
        """
        self._complain(error)
        if isinstance(error, port.UnavailableError):
            self._refused_at, self._refused_write = None, False
            return
        self._refused_write |= self._writes
        at = asyncio.get_running_loop().time()
        if self._refused_at is None:
            self._refused_at = at
        elif at - self._refused_at >= self.terms.deadline:
            raise RefusedError(f"the {self.terms} cannot be used: {error}; {self._remedy(error)}") from error

    def _remedy(self, error: port.ApiError) -> str:
        if isinstance(error, port.ForbiddenError):
            return (
                "grant get, create and update on leases of the group coordination.k8s.io in namespace "
                f"{self.terms.namespace}, or run one replica with --no-leader-elect"
            )
        return "check --lease-namespace and --lease-name, or run one replica with --no-leader-elect"

    def _complain(self, error: port.ApiError) -> None:
        if str(error) != self._trouble:
            _LOG.warning("%s: %s", self.terms, error)
        self._trouble = str(error)

    def _answered(self) -> None:
        if self._trouble:
            _LOG.info("%s: the API server answers again", self.terms)
        self._trouble, self._refused_at, self._refused_write = "", None, False

    # A leader

    async def _keep(self) -> NoReturn:
        """Renew until cancelled or lost."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.0, min(self._pause(), self._until - loop.time())))
            if self._over:
                # Given back by the work itself, whose end `hold` waits for.
                await loop.create_future()
            try:
                async with self._turn:
                    await self._renew(loop)
            except port.ApiError as error:
                self._complain(error)
            else:
                self._answered()

    async def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(2):
            if self._over:
                return
            left = self._until - loop.time()
            if left < _LEAST:
                self._lose(
                    f"it was not renewed within {self.terms.deadline:g} s ({self._trouble or 'stalled'})"
                )
            with contextlib.suppress(port.ConflictError):
                await self._within(self._write_again(), min(left, self.terms.answer))
                return
            # Somebody wrote, or a write of ours whose answer was lost: once more at once, from what is there.

    async def _write_again(self) -> None:
        # Should this try fail, nobody knows what is there.
        raw, self._written = self._written, None
        if raw is None:
            raw = await self._read()
            self.holder = lease_record.holder_of(raw)
            # Emptied by hand is taken back, unless a holder in between has counted itself.
            vacant = not self.holder and lease_record.tenure_of(raw) in (None, self._tenure)
            if self.holder != self.terms.identity and not vacant:
                self._lose(f"{self.holder or 'somebody who left again'} has taken it")
        await self._write(raw, again=True)

    def _lose(self, why: str) -> NoReturn:
        self._until = _NEVER
        if self._lost is None:
            self._lost = LostError(
                f"the {self.terms} was lost: {why}; nothing is written any more, start again to wait for it"
            )
        raise self._lost

    async def _give_back(self) -> None:
        for raw in (self._written, None):
            seen = raw or await self._read()
            if seen is None or lease_record.holder_of(seen) != self.terms.identity:
                return
            with contextlib.suppress(port.ConflictError):
                await self._replace(lease_record.given_back(seen, now=self._now()))
                return

    # Reading and writing

    async def _read(self) -> port.Object | None:
        try:
            return await self._api.get(port.LEASES, self.terms.namespace, self.terms.name)
        except port.NotFoundError:
            return None

    async def _write(self, raw: port.Object | None, *, again: bool, leads: bool = True) -> port.Object:
        """Write the Lease with us as its holder, who leads by that; what was read of it is the condition."""
        self._tried = True
        claim = lease_record.claim(raw, self.terms, now=self._now(), again=again)
        # Others count from when they see this, which is later than its sending.
        sent = asyncio.get_running_loop().time()
        if raw is None:
            made = await self._api.create(port.LEASES, self.terms.namespace, claim)
        else:
            made = await self._replace(claim)
        self.holder = self.terms.identity
        if leads and not self._over:
            self._written, self._tenure = made, lease_record.tenure_of(made)
            self._until = sent + self.terms.deadline
        return made

    async def _replace(self, body: port.Object) -> port.Object:
        return await self._api.replace(port.LEASES, self.terms.namespace, self.terms.name, body)

    def _pause(self) -> float:
        self._pauses += 1
        return self.terms.retry * (1 + lease_record.JITTER * self._jitter(self.terms.identity, self._pauses))

    async def _within(self, call: Awaitable[_T], seconds: float) -> _T:
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError as error:
            raise port.UnavailableError(0, "Timeout", f"no answer within {seconds:g} s") from error


async def _end(task: asyncio.Future[Any]) -> BaseException | None:
    """Cancel a task, wait for its end, and return its error."""
    task.cancel()
    await asyncio.wait({task})
    return None if task.cancelled() else task.exception()
