"""Pods that stay when they should not: left running by a job that is over, or to go from a node that is dead.

The first hold their room until they end: that is told to the user of the job, and they are ended where the
operator was told to; those that are behind our gate have never begun, and nobody else would ever end them.
The second (`dead_nodes`) keep a job with fixed names of pods from its next step: they are removed by force
once nothing has been heard of their node's kubelet for minutes, and no sooner than they were given to leave.
Its Lease says so, whose renewals are timed by our own clock, as is that grace, since nobody knows whether
other clocks agree with it.
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
from lstqueue.operator import dead_nodes, events, unit_facts
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
        now: Callable[[], int],
    ) -> None:
        self._api = api
        self._cache = cache
        self._told = told
        self._settings = settings
        self._now_ms = now
        self._leaving_since: dict[str, float] = {}
        self._held_off = False
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
        now, left = _now(), dict[str, tuple[existing.UnitView, list[views.PodView], bool]]()
        gated: list[tuple[existing.UnitView, views.PodView]] = []
        for record in self._cache.records.values():
            view = record.unit
            if view is None or not view.by_pods or not view.over:
                continue
            there = [pod for pod in record.pods.values() if not (pod.gone or pod.deleting)]
            gated.extend((view, pod) for pod in there if pod.gated and pod.owner == view.uid)
            running = [pod for pod in there if pod.node]
            if running:
                facts = unit_facts.look(self._cache, record, self._now_ms())
                ours = not (facts.hands_off or facts.disputed or facts.refusal[0])
                left[view.uid] = (view, running, ours)
        self._left_since = {uid: self._left_since.get(uid, now) for uid in left}
        for view, running, ours in left.values():
            if now - self._left_since[view.uid] >= self._settings.left_for:
                await self._try(view, functools.partial(self._end, view, running, ours=ours))
        for view, pod in gated:
            await self._try(view, functools.partial(self._clear, pod))

    async def _clear(self, pod: views.PodView) -> None:
        with contextlib.suppress(port.NotFoundError):
            # As it was seen: one whose gate somebody has lifted since is theirs.
            await self._api.delete(
                port.PODS, pod.namespace, pod.name, uid=pod.uid, resource_version=pod.version
            )

    async def _end(self, view: existing.UnitView, running: list[views.PodView], *, ours: bool) -> None:
        body = kinds.of(view).end_pods(view) if self._settings.end_left_pods and ours else None
        names = ", ".join(sorted(pod.name for pod in running)[:3])
        remedy = "set spec.runPolicy.cleanPodPolicy to Running to have them ended"
        words = (
            f"is over, and {len(running)} of its pods still run ({names}): they hold their room until they "
            f"end; {'its controller was told to end them' if view.clears else remedy}"
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
        """Remove pods by force that keep jobs waiting, from nodes that have been silent for long."""
        found, now = dead_nodes.blocking(self._cache, self._now_ms()), _now()
        self._hold_off()
        nodes, uids = {pod.node for pod, _ in found}, {pod.uid for pod, _ in found}
        self._heartbeats = {node: seen for node, seen in self._heartbeats.items() if node in nodes}
        self._leaving_since = {uid: self._leaving_since.get(uid, now) for uid in uids}
        silent: dict[str, bool] = {}
        for pod, view in found:
            if pod.node not in silent:
                silent[pod.node] = await self._silent(pod.node)
            if silent[pod.node] and now - self._leaving_since[pod.uid] >= pod.grace:
                await self._try(view, functools.partial(self._remove, view, pod))

    def _hold_off(self) -> None:
        """Say once that nothing is removed, for so many nodes are silent."""
        many = dead_nodes.many_silent(self._cache)
        if many and not self._held_off:
            _LOG.warning(
                "%d nodes are silent: no pod is removed from them by force until most are back", many
            )
        self._held_off = bool(many)

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
            "by force, for its job waits for it to go",
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
