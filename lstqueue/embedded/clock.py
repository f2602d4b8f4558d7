"""Discrete-event time for asyncio: a loop whose clock jumps to the next timer when nothing else can happen.

Everything that runs in one `VirtualLoop` (operator, API server, controllers, HTTP between them over loopback)
shares one virtual time, so days pass in seconds and every timeout keeps its meaning. Only time is virtual:
sockets, threads and processes are real, and none of them may be overtaken by a jump. A jump is therefore
made only when no callback is ready, no socket is readable, no byte is on its way between two sockets of this
process, and no thread is being waited for. While a child process runs, time passes at the real pace: the
child may be a client that waits for something to happen in here. A loop with a `speed` never jumps: somebody
follows it, and sees time pass that much faster than outside.

It is no scheduler of other processes: a peer that this loop did not start may find that days have passed
between its request and the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent import futures
from typing import Any, TypeVar, TypeVarTuple

from lstqueue.embedded import loopback

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_Events = list[tuple[selectors.SelectorKey, int]]

DEFAULT_EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: wall time at virtual second 0 unless a world says otherwise."""

_RESOLUTION = 1e-6
"""Timers closer together than this (s) fire together. Floats near 1e9 s still tell such times apart, so that
a jump to a timer always fires it; asyncio's own 1e-9 is lost in rounding after 1e7 s: the loop would spin."""

_NAP = 50e-6
"""Real seconds slept between two looks at bytes under way: the kernel seldom needs more to deliver them."""

_PATIENCE = 0.25
"""Real seconds after which bytes that nobody fetches are taken for a stalled reader, who waits on a timer."""

_CONNECT_PATIENCE = 10.0
"""The same for connections being opened: a full backlog makes the kernel try again after 1, 3 and 7 s."""

_QUIET_LIMIT = 10.0
"""Real seconds without timer and traffic after which a loop with a horizon gives up."""

_NAMED = 12
"""How many tasks and timers an error names."""


class StuckError(Exception):
    """A scenario did not end before its horizon, or nothing is left that could wake it."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time, starting at 0 s.

    Args:
        horizon: virtual seconds after which the loop raises `StuckError` naming what waits; None is never.
        speed: virtual seconds per real second that the loop waits; None jumps from timer to timer.

    Attributes:
        jumps: how often the clock moved.
        expired: how often bytes on a socket were given up on as a stalled reader's.
    """

    def __init__(self, *, horizon: float | None = None, speed: float | None = None) -> None:
        self._virtual_now = 0.0
        self._horizon = horizon
        self._speed = speed
        self._holds = 0
        self._children = 0
        self.jumps = 0
        self.expired = 0
        super().__init__(_VirtualSelector(self))
        self._clock_resolution = _RESOLUTION

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual_now

    @property
    def held(self) -> bool:
        """Whether a thread or `hold` keeps the clock from moving."""
        return self._holds > 0

    @property
    def paced(self) -> bool:
        """Whether time passes steadily: for a child process, `real_pace`, or at a given speed."""
        return self._children > 0 or self._speed is not None

    @property
    def speed(self) -> float | None:
        """Virtual seconds per real second; None jumps from timer to timer."""
        return self._speed

    @property
    def horizon(self) -> float | None:
        """Virtual seconds at which the loop gives up."""
        return self._horizon

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Stop the clock: whatever is awaited inside takes real but no virtual time."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    @contextlib.contextmanager
    def real_pace(self) -> Iterator[None]:
        """Let time pass as outside, for the sake of a peer in another process."""
        self._children += 1
        try:
            yield
        finally:
            self._children -= 1

    def run_in_executor(
        self, executor: futures.Executor | None, func: Callable[[*_Ts], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Run `func` in a thread; the clock stands until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self._holds += 1
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Join the threads in real time: a jump would end the wait of newer Pythons at once."""
        with self.hold():
            await super().shutdown_default_executor(*args)

    async def subprocess_shell(self, *args: Any, **kwargs: Any) -> Any:
        """Start a child process; time passes at the real pace until it has ended."""
        with self.real_pace():
            transport, protocol = await super().subprocess_shell(*args, **kwargs)
            self._await_child(transport)
        return transport, protocol

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        """Start a child process; time passes at the real pace until it has ended."""
        with self.real_pace():
            transport, protocol = await super().subprocess_exec(*args, **kwargs)
            self._await_child(transport)
        return transport, protocol

    def advance(self, seconds: float) -> None:
        """Move the clock by real seconds that have passed, not beyond the next timer."""
        when = self._next_timer()
        self._virtual_now = min(self._virtual_now + seconds, when) if when else self._virtual_now + seconds

    def jump(self) -> None:
        """Move the clock to the next timer.

        Raises:
            StuckError: the horizon lies before it.
        """
        when = self._next_timer()
        assert when is not None, "asyncio gave a timeout without having a timer"
        if self._horizon is not None and when > self._horizon:
            self.give_up(f"nothing but timers beyond the horizon of {self._horizon:.3f} s")
        if when > self._virtual_now:
            self._virtual_now = when
            self.jumps += 1

    def give_up(self, why: str) -> None:
        """Raise `StuckError` naming what waits; the horizon moves a day so that tasks can be cancelled."""
        if self._horizon is not None:
            self._horizon = max(self._horizon, self._virtual_now) + 86_400
        raise StuckError(f"stuck at virtual second {self._virtual_now:.3f}: {why}. {self._what_waits()}")

    def _next_timer(self) -> float | None:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else None

    def _thread_ended(self, _: object) -> None:
        self._holds -= 1

    def _await_child(self, transport: Any) -> None:
        # `_wait` is what asyncio.subprocess.Process.wait() awaits; transports have no public form of it.
        self._children += 1
        self.create_task(transport._wait()).add_done_callback(self._child_ended)

    def _child_ended(self, _: object) -> None:
        self._children -= 1

    def _what_waits(self) -> str:
        tasks = [_describe_task(task) for task in asyncio.all_tasks(self)]
        timers = sorted(
            (handle for handle in self._scheduled if not handle.cancelled()),  # type: ignore[attr-defined]
            key=asyncio.TimerHandle.when,
        )
        next_timers = [f"{timer.when():.3f} s {timer!r}" for timer in timers[:_NAMED]]
        return (
            f"{len(tasks)} tasks wait: {'; '.join(sorted(tasks)[:_NAMED])}. "
            f"{len(timers)} timers, the next: {'; '.join(next_timers)}"
        )


class _VirtualSelector(selectors.DefaultSelector):
    """Asyncio's one blocking call. Polls sockets in real time; where it would wait for a timer, it jumps."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._wire = loopback.Wire()
        self._closed = False
        self._watched: dict[int, int] = {}

    # The same as get_map(), which is too slow to go through at every jump.

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a socket."""
        return self._remember(super().register(fileobj, events, data))

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a socket for other events."""
        return self._remember(super().modify(fileobj, events, data))

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Forget a socket."""
        self._closed = True
        key = super().unregister(fileobj)
        self._watched.pop(key.fd, None)
        return key

    def _remember(self, key: selectors.SelectorKey) -> selectors.SelectorKey:
        self._watched[key.fd] = key.events
        return key

    def select(self, timeout: float | None = None) -> _Events:
        """Return ready sockets; an empty list also after a jump."""
        events = super().select(0)
        if events or timeout == 0:
            return events
        if self._loop.held:
            return super().select(None)
        if self._loop.paced:
            return self._select_at_pace(timeout)
        events = self._settle()
        if events:
            return events
        if timeout is None:
            return self._wait_for_the_world()
        self._loop.jump()
        return []

    def _select_at_pace(self, timeout: float | None) -> _Events:
        speed = self._loop.speed
        pace = speed or 1.0
        started = time.monotonic()
        events = super().select(timeout if timeout is None else timeout / pace)
        if events:
            self._loop.advance((time.monotonic() - started) * pace)
        elif speed is None:
            self._loop.jump()
        elif timeout is not None:
            # asyncio never asks for more than a day; the next timer may lie beyond it.
            self._loop.advance(timeout)
        return events

    def _settle(self) -> _Events:
        """Wait, for real, until nothing is under way between our own sockets, or something has arrived."""
        started = time.monotonic()
        while self._wire.busy(self._watched):
            events = super().select(0)
            if events:
                return events
            patience = _CONNECT_PATIENCE if self._wire.opening else _PATIENCE
            if time.monotonic() - started > patience:
                self._wire.write_off(self._watched)
                self._loop.expired += 1
                break
            time.sleep(_NAP)
        if self._closed or loopback.GRACE:
            # The last bytes of a socket that is closed already can no longer be asked for.
            self._closed = False
            time.sleep(max(_NAP, loopback.GRACE))
        # What was delivered before the last look at the wire is readable now at the latest.
        return super().select(0)

    def _wait_for_the_world(self) -> _Events:
        if self._loop.horizon is None:
            return super().select(None)
        events = super().select(_QUIET_LIMIT)
        if not events:
            self._loop.give_up("no timer is set and no socket has data")
        return events


class VirtualClock:
    """Wall time of a virtual loop, in ms since the Unix epoch.

    Args:
        loop: the loop whose time it tells.
        epoch_ms: wall time at the loop's second 0.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, epoch_ms: int = DEFAULT_EPOCH_MS) -> None:
        self._loop = loop
        self.epoch_ms = epoch_ms

    def now(self) -> int:
        """Return ms since the epoch.

        Never earlier than a timer that has just fired was set for: the resolution of timers is added before
        the fraction is cut off.
        """
        return self.epoch_ms + int((self._loop.time() + _RESOLUTION) * 1000)


def run(main: Coroutine[Any, Any, _T], *, horizon: float | None = None, speed: float | None = None) -> _T:
    """Run a coroutine to its end in a new virtual loop, as `asyncio.run` does in real time.

    Args:
        main: the coroutine.
        horizon: virtual seconds at which to give up.
        speed: virtual seconds per real second; None jumps from timer to timer.

    Raises:
        StuckError: it did not end within `horizon` virtual seconds, or cannot end.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(horizon=horizon, speed=speed)) as runner:
        return runner.run(main)


def _describe_task(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    where = f" at {frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else ""
    name = getattr(task.get_coro(), "__qualname__", repr(task.get_coro()))
    return f"{task.get_name()} ({name}{where})"
