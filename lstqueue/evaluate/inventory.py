"""The nodes of a replay: so many that are alike, or those of a file.

| file | has |
|---|---|
| CSV | a header with `name` (or `sn`) and `gpus` (or `gpu`); also `cpu_milli`, `memory_mib`, `model` |
| JSON, YAML | a list of objects with the same names, or what `kubectl get nodes -o json` (or `yaml`) writes |

So the nodes of a live cluster are those that its API server tells of. Nodes without a GPU are left out and
counted: nothing in a trace would go there. Of a cluster's nodes what is allocatable counts, whether a node is
ready or not; taints and labels do not.
"""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lstqueue.api import errors, quantities
from lstqueue.evaluate import documents, workload
from lstqueue.evaluate.traces import cells, tables
from lstqueue.topology import model as topology

PODS_PER_NODE = 110
MOST_GPUS = 1024
"""GPUs of a node above which a file is taken for something else."""
MOST_CPU_MILLI, MOST_MEMORY_MIB = 10**9, 1 << 32
"""A million cores, and as much memory as placement can count."""
_MIB = 1 << 20
T = TypeVar("T")


class InventoryError(ValueError):
    """A file of nodes that cannot be used; the message names it, the node and the remedy."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: its GPUs, and what else it has, `topology.PODS` included."""

    name: str
    gpus: int
    offers: tuple[tuple[str, int], ...] = ((topology.PODS, PODS_PER_NODE),)

    def allocatable(self, gpus: int) -> topology.Resources:
        """What it offers with so many GPUs left."""
        return topology.resources({**dict(self.offers), workload.GPU: gpus})


@dataclass(frozen=True, slots=True)
class Inventory:
    """The nodes of a file, and how many of it were left out for having no GPU."""

    machines: tuple[Machine, ...]
    without: int = 0

    @property
    def commonest(self) -> int:
        """The GPUs per node of the kind of nodes that has most GPUs in all; of equals the larger."""
        sums: Counter[int] = Counter()
        for machine in self.machines:
            sums[machine.gpus] += machine.gpus
        return max(sums, key=lambda gpus: (sums[gpus], gpus))


def alike(nodes: int, gpus: int) -> tuple[Machine, ...]:
    """Return so many nodes of so many GPUs."""
    width = len(str(max(nodes - 1, 0)))
    return tuple(Machine(f"node-{index:0{width}d}", gpus) for index in range(nodes))


@dataclass(frozen=True, slots=True)
class Shape:
    """The nodes: how many, and GPUs on each; or `listed`, and gangs cut for nodes of `gpus_per_node`."""

    nodes: int
    gpus_per_node: int
    listed: tuple[Machine, ...] = ()

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Each node."""
        return self.listed or alike(self.nodes, self.gpus_per_node)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(machine.gpus for machine in self.listed) or self.nodes * self.gpus_per_node

    @property
    def words(self) -> str:
        """The nodes, for people."""
        if not self.listed:
            return f"{self.nodes:,} nodes × {self.gpus_per_node} GPUs"
        return f"{self.nodes:,} listed nodes, {self.gpus:,} GPUs"


def read(path: pathlib.Path) -> Inventory:
    """Read the nodes of a file, in its order.

    Raises:
        InventoryError: It cannot be read, is of no known form, or has no node with a GPU.
        TraceError: It cannot be read, or is broken.
    """
    found = list(_machines(path))
    names = Counter(machine.name for machine in found)
    if names and (twice := names.most_common(1)[0])[1] > 1:
        raise InventoryError(f"{path}: node {twice[0]!r} is there twice; give each a name of its own")
    machines = tuple(machine for machine in found if machine.gpus)
    if not machines:
        raise InventoryError(f"{path}: no node of {len(found)} has a GPU; check the file and its columns")
    return Inventory(machines, len(found) - len(machines))


def _machines(path: pathlib.Path) -> Iterator[Machine]:
    if path.suffix in documents.SUFFIXES:
        told = documents.read(path)
        items = told.get("items") if isinstance(told, Mapping) else told
        if not isinstance(items, list):
            what = "has no list of nodes; write one, or what kubectl get nodes -o json gives"
            raise InventoryError(f"{path}: {what}")
        for index, item in enumerate(items):
            yield _object(path, f"node {index + 1}", item)
        return
    for row in tables.rows(path, ()):
        cells_ = {name: row.text(name) for name in _FIELDS if row.has(name)}
        yield _machine(path, f"line {row.line}", cells_)


_FIELDS = ("name", "sn", "gpus", "gpu", "cpu_milli", "memory_mib", "model")


def _object(path: pathlib.Path, place: str, item: Any) -> Machine:
    if not isinstance(item, Mapping):
        raise InventoryError(f"{path}, {place}: is no object; write name and gpus of each node")
    if "status" not in item:
        return _machine(path, place, item)
    name = _field(path, place, "metadata.name", lambda: documents.name(_part(item, "metadata").get("name")))
    amounts = _field(path, place, "status.allocatable", lambda: _part(_part(item, "status"), "allocatable"))
    try:
        offers = {str(key): quantities.parse(str(key), value) for key, value in amounts.items()}
    except errors.BadValueError as error:
        raise InventoryError(f"{path}, node {name!r}: {error}") from error
    gpus = offers.pop(workload.GPU, 0)
    if gpus > MOST_GPUS:
        raise InventoryError(f"{path}, node {name!r}: has {gpus} GPUs; a node has {MOST_GPUS} at most")
    return Machine(name, gpus, topology.resources(offers))


def _part(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping within another; empty where there is none.

    Raises:
        CellError: There is something else.
    """
    found = item.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise cells.CellError(f"has {documents.shown(found)} for {key}; write it as kubectl does")
    return found


def _field(path: pathlib.Path, place: str, key: str, read: Callable[[], T]) -> T:
    """Read a field; what it raises as a `cells.CellError` gets the place."""
    try:
        return read()
    except cells.CellError as error:
        raise InventoryError(f"{path}, {place}: {key} {error}") from error


def _machine(path: pathlib.Path, place: str, told: Mapping[str, Any]) -> Machine:
    """A node of a table, or of an object with the same names."""
    if strange := [key for key in told if key not in _FIELDS]:
        known = ", ".join(_FIELDS)
        what = f"{documents.shown(strange[0])} means nothing here; known are {known}"
        raise InventoryError(f"{path}, {place}: {what}")
    called = told.get("name") or told.get("sn")
    if called in (None, ""):
        raise InventoryError(f"{path}, {place}: has no name; give each node a `name`")
    name = _field(path, place, "name", lambda: documents.name(called))
    key = "gpus" if "gpus" in told else "gpu"
    if key not in told:
        raise InventoryError(f"{path}, {place}: has no gpus; say how many GPUs the node has")

    def whole(key: str, most: int) -> int:
        return _field(path, place, key, lambda: documents.whole(told[key], most))

    gpus, offers = whole(key, MOST_GPUS), {topology.PODS: PODS_PER_NODE}
    if "cpu_milli" in told:
        offers["cpu"] = whole("cpu_milli", MOST_CPU_MILLI)
    if "memory_mib" in told:
        offers["memory"] = whole("memory_mib", MOST_MEMORY_MIB) * _MIB
    return Machine(name, gpus, topology.resources(offers))
