"""The operators of a virtual cluster: the real one under kopf, and the next when it is killed.

All run in the cluster's own loop and know nothing of each other but what the API tells. The times of theirs
that count idle minutes are long here, because a virtual day has as many of those as a real one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lstqueue.demo import trouble
from lstqueue.embedded import world
from lstqueue.engine import model
from lstqueue.kube import client
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings

BOOKMARKS = 3600.0
"""Seconds between the bookmarks of watches that live for hours."""

_SETTINGS = all_settings.Settings(
    watch_seconds=6 * 3600,
    inactivity_timeout=2 * 3600.0,
    relist_interval=6 * 3600.0,
    queue_status_interval=600.0,
)

_SETTLED = 1.5
"""Seconds after which an end, or a submission, has come through to the operator."""


def settings(engine: model.Config, *, pass_every: float = 0.0) -> all_settings.Settings:
    """Return an operator's settings for virtual days; `pass_every` are seconds between passes at least.

    Who passes seldom waits until what has begun has come through, such as the end of a gang, which its Jobs
    tell a second after its pods: else the pass would come too early, and the next one a long time after.
    """
    made = replace(_SETTINGS, engine=engine, pass_every=pass_every)
    return replace(made, quiet=_SETTLED, at_most=2 * _SETTLED) if pass_every > 2 * _SETTLED else made


@dataclass(slots=True)
class Operators:
    """Those of one cluster, one after the other: `made` has all. A `trap` kills one."""

    cluster: world.World
    settings: all_settings.Settings
    trap: trouble.Trap | None = None
    made: list[app.Operator] = field(default_factory=list)
    stop: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Run an operator, and the next one when it is killed, until `stop` is called."""
        while True:
            access = await client.connect(url=self.cluster.url)
            running = shell.Shell(make=self._make, access=access.credentials)
            self.stop = running.stop.set
            try:
                await running.run()
            except* trouble.Killed:
                pass
            finally:
                await access.close()
            if running.failure is None or self.trap is None:
                return
            await self.trap.pause()

    async def _make(self) -> app.Operator:
        made = app.Operator(
            await client.connect(url=self.cluster.url),
            now=self.cluster.now,
            settings=self.settings,
            fed=True,
            fence=self.trap.spring if self.trap is not None else None,
        )
        self.made.append(made)
        return made

    def requests(self) -> dict[str, int]:
        """What the operators asked of the API, by verb and kind."""
        found: Counter[tuple[str, str]] = Counter()
        for operator in self.made:
            found += operator.api.requests
        return {f"{verb} {kind}": count for (verb, kind), count in sorted(found.items())}
