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

import json
import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lstqueue.api import errors, quantities
from lstqueue.evaluate import workload
from lstqueue.evaluate.traces import tables
from lstqueue.topology import model as topology

PODS_PER_NODE = 110
MOST_GPUS = 1024
"""GPUs of a node above which a file is taken for something else."""
_MIB = 1 << 20


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
        TraceError: A table in it is broken.
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
    if path.suffix in (".json", ".yaml", ".yml"):
        told = _document(path)
        items = told.get("items") if isinstance(told, Mapping) else told
        if not isinstance(items, list):
            what = "has no list of nodes; write one, or what kubectl get nodes -o json gives"
            raise InventoryError(f"{path}: {what}")
        for index, item in enumerate(items):
            yield _object(path, index, item)
        return
    for row in tables.rows(path, ()):
        cells = {name: row.text(name) for name in _FIELDS if row.has(name)}
        yield _machine(path, f"line {row.line}", cells)


def _document(path: pathlib.Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise InventoryError(f"{path}: cannot be read: {error.strerror}; name a file that can") from error
    except (ValueError, yaml.YAMLError) as error:
        raise InventoryError(f"{path}: is no {path.suffix[1:].upper()}: {error}") from error


_FIELDS = ("name", "sn", "gpus", "gpu", "cpu_milli", "memory_mib", "model")


def _object(path: pathlib.Path, index: int, item: Any) -> Machine:
    if not isinstance(item, Mapping):
        raise InventoryError(f"{path}, node {index + 1}: is no object; write name and gpus of each node")
    if "status" not in item:
        return _machine(path, f"node {index + 1}", item)
    name = str((item.get("metadata") or {}).get("name", ""))
    amounts = dict((item["status"] or {}).get("allocatable") or {})
    try:
        offers = {key: quantities.parse(key, value) for key, value in amounts.items()}
    except errors.BadValueError as error:
        raise InventoryError(f"{path}, node {name!r}: {error}") from error
    gpus = offers.pop(workload.GPU, 0)
    return Machine(name, gpus, topology.resources(offers))


def _machine(path: pathlib.Path, place: str, cells: Mapping[str, Any]) -> Machine:
    """A node of a table, or of an object with the same names."""
    if strange := [key for key in cells if key not in _FIELDS]:
        known = ", ".join(_FIELDS)
        raise InventoryError(f"{path}, {place}: {strange[0]!r} means nothing here; known are {known}")
    name = str(cells.get("name") or cells.get("sn") or "")
    if not name:
        raise InventoryError(f"{path}, {place}: has no name; give each node a `name`")

    def whole(key: str) -> int:
        text = str(cells[key]).strip()
        if not text.isdigit():
            raise InventoryError(f"{path}, {place}: {key} is {text!r}; write a whole number, 0 or more")
        return int(text)

    key = "gpus" if "gpus" in cells else "gpu"
    if key not in cells:
        raise InventoryError(f"{path}, {place}: has no gpus; say how many GPUs the node has")
    if (gpus := whole(key)) > MOST_GPUS:
        raise InventoryError(f"{path}, {place}: {key} is {gpus}; a node has {MOST_GPUS} at most")
    offers = {topology.PODS: PODS_PER_NODE}
    if "cpu_milli" in cells:
        offers["cpu"] = whole("cpu_milli")
    if "memory_mib" in cells:
        offers["memory"] = whole("memory_mib") * _MIB
    return Machine(name, gpus, topology.resources(offers))
