"""The kopf shell: login, start-up, clean-up, and the intake of our own kinds. The only importer of kopf.

Only `on.event` handlers that return None, which is the one form in which kopf never writes to an object, and
no storage in which it could. Handlers put what they get into the cache and ring the bell; they call no API.
kopf owns the event loop, so the operator's own tasks are begun and ended by its start-up and clean-up
activities (docs/adr/0002-kopf-as-shell.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import kopf

from lstqueue.api import names
from lstqueue.kube import login
from lstqueue.operator import app, probes

Access = Callable[[], Awaitable[login.Credentials]]
"""Tells how to reach the API server; asked again whenever kopf's own credentials were refused."""


class _Backoffs:
    """Seconds between tries of a request, without end: kopf's own list ends the process after a minute."""

    def __iter__(self) -> Iterator[float]:
        yield from (1.0, 2.0, 5.0, 10.0)
        yield from itertools.repeat(30.0)


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-handled state: nothing that kopf could write to an object."""

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
    """The operator cannot start as it was told to; the message names the remedy."""


@dataclasses.dataclass(slots=True)
class Shell:
    """One operator under kopf. `make` builds it inside the running loop; `running` is set once it is up."""

    make: Callable[[], Awaitable[app.Operator]]
    access: Access
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None
    operator: app.Operator | None = None
    probes: probes.Probes | None = None
    running: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    stop: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    _task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run under kopf until `stop` is set or a part fails; then raise what failed."""
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=self._settings(),
                clusterwide=True,
                standalone=True,
                stop_flag=self.stop,
            )
        finally:
            if self.failure is not None:
                raise self.failure

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        kopf.on.startup(registry=registry)(self._startup)
        kopf.on.cleanup(registry=registry)(self._cleanup)
        for plural, apply in (("deadlinejobs", self._ledger), ("gpuqueues", self._queue)):
            kopf.on.event(names.GROUP, names.VERSION, plural, registry=registry, id=plural)(apply)
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
        if self.probe_port is not None:
            self.probes = probes.Probes(self.operator, host=self.probe_host, port=self.probe_port)
            try:
                await self.probes.start()
            except OSError as error:
                self.failure = StartError(
                    f"cannot serve probes on {self.probe_host}:{self.probe_port}: {error.strerror}; "
                    "free the port or name another with --probe-port"
                )
                raise kopf.PermanentError(str(self.failure)) from error
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
        if self.probes is not None:
            await self.probes.stop()
        if self.operator is not None:
            await self.operator.api.close()

    async def _ledger(self, event: kopf.RawEvent, **_: Any) -> None:
        if self.operator is not None:
            self.operator.cache.apply_ledger(event["type"] or "ADDED", dict(event["object"]))

    async def _queue(self, event: kopf.RawEvent, **_: Any) -> None:
        if self.operator is not None:
            self.operator.cache.apply_queue(event["type"] or "ADDED", dict(event["object"]))
