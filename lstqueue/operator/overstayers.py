"""Pods that stay when they should not: left running by a job that is over, or to go from a node that is dead.

The first hold their room until they end: that is told to the user of the job, and they are ended where the
operator was told to; those that are behind our gate have never begun, and nobody else would ever end them.
The second keep the names that the next run of their job needs, where those are fixed:
they are removed by force once nothing has been heard of their node's kubelet for minutes. Its Lease says so,
whose renewals are timed by our own clock, since nobody knows whether other clocks agree with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable

from lstqueue.jobs import existing, kinds, views
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import events
from lstqueue.operator import settings as all_settings

NODE_LEASES = "kube-node-lease"
"""The namespace of the kubelets' Leases, each named like its node."""
LEFT = "PodsLeftRunning"
FORCED = "RemovedByForce"
REFUSED = "NotRemoved"

_LOG = logging.getLogger(__name__)


class Overstayers:
    """Works in a task of its own; looks again and again, and remembers only since when it has seen what."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        told: events.Recorder,
        *,
        settings: all_settings.Settings,
    ) -> None:
        self._api = api
        self._cache = cache
        self._told = told
        self._settings = settings
        self._heartbeats: dict[str, tuple[str, float]] = {}
        self._left_since: dict[str, float] = {}

    async def run(self) -> None:
        """Look after such pods until cancelled."""
        while True:
            await asyncio.sleep(self._settings.look_at_pods)
            await self._left_running()
            if self._settings.force_delete:
                await self._on_dead_nodes()

    # Jobs that are over

    async def _left_running(self) -> None:
        """Tell of pods that a job has left running, and have them ended if that was asked for."""
        now, left = _now(), dict[str, tuple[existing.UnitView, list[views.PodView]]]()
        gated: list[tuple[existing.UnitView, views.PodView]] = []
        for record in self._cache.records.values():
            view = record.unit
            if view is None or not view.by_pods or not view.over:
                continue
            there = [pod for pod in record.pods.values() if not (pod.gone or pod.deleting)]
            gated.extend((view, pod) for pod in there if pod.gated and pod.owner == view.uid)
            running = [pod for pod in there if pod.node]
            if running:
                left[view.uid] = (view, running)
        self._left_since = {uid: self._left_since.get(uid, now) for uid in left}
        for view, running in left.values():
            if now - self._left_since[view.uid] >= self._settings.left_for:
                await self._try(view, functools.partial(self._end, view, running))
        for view, pod in gated:
            await self._try(view, functools.partial(self._clear, pod))

    async def _clear(self, pod: views.PodView) -> None:
        with contextlib.suppress(port.NotFoundError):
            # As it was seen: one whose gate somebody has lifted since is theirs.
            await self._api.delete(
                port.PODS, pod.namespace, pod.name, uid=pod.uid, resource_version=pod.version
            )

    async def _end(self, view: existing.UnitView, running: list[views.PodView]) -> None:
        body = kinds.of(view).end_pods(view) if self._settings.end_left_pods else None
        names = ", ".join(sorted(pod.name for pod in running)[:3])
        words = (
            f"is over, and {len(running)} of its pods still run ({names}): they hold their room until they "
            "end; set spec.runPolicy.cleanPodPolicy to Running to have them ended"
        )
        if body is None:
            self._tell(view, LEFT, words)
            return
        raw = await self._api.patch(kinds.of(view).RESOURCE, view.namespace, view.name, body)
        self._cache.apply_unit(view.kind, raw)
        self._left_since[view.uid] = _now()  # the policy is set, and its controller takes its time
        self._tell(view, LEFT, f"is over, and {len(running)} of its pods still ran ({names}): they are ended")

    # Dead nodes

    async def _on_dead_nodes(self) -> None:
        """Remove pods by force whose names are needed, from nodes that have been silent for long."""
        stuck = self._cache.leaving_on_stale_nodes()
        needed = self._needed() if stuck else {}
        found = [
            (pod, needed[pod.namespace, pod.name]) for pod in stuck if (pod.namespace, pod.name) in needed
        ]
        nodes = {pod.node for pod, _ in found}
        self._heartbeats = {node: seen for node, seen in self._heartbeats.items() if node in nodes}
        silent: dict[str, bool] = {}
        for pod, view in sorted(found, key=lambda pair: pair[0].uid):
            if pod.node not in silent:
                silent[pod.node] = await self._silent(pod.node)
            if silent[pod.node]:
                await self._try(view, functools.partial(self._remove, view, pod))

    def _needed(self) -> dict[tuple[str, str], existing.UnitView]:
        """Return the jobs that are not over by the names of their pods."""
        units = (record.unit for record in self._cache.records.values() if not record.ledger.final)
        return {
            (view.namespace, name): view
            for view in units
            if view is not None and not view.over
            for name in kinds.of(view).pod_names(view)
        }

    async def _silent(self, node: str) -> bool:
        """Whether the Lease of a node has not been renewed for as long as we wait for that."""
        try:
            lease = await self._api.get(port.LEASES, NODE_LEASES, node)
        except port.ApiError as error:
            # Without a Lease nobody can tell; where the node is gone too, its pods are collected.
            _LOG.warning("the heartbeat of node %s cannot be read: %s", node, error)
            self._heartbeats.pop(node, None)
            return False
        renewed = str((lease.get("spec") or {}).get("renewTime") or "")
        seen, since = self._heartbeats.get(node, ("", 0.0))
        if not renewed or seen != renewed:
            self._heartbeats[node] = renewed, _now()
            return False
        return _now() - since >= self._settings.force_after

    async def _remove(self, view: existing.UnitView, pod: views.PodView) -> None:
        minutes = round(self._settings.force_after / 60)
        try:
            await self._api.delete(port.PODS, pod.namespace, pod.name, uid=pod.uid, at_once=True)
        except port.NotFoundError:
            return
        except port.ForbiddenError as error:
            words = f"pod {pod.name} cannot leave node {pod.node}, which is dead: {error.message}"
            self._tell(view, REFUSED, f"{words}; delete it by force, or the node")
            raise
        self._tell(
            view,
            FORCED,
            f"pod {pod.name} could not leave node {pod.node}, silent for {minutes} min; it was removed "
            "by force, for its name is needed",
        )

    async def _try(self, view: existing.UnitView, look: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._cache.guard.calls(view.kind, view.key, look)
        except port.ApiError as error:
            _LOG.warning("pods of %s could not be ended: %s", view.named, error)

    def _tell(self, view: existing.UnitView, reason: str, words: str) -> None:
        entry = self._cache.units.entries.get(view.uid)
        if entry is None or entry.told.get(reason) == words:
            return
        entry.told[reason] = words
        subject = events.Subject(view.api_version, view.kind, view.namespace, view.name, view.uid)
        self._told.tell(events.Note(subject, reason, words, warning=True, once=True))


def _now() -> float:
    """Return seconds by the loop's clock, which nobody sets."""
    return asyncio.get_running_loop().time()
