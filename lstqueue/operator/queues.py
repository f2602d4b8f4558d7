"""GPUQueues as the cache keeps them: what the engine needs of one, and the timeouts of its starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import errors, gpuqueue
from lstqueue.engine import model
from lstqueue.jobs import podspec


@dataclass(frozen=True, slots=True)
class QueueView:
    """A GPUQueue. Timeouts are in ms, None where the queue leaves them to the operator's settings.

    A queue whose spec cannot be read admits nothing: it has no pools, and `problem` says why.
    """

    uid: str
    name: str
    version: int
    generation: int
    engine: model.Queue
    tolerations: tuple[tuple[str, tuple[Mapping[str, Any], ...]], ...] = ()
    default_estimate: int | None = None
    bind_timeout: int | None = None
    ready_timeout: int | None = None
    problem: str = ""
    status: Mapping[str, Any] | None = None

    def same_spec(self, other: QueueView) -> bool:
        """Whether only the status or the metadata differ."""
        return replace(self, version=0, status=None) == replace(other, version=0, status=None)

    def pool_tolerations(self, pool: str) -> tuple[Mapping[str, Any], ...]:
        """Return what the pods placed in a pool get, as JSON."""
        return dict(self.tolerations).get(pool, ())


def read(raw: Mapping[str, Any]) -> QueueView:
    """Project a GPUQueue; never raises for what a user wrote."""
    meta = raw["metadata"]
    empty = QueueView(
        uid=meta["uid"],
        name=meta["name"],
        version=int(meta["resourceVersion"]),
        generation=meta.get("generation", 0),
        engine=model.Queue(meta["name"]),
        status=raw.get("status") or {},
    )
    try:
        spec = gpuqueue.parse(raw)
    except errors.InvalidSpecError as error:
        return replace(empty, problem=str(error))
    pools = tuple(
        model.Pool(
            name=pool.name,
            selector=tuple(sorted(pool.node_selector.items())),
            tolerations=podspec.tolerations(_raw_tolerations(pool)),
            nominal=tuple(sorted((item.name, item.nominal) for item in pool.resources)),
        )
        for pool in spec.pools
    )
    return replace(
        empty,
        engine=model.Queue(
            name=meta["name"],
            order=model.Order(spec.order),
            pools=pools,
            max_importance=spec.max_importance,
        ),
        tolerations=tuple((pool.name, tuple(_raw_tolerations(pool))) for pool in spec.pools),
        default_estimate=spec.defaults.estimated_duration if spec.defaults else None,
        bind_timeout=spec.bind_timeout,
        ready_timeout=spec.gang_ready_timeout,
    )


def _raw_tolerations(pool: gpuqueue.Pool) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in pool.tolerations]
