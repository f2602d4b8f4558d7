"""What `kubectl get` shows of each kind: its columns, and the cells of one object.

Built-in kinds have the columns of a real server; our own have those of their CustomResourceDefinitions. A
kind without an entry shows its name and its age. How cells become an answer is the business of `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import orjson

from lstqueue.api import kinds as own
from lstqueue.embedded import ages, jsonpaths, kinds, resources
from lstqueue.embedded import columns_workloads as workloads
from lstqueue.embedded.columns_workloads import NONE, Cell
from lstqueue.kube import port

_UNKNOWN = "<unknown>"
_ROLE = "node-role.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a `wide` one is shown with `-o wide` only. `format` is `name` for the object's name."""

    name: str
    type: str = "string"
    format: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The columns of a kind, and the cells of an object at a time in ms since the epoch."""

    columns: tuple[Column, ...]
    cells: Callable[[port.Object, int], list[Cell]]


def _view(
    cells: Callable[[port.Object, int], list[Cell]], *shown: str | Column, wide: tuple[str, ...] = ()
) -> View:
    made = [Column(item) if isinstance(item, str) else item for item in shown]
    return View((*made, *(Column(name, wide=True) for name in wide)), cells)


_NAME = Column("Name", format="name")


def _name(obj: port.Object) -> str:
    return str(obj["metadata"].get("name", ""))


def _age(obj: port.Object, now_ms: int) -> str:
    return ages.since(obj["metadata"].get("creationTimestamp"), now_ms)


def _node(node: port.Object, now_ms: int) -> list[Cell]:
    status = node.get("status", {})
    ready = [item for item in status.get("conditions") or () if item["type"] == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[0]["status"] == "True" else "NotReady"
    if node.get("spec", {}).get("unschedulable"):
        word += ",SchedulingDisabled"
    info = status.get("nodeInfo") or {}
    return [
        _name(node),
        word,
        _roles(node["metadata"].get("labels") or {}),
        _age(node, now_ms),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _roles(labels: dict[str, str]) -> str:
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    found.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(filter(None, found))) or NONE


def _address(status: dict[str, Any], kind: str) -> str:
    return next((item["address"] for item in status.get("addresses") or () if item["type"] == kind), NONE)


def _namespace(namespace: port.Object, now_ms: int) -> list[Cell]:
    return [_name(namespace), namespace.get("status", {}).get("phase", ""), _age(namespace, now_ms)]


def _event(event: port.Object, now_ms: int) -> list[Cell]:
    series, source, about = (event.get(key) or {} for key in ("series", "source", "involvedObject"))
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    reporter = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return [
        ages.since(last, now_ms),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, (reporter, host))),
        str(event.get("message", "")).strip(),
        ages.since(first, now_ms),
        series.get("count") or event.get("count") or 1,
        _name(event),
    ]


def _service(service: port.Object, now_ms: int) -> list[Cell]:
    spec = service.get("spec", {})
    return [
        _name(service),
        spec.get("type", "ClusterIP"),
        spec.get("clusterIP") or NONE,
        ",".join(spec.get("externalIPs") or ()) or NONE,
        ",".join(_service_port(item) for item in spec.get("ports") or ()) or NONE,
        _age(service, now_ms),
        workloads.labels(spec.get("selector")),
    ]


def _service_port(item: dict[str, Any]) -> str:
    node = f":{item['nodePort']}" if item.get("nodePort") else ""
    return f"{item.get('port')}{node}/{item.get('protocol', 'TCP')}"


def _lease(lease: port.Object, now_ms: int) -> list[Cell]:
    return [_name(lease), lease.get("spec", {}).get("holderIdentity", ""), _age(lease, now_ms)]


def _priority_class(found: port.Object, now_ms: int) -> list[Cell]:
    policy = found.get("preemptionPolicy", "PreemptLowerPriority")
    return [
        _name(found),
        found.get("value", 0),
        bool(found.get("globalDefault")),
        _age(found, now_ms),
        policy,
    ]


def _config_map(found: port.Object, now_ms: int) -> list[Cell]:
    keys = len(found.get("data") or ()) + len(found.get("binaryData") or ())
    return [_name(found), keys, _age(found, now_ms)]


def _resource_quota(quota: port.Object, now_ms: int) -> list[Cell]:
    status = quota.get("status", {})
    used: dict[str, Any] = status.get("used") or {}
    texts: dict[str, list[str]] = {"limits": [], "requests": []}
    for name, hard in sorted((status.get("hard") or {}).items()):
        kind = "limits" if name.startswith("limits.") else "requests"
        texts[kind].append(f"{name}: {used.get(name, 0)}/{hard}")
    return [_name(quota), ", ".join(texts["requests"]), ", ".join(texts["limits"]), _age(quota, now_ms)]


def _runtime_class(found: port.Object, now_ms: int) -> list[Cell]:
    return [_name(found), found.get("handler", ""), _age(found, now_ms)]


def _created_at(found: port.Object, _now_ms: int) -> list[Cell]:
    return [_name(found), found["metadata"].get("creationTimestamp")]


_PLAIN = _view(lambda obj, now_ms: [_name(obj), _age(obj, now_ms)], _NAME, "Age")

_VIEWS: Mapping[port.Resource, View] = MappingProxyType(
    {
        port.PODS: _view(
            workloads.pod_cells,
            *(_NAME, "Ready", "Status", "Restarts", "Age"),
            wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
        ),
        port.JOBS: _view(
            workloads.job_cells,
            *(_NAME, "Status", "Completions", "Duration", "Age"),
            wide=("Containers", "Images", "Selector"),
        ),
        port.NODES: _view(
            _node,
            *(_NAME, "Status", "Roles", "Age", "Version"),
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        port.NAMESPACES: _view(_namespace, _NAME, "Status", "Age"),
        port.EVENTS: _view(
            _event,
            *("Last Seen", "Type", "Reason", "Object"),
            *(Column("Subobject", wide=True), Column("Source", wide=True), "Message"),
            *(Column("First Seen", wide=True), Column("Count", wide=True)),
            Column("Name", format="name", wide=True),
        ),
        port.SERVICES: _view(
            _service,
            *(_NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"),
            wide=("Selector",),
        ),
        port.LEASES: _view(_lease, _NAME, "Holder", "Age"),
        port.PRIORITY_CLASSES: _view(
            _priority_class,
            *(_NAME, Column("Value", "integer"), Column("Global-Default", "boolean")),
            *("Age", "PreemptionPolicy"),
        ),
        kinds.CONFIG_MAPS: _view(_config_map, _NAME, "Data", "Age"),
        kinds.CRDS: _view(_created_at, _NAME, Column("Created At", "date")),
        resources.LIMIT_RANGES: _view(_created_at, _NAME, Column("Created At", "date")),
        port.RESOURCE_QUOTAS: _view(_resource_quota, _NAME, "Request", "Limit", "Age"),
        resources.RUNTIME_CLASSES: _view(_runtime_class, _NAME, "Handler", "Age"),
        port.CRON_JOBS: _view(
            workloads.cron_job_cells,
            *(_NAME, "Schedule", "Timezone", Column("Suspend", "boolean"), Column("Active", "integer")),
            *("Last Schedule", "Age"),
            wide=("Containers", "Images", "Selector"),
        ),
    }
)


def view(kind: kinds.Kind) -> View:
    """The columns of a kind."""
    return _of_definition(kind.resource.kind) if kind.own else _VIEWS.get(kind.resource, _PLAIN)


@lru_cache(maxsize=64)
def _of_definition(kind: str) -> View:
    shown = own.KINDS[kind].columns
    columns = tuple(Column(item.name, item.type, wide=item.wide) for item in shown)
    finders = [(item.type, jsonpaths.parse(item.path)) for item in shown]

    def cells(obj: port.Object, now_ms: int) -> list[Cell]:
        found = [_cell(kind, find(obj), now_ms) for kind, find in finders]
        return [_name(obj), *found]

    return View((_NAME, *columns), cells)


def _cell(kind: str, values: list[Any], now_ms: int) -> Cell:
    """A value as its column shows it; a value of another type than the column's is left out."""
    if not values or values[0] is None:
        return None
    value = values[0]
    if kind == "date":
        return ages.since(value, now_ms) if isinstance(value, str) else None
    if kind == "integer":
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
