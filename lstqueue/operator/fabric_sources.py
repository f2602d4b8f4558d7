"""What an Interconnect's sources say: which objects have to be watched for one, and how these are read.

Knows no API: objects come in as they are, and what cannot be read is a `TopologyError` for its status. The
readers of cables are imported when there are some, since networkx takes as long to import as all else.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lstqueue.api import interconnect, parsing
from lstqueue.kube import port
from lstqueue.operator import nodes as node_views
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import kueue, labels, rates, volcano

Object = Mapping[str, Any]

LARGEST = 16 * 1024 * 1024
"""Bytes of a file once unpacked: a fabric of 200,000 adapters. Reading as much takes seconds, and nothing
else is done meanwhile."""
STRUCTURED = (interconnect.Format.NETQ, interconnect.Format.SLURM_YAML)
"""Formats that are lists of objects, in JSON or YAML."""
_HYPER_NODES, _TOPOLOGIES = "hypernodes", "topologies"


@dataclass(frozen=True, slots=True)
class Watched:
    """Objects that a source is read from: the one of a name, or all of the kind."""

    resource: port.Resource
    namespace: str = ""
    name: str = ""

    @property
    def title(self) -> str:
        """How a message calls it."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.kind} {where}" if where else self.resource.plural


def watched(source: interconnect.Source) -> Watched | None:
    """What has to be watched for a source; None where nodes, or its own words, are all."""
    if (file := source.config_map) is not None:
        return Watched(port.CONFIG_MAPS, file.namespace, file.name)
    if (topology := source.topology) is not None:
        return Watched(_resource(topology.api_version, _TOPOLOGIES, "Topology"), name=topology.name)
    if source.hyper_nodes is not None:
        return Watched(_resource(source.hyper_nodes.api_version, _HYPER_NODES, "HyperNode"))
    return None


def by_labels(source: interconnect.Source) -> bool:
    """Whether labels of nodes are part of what a source says."""
    return bool(source.node_labels or source.topology or source.hyper_nodes)


def as_objects(nodes: Iterable[node_views.NodeView]) -> list[Object]:
    """Nodes as readers take them."""
    return [{"kind": "Node", "metadata": {"name": node.name, "labels": dict(node.labels)}} for node in nodes]


def read(source: interconnect.Source, objects: Sequence[Object], nodes: Sequence[Object]) -> Found:
    """Read a source.

    Args:
        source: The source.
        objects: Those of `watched`.
        nodes: All nodes of the cluster.

    Raises:
        TopologyError: It says nothing that can be used.
    """
    place = watched(source)
    if place is not None and not objects:
        raise TopologyError(place.title, "is not there; create it, or remove the source")
    if (chosen := source.node_labels) is not None:
        keys = kueue.named([key for key in chosen.keys if key != labels.HOSTNAME])
        return labels.read(nodes, keys, _origin(chosen.preset))
    if source.topology is not None:
        return kueue.read([*({**item, "kind": "Topology"} for item in objects), *nodes])
    if source.hyper_nodes is not None:
        return volcano.read([*({**item, "kind": "HyperNode"} for item in objects), *nodes])
    return _cables(source, objects)


def _cables(source: interconnect.Source, objects: Sequence[Object]) -> Found:
    """Read what only readers of cables can."""
    found: Found
    if (file := source.config_map) is not None:
        text = _text(objects[0], file.key)
        parsed = _parsed(text) if file.format in STRUCTURED else text.splitlines()
        found = _reader(file.format.replace("-", "_")).read(parsed)
    else:
        assert source.explicit is not None  # a rule says that a source is somewhere
        found = _reader("explicit").read([source.explicit.dump()])
    return found


def _reader(form: str) -> Any:
    return importlib.import_module(f"lstqueue.topology.readers.{form}")


def rate(bandwidth: str | None) -> int:
    """MB/s of a bandwidth as it is written, 0 for none."""
    return rates.bandwidth(bandwidth, "")


def _resource(api_version: str, plural: str, kind: str) -> port.Resource:
    group, _, version = api_version.partition("/")
    return port.Resource(group, version, plural, kind, namespaced=False)


def _origin(preset: interconnect.Preset | None) -> str:
    if preset is interconnect.Preset.GPU_OPERATOR:
        return "GPU Operator"
    return preset.value if preset is not None else ""


def _parsed(text: str) -> list[object]:
    """The objects of a file in JSON, or YAML, which is slower."""
    try:
        if text.lstrip()[:1] in ("[", "{"):
            whole = parsing.json_loads(text)
        else:
            whole = yaml.load(text, parsing.FastLoader)  # noqa: S506  # it is a safe one
    except parsing.TwiceError as error:
        raise TopologyError(f"line {error.line}" if error.line else "", str(error)) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        what = " ".join(str(error).split())[:120]
        raise TopologyError("", f"is neither JSON nor YAML ({what}); mend that") from error
    return whole if isinstance(whole, list) else [] if whole is None else [whole]


def _text(raw: Object, key: str) -> str:
    """The file under a key of a ConfigMap."""
    where = f"key {key}"
    data, packed = raw.get("data") or {}, raw.get("binaryData") or {}
    if key in data:
        return str(data[key])
    if key not in packed:
        known = ", ".join(sorted([*data, *packed])[:10]) or "none"
        raise TopologyError(where, f"is not in the ConfigMap, which has {known}; name one there, or add it")
    try:
        unpacking = zlib.decompressobj(wbits=31)
        text = unpacking.decompress(base64.b64decode(packed[key], validate=True), LARGEST)
        if unpacking.unconsumed_tail:
            raise TopologyError(where, f"has more than {LARGEST >> 20} MiB once unpacked; store a part of it")
        if not unpacking.eof:
            raise TopologyError(where, "is gzip that ends early; store all of the file")
        return text.decode("utf-8")
    except (binascii.Error, zlib.error, ValueError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(where, "is no gzip of UTF-8 text; store it as text in data, or packed") from error
