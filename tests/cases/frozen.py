"""Freezes everything that one part of a program runs, while the rest of the loop goes on: a stopped process.

Tasks that begin in a freezer's context are stepped only while it is not frozen. Timers go on, as they do for
a stopped process, and are noticed when it wakes.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator
from typing import Any

_CURRENT: contextvars.ContextVar[Freezer | None] = contextvars.ContextVar("freezer", default=None)


class Freezer:
    """Use `start` for the first task; those it begins follow."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.get_task_factory() is None:
            loop.set_task_factory(_make)
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self.frozen = False

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        context = contextvars.copy_context()
        context.run(_CURRENT.set, self)
        return self._loop.create_task(work, name=name, context=context)

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        self.frozen = False
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wrap(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await self._stepped(work)

    @types.coroutine
    def _stepped(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            while self.frozen:
                until = self._loop.create_future()
                self._waiting.append(until)
                try:
                    yield from until
                except asyncio.CancelledError as told:
                    error = told
            try:
                awaited = work.send(None) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            error = None
            try:
                yield awaited
            except GeneratorExit:
                work.close()
                raise
            except BaseException as told:
                error = told


def _make(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    context = options.get("context")
    # An empty context is a false one.
    freezer = (contextvars.copy_context() if context is None else context).get(_CURRENT)
    if freezer is None:
        return asyncio.Task(work, loop=loop, **options)
    task = asyncio.Task(freezer.wrap(work), loop=loop, **options)
    # One that is cancelled before its first step never gets to its work.
    task.add_done_callback(lambda _: work.close())
    return task
