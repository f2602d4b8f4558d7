"""The interconnect of a running cluster, read once as the operator reads it, and what is free in it.

Nodes, Interconnects, what their sources name, and pods are listed; nothing is written. What may not be read
is told with the source that needs it, but for nodes, without which there is nothing to show.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lstqueue.interconnect.sources import Gpus, Source, SourceError
from lstqueue.jobs import views
from lstqueue.kube import client, login, port
from lstqueue.operator import fabric_sources, interconnects
from lstqueue.operator import nodes as node_views
from lstqueue.topology import domains

PAGE = 500
_RETRIES = 3
"""Lists that took too long are begun anew so often."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster; `resource` is what is counted as GPUs."""

    kubeconfig: str | None = None
    context: str | None = None
    url: str | None = None
    resource: str = "nvidia.com/gpu"


def read(where: Where) -> Source:
    """Read a cluster.

    Raises:
        SourceError: It cannot be reached, or its nodes cannot be read, or nothing says where they are.
    """
    try:
        return asyncio.run(_read(where))
    except login.LoginError as error:
        raise SourceError(str(error)) from error
    except port.ApiError as error:
        if error.status == 0:
            remedy = "check the URL, or that of the kubeconfig, and whether the server runs"
            raise SourceError(f"the cluster cannot be reached: {error}; {remedy}") from error
        raise SourceError(f"the cluster cannot be read: {error}; grant list on nodes and pods") from error


async def _read(where: Where) -> Source:
    api = await client.connect(url=where.url, kubeconfig=where.kubeconfig, context=where.context)
    try:
        return await look(api, where.resource)
    finally:
        await api.close()


async def look(api: port.KubeApi, resource: str) -> Source:
    """Read a cluster through an API.

    Raises:
        ApiError: Nodes or pods cannot be read.
        SourceError: Nothing says where the nodes are.
    """
    nodes = {node.name: node for node in map(node_views.read, await _list(api, port.NODES))}
    if not nodes:
        raise SourceError("the cluster has no nodes")
    found = await _listed(api, fabric_sources.Watched(port.INTERCONNECTS))
    view = interconnects.chosen(map(interconnects.view, found.objects))
    heard = {}
    for source in view.spec.sources if view is not None and view.spec is not None else ():
        if (place := fabric_sources.watched(source)) is not None:
            heard[place] = await _listed(api, place)
    known = interconnects.Interconnect()
    known.look(view, heard, nodes)
    notes = [f"{name}: {state.problem}" for name, state in known.states.items() if state.problem]
    if view is not None and known.problem:
        notes.append(known.problem)
    made = known.domains
    if made is None:
        # Everything is one then; what is free can be told all the same.
        made = domains.arrange([], {name: () for name in nodes})
        if view is None:
            notes = ["nothing says which nodes are near each other"]
    name = f"Interconnect {view.name}" if view is not None else "labels of the nodes"
    gpus = await _gpus(api, nodes, resource)
    return Source(name, made, tuple(notes), gpus, whole=view is None or not notes)


async def _gpus(
    api: port.KubeApi, nodes: Mapping[str, node_views.NodeView], resource: str
) -> Mapping[str, Gpus]:
    """By node what it has and what of that is free; nothing is on one that takes no more pods."""
    used: Counter[str] = Counter()
    for raw in await _list(api, port.PODS):
        pod = views.pod(raw)
        if pod.node and not pod.gone:
            used[pod.node] += dict(pod.requests).get(resource, 0)
    found = {}
    for name, node in nodes.items():
        has = dict(node.allocatable).get(resource, 0)
        there = node.ready and not node.unschedulable
        found[name] = Gpus(max(0, has - used[name]) if there else 0, has)
    return found


async def _listed(api: port.KubeApi, place: fabric_sources.Watched) -> interconnects.Heard:
    fields = f"metadata.name={place.name}" if place.name else ""
    try:
        return interconnects.Heard(
            await _list(api, place.resource, namespace=place.namespace or None, fields=fields)
        )
    except (port.ForbiddenError, port.NotFoundError) as error:
        return interconnects.Heard(refusal=f"{place.title} cannot be read: {error.message}")


async def _list(
    api: port.KubeApi, resource: port.Resource, *, namespace: str | None = None, fields: str = ""
) -> tuple[port.Object, ...]:
    for attempt in range(_RETRIES):
        found: list[port.Object] = []
        token = ""
        try:
            while True:
                page = await api.list_page(
                    resource, namespace=namespace, fields=fields, limit=PAGE, continue_token=token
                )
                found += page.items
                token = page.continue_token
                if not token:
                    return tuple(found)
        except port.GoneError:
            if attempt == _RETRIES - 1:
                raise
    raise AssertionError("a list ends or raises")
