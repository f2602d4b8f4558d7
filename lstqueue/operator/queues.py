"""GPUQueues as the cache keeps them: what the engine needs of one, and the timeouts of its starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import errors, gpuqueue
from lstqueue.engine import model
from lstqueue.jobs import podspec
from lstqueue.operator import ledger, lenient, nodes, windows


@dataclass(frozen=True, slots=True)
class Demand:
    """One demand of a label selector: how the label `key` compares with `values`."""

    key: str
    operator: gpuqueue.Comparison
    values: tuple[str, ...] = ()

    def met(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; a label that is absent is in no list of values, as Kubernetes has it."""
        match self.operator:
            case gpuqueue.Comparison.IN:
                return labels.get(self.key) in self.values
            case gpuqueue.Comparison.NOT_IN:
                return labels.get(self.key) not in self.values
            case gpuqueue.Comparison.EXISTS:
                return self.key in labels
            case gpuqueue.Comparison.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Defaults:
    """What jobs of a queue get that do not say otherwise; durations in ms."""

    estimate: int | None = None
    checkpoint: int = 0
    saves_on_suspend: bool = False
    restart_overhead: int = 0

    def fill(self, spec: ledger.Spec) -> ledger.Spec:
        """Return a spec with what it does not say of checkpoints; its estimate stays, which has a source."""
        silent = not (self.checkpoint or self.saves_on_suspend or self.restart_overhead)
        if silent or spec.checkpoint or spec.saves_on_suspend or spec.restart_overhead:
            return spec
        return replace(
            spec,
            checkpoint=self.checkpoint,
            saves_on_suspend=self.saves_on_suspend,
            restart_overhead=self.restart_overhead,
        )


NOTHING_ELSE = Defaults()


@dataclass(frozen=True, slots=True)
class QueueView:
    """A GPUQueue. Timeouts are in ms, None where the queue leaves them to the operator's settings.

    A queue whose spec cannot be read admits nothing: it has no pools, and `problem` says why.
    `namespace_selector` are the demands on the labels of a namespace; `priority_classes` are those that pods
    of referenced jobs may have beside the cluster's default. `windows` are those of the spec; `engine` has
    none, since which are near depends on the time (`as_of`).
    """

    uid: str
    name: str
    version: int
    generation: int
    engine: model.Queue
    tolerations: tuple[tuple[str, tuple[Mapping[str, Any], ...]], ...] = ()
    namespace_selector: tuple[Demand, ...] = ()
    priority_classes: tuple[str, ...] = ()
    defaults: Defaults = NOTHING_ELSE
    windows: tuple[gpuqueue.Window, ...] = ()
    bind_timeout: int | None = None
    ready_timeout: int | None = None
    problem: str = ""
    status: Mapping[str, Any] | None = None

    def same_spec(self, other: QueueView) -> bool:
        """Whether only the status or the metadata differ."""
        return replace(self, version=0, status=None) == replace(other, version=0, status=None)

    @property
    def default_estimate(self) -> int | None:
        """How long (ms) a gang is expected to run that does not say."""
        return self.defaults.estimate

    @property
    def reclaimed(self) -> int:
        """When it last took back what it had lent, as its status says (ms since the epoch, 0 for never)."""
        return lenient.time((self.status or {}).get("reclaimedAt"))

    def as_of(self, now: int) -> model.Queue:
        """Return what the engine is told at `now` (ms since the epoch)."""
        return replace(self.engine, windows=windows.as_of(self.windows, now)) if self.windows else self.engine

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether it takes the jobs of a namespace with these labels."""
        return all(demand.met(labels) for demand in self.namespace_selector)

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
    return replace(
        empty,
        engine=_engine(meta, spec),
        tolerations=tuple((pool.name, tuple(_raw_tolerations(pool))) for pool in spec.pools),
        namespace_selector=_demands(spec.namespace_selector),
        priority_classes=spec.priority_classes,
        defaults=_defaults(spec.defaults),
        windows=spec.windows,
        bind_timeout=spec.bind_timeout,
        ready_timeout=spec.gang_ready_timeout,
    )


def _engine(meta: Mapping[str, Any], spec: gpuqueue.Spec) -> model.Queue:
    """What the engine needs of a queue, but for its windows."""
    return model.Queue(
        name=meta["name"],
        order=model.Order(spec.order),
        pools=tuple(_pool(pool) for pool in spec.pools),
        max_importance=spec.max_importance,
        preemption=model.Preemption(spec.preemption.within_queue),
        min_run=spec.preemption.min_run_time,
        cap=spec.preemption.max_per_job_per_day,
        shedding=spec.overload.shedding,
        best_effort_share=spec.overload.best_effort_share,
        promises=spec.promises,
        promise_budget=spec.overload.promise_budget,
        held=spec.stop_policy is not gpuqueue.StopPolicy.NONE,
        drained=spec.stop_policy is gpuqueue.StopPolicy.HOLD_AND_DRAIN,
        observed=spec.mode is gpuqueue.Mode.OBSERVE,
        cohort=spec.cohort or "",
        reclaims=spec.preemption.reclaim_within_cohort is gpuqueue.Reclaim.ANY,
        reclaim_grace=spec.preemption.reclaim_grace,
        created=lenient.moment(meta.get("creationTimestamp")) or 0,
    )


def _pool(pool: gpuqueue.Pool) -> model.Pool:
    limits = [(one.name, one.borrowing_limit) for one in pool.resources if one.borrowing_limit is not None]
    return model.Pool(
        name=pool.name,
        selector=tuple(sorted(pool.node_selector.items())),
        tolerations=podspec.tolerations(_raw_tolerations(pool)),
        nominal=tuple(sorted((item.name, item.nominal) for item in pool.resources)),
        limits=tuple(sorted(limits)),
        spot=pool.spot,
    )


def pool_of(queue: QueueView | None, node: nodes.NodeView | None) -> str:
    """Return the first pool of a queue that a node is in, "" for none."""
    if queue is None or node is None:
        return ""
    labels = dict(node.labels)
    for pool in queue.engine.pools:
        if all(labels.get(key) == value for key, value in pool.selector):
            return pool.name
    return ""


def _demands(selector: gpuqueue.NamespaceSelector | None) -> tuple[Demand, ...]:
    if selector is None:
        return ()
    labels = sorted(selector.match_labels.items())
    return (
        *(Demand(key, gpuqueue.Comparison.IN, (value,)) for key, value in labels),
        *(Demand(item.key, item.operator, item.values) for item in selector.match_expressions),
    )


def _defaults(said: gpuqueue.Defaults | None) -> Defaults:
    if said is None:
        return NOTHING_ELSE
    if said.checkpoint is None:
        return Defaults(said.estimated_duration)
    return Defaults(
        estimate=said.estimated_duration,
        checkpoint=said.checkpoint.interval or 0,
        saves_on_suspend=bool(said.checkpoint.on_suspend),
        restart_overhead=said.checkpoint.restart_overhead or 0,
    )


def _raw_tolerations(pool: gpuqueue.Pool) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in pool.tolerations]
