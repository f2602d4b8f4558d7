"""The kopf shell: election, login, start-up, clean-up, intake of GPUQueues. The only importer of kopf.

One `on.event` handler that returns None, which is the one form in which kopf never writes to an object, and
no storage in which it could. It puts what it gets into the cache, which rings the bell, and calls no API.
kopf owns the event loop, so the operator's own tasks are begun and ended by its start-up and clean-up
activities (docs/adr/0002-kopf-as-shell.md). A follower has neither kopf nor an operator: it serves probes
and waits for the Lease, and who gets it starts from a list.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import http
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import kopf
from kopf._cogs.clients import errors as kopf_errors  # not exported, and raised through its public entry

from lstqueue.api import names
from lstqueue.kube import lease, login
from lstqueue.operator import app, probes

Access = Callable[[], Awaitable[login.Credentials]]
"""Tells how to reach the API server; asked again whenever kopf's own credentials were refused."""


_YOUNG = 20_000
"""Containers after which the garbage collector looks for cycles. A watch event makes hundreds and no cycle:
at Python's own 700 a fifteenth of the CPU goes into looking."""


class _Backoffs:
    """Seconds between tries of a request, without end: kopf's own list ends the process after a minute."""

    def __iter__(self) -> Iterator[float]:
        yield from (1.0, 2.0, 5.0, 10.0)
        yield from itertools.repeat(30.0)


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-handled state: nothing that kopf could write to an object."""

    def build(
        self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None
    ) -> kopf.BodyEssence:
        # Only other handlers than ours compare it with anything, and kopf's own is a deep copy of the object.
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress, since event handlers have none."""

    def fetch(self, *, key: Any, body: kopf.Body) -> Any:
        return None

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        return None

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        return None

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class StartError(Exception):
    """The operator cannot start, or go on, as it was told to; the message names the remedy."""


def _gone(error: kopf_errors.APIError) -> str:
    """Say why the watch of GPUQueues is over for good."""
    if error.status != http.HTTPStatus.NOT_FOUND:
        return f"GPUQueues cannot be watched any more: {error}; see to that, and start again"
    return (
        "GPUQueues are not served any more: the CRDs of lstqueue were deleted, and with them every queue and "
        "DeadlineJob; install them with `kubectl apply -f crds/` and start again, or leave it stopped"
    )


def _said_elsewhere(record: logging.LogRecord) -> bool:
    """Leave out tracebacks of what ends the process, and is its last word then; kopf logs each twice."""
    return not (record.exc_info and isinstance(record.exc_info[1], kopf_errors.APIError))


@dataclasses.dataclass(slots=True)
class Shell:
    """One operator under kopf.

    `make` builds it inside the running loop; `running` is set once it is up. With an `elector` it is built
    once that leads. `before` is awaited just before kopf starts.
    """

    make: Callable[[], Awaitable[app.Operator]]
    access: Access
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None
    elector: lease.Elector | None = None
    before: Callable[[], Awaitable[None]] | None = None
    operator: app.Operator | None = None
    probes: probes.Probes | None = None
    running: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    stop: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    _task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run under kopf until `stop` is set or a part fails; then raise what failed.

        Raises:
            StartError: the probes cannot be served.
            lease.LeaseError: the Lease cannot be had, or was lost.
        """
        await self._serve_probes()
        try:
            if self.elector is None:
                await self._lead()
            elif await self._unless_stopped(self.elector.acquire()):
                await self.elector.hold(self._lead)
        finally:
            if self.elector is not None:
                await self.elector.release()
            if self.probes is not None:
                await self.probes.stop()

    async def _lead(self) -> None:
        if self.before is not None and not await self._unless_stopped(self.before()):
            return
        # A line for each event that was taken in, whatever it says, would be most of the log.
        logging.getLogger("kopf.objects").setLevel(logging.WARNING)
        for part in ("orchestration", "running"):
            logging.getLogger(f"kopf._core.reactor.{part}").addFilter(_said_elsewhere)
        gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=self._settings(),
                clusterwide=True,
                standalone=True,
                stop_flag=self.stop,
            )
        except kopf_errors.APIError as error:
            if self.failure is None:
                self.failure = StartError(_gone(error))
                self.failure.__cause__ = error
        finally:
            if self.failure is not None:
                raise self.failure

    async def _unless_stopped(self, waited: Awaitable[None]) -> bool:
        """Await something; return whether it came to its end before `stop` was set."""
        work, stopped = asyncio.ensure_future(waited), asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            work.cancel()
            await asyncio.wait({work, stopped})
        if work.cancelled():
            return False
        work.result()
        return not self.stop.is_set()

    async def _serve_probes(self) -> None:
        if self.probe_port is None:
            return
        self.probes = probes.Probes(
            lambda: self.operator, elector=self.elector, host=self.probe_host, port=self.probe_port
        )
        try:
            await self.probes.start()
        except OSError as error:
            raise StartError(
                f"cannot serve probes on {self.probe_host}:{self.probe_port}: {error.strerror}; "
                "free the port or name another with --probe-port"
            ) from error

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        kopf.on.startup(registry=registry)(self._startup)
        kopf.on.cleanup(registry=registry)(self._cleanup)
        kopf.on.event(names.GROUP, names.VERSION, "gpuqueues", registry=registry, id="gpuqueues")(self._queue)
        return registry

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.peering.standalone = True
        settings.queueing.idle_timeout = 0.01
        settings.networking.error_backoffs = _Backoffs()
        # Kubernetes ends a process that hangs; a SIGKILL of kopf's own would hit whatever else runs in it.
        settings.process.ultimate_exiting_timeout = None
        settings.persistence.diffbase_storage = _NoDiffBase()
        settings.persistence.progress_storage = _NoProgress()
        settings.persistence.finalizer = f"{names.GROUP}/none"
        return settings

    async def _login(self, **_: Any) -> kopf.ConnectionInfo:
        found = await self.access()
        return kopf.ConnectionInfo(
            server=found.server,
            scheme=found.scheme,
            token=found.token,
            ca_path=found.ca_path,
            ca_data=found.ca_data,
            certificate_path=found.certificate_path,
            private_key_path=found.private_key_path,
            insecure=found.insecure,
            proxy_url=found.proxy,
        )

    async def _startup(self, *, settings: kopf.OperatorSettings, **_: Any) -> None:
        self.operator = await self.make()
        tuned = self.operator.settings
        settings.watching.server_timeout = tuned.watch_seconds
        settings.watching.inactivity_timeout = tuned.inactivity_timeout
        settings.watching.chunk_size = tuned.page_size
        self._task = asyncio.create_task(self.operator.run(), name="lstqueue operator")
        self._task.add_done_callback(self._ended)
        self.running.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
            self.stop.set()

    async def _cleanup(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task
        if self.elector is not None:
            # After the last write, and not after kopf's own end, which takes seconds.
            await self.elector.release()
        if self.operator is not None:
            await self.operator.api.close()

    async def _queue(self, event: kopf.RawEvent, **_: Any) -> None:
        if self.operator is not None:
            self.operator.cache.apply_queue(event["type"] or "ADDED", dict(event["object"]))
