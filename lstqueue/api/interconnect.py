"""An Interconnect: where it is told which nodes are near each other, and what became of that.

`parse` reads the spec from a raw object, unknown fields ignored. What the sources say is read elsewhere; the
rules between fields are in `interconnect_rules`. Of nodes and links that are written down here, whatever a
pattern cannot say is said by their reader, in the status.
"""

from __future__ import annotations

import enum
from typing import Annotated

import pydantic

from lstqueue.api import base, interconnect_rules, reading
from lstqueue.api.conditions import Conditions

MOST_TOLD = 20
"""What was left out, or merged, that a status tells one by one."""
MOST_LEVELS = 32
"""Levels that a status tells."""

_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_BANDWIDTH = "^[1-9][0-9]{0,8} ?(Gb/s|GB/s|MB/s)$"
_LATENCY = "^[1-9][0-9]{0,5} ?(ns|us)$"

Bandwidth = Annotated[pydantic.StrictStr, pydantic.Field(max_length=20, pattern=_BANDWIDTH)]
"""A rate one way, such as 400Gb/s or 50GB/s."""
_Vertex = Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=253)]
_Label = Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=317)]


class Preset(enum.StrEnum):
    """Whose labels say where nodes are."""

    COREWEAVE = "CoreWeave"
    CRUSOE = "Crusoe"
    EKS = "EKS"
    GKE = "GKE"
    GPU_OPERATOR = "GPUOperator"
    NEBIUS = "Nebius"
    OCI = "OCI"
    TOPOGRAPH = "Topograph"


class Format(enum.StrEnum):
    """What a file is written in."""

    IBNETDISCOVER = "ibnetdiscover"
    NETQ = "netq"
    SLURM = "slurm"
    SLURM_YAML = "slurm-yaml"


class VertexKind(enum.StrEnum):
    """What a node of the graph is."""

    NODE = "node"
    SWITCH = "switch"
    NVL = "nvl"
    NIC = "nic"
    GPU = "gpu"


class NodeLabels(base.Model):
    """Labels of nodes; with neither field those that most nodes have of the labels that are known."""

    preset: Preset | None = None
    """Whose labels."""
    keys: Annotated[tuple[_Label, ...], base.list_set(16), pydantic.AfterValidator(base.distinct)] = (
        pydantic.Field(default_factory=tuple)
    )
    """Labels of your own, from coarse to fine; a level is called what is behind the / of its label."""


class ConfigMapKey(base.Model):
    """A file in a ConfigMap: text, or gzip in binaryData."""

    namespace: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=63, pattern=_NAME)]
    """Namespace of the ConfigMap."""
    name: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=253)]
    """Name of the ConfigMap."""
    key: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=253)]
    """Key of the file in data or binaryData."""
    format: Format
    """ibnetdiscover: what that prints. netq: a topologyGraph of NetQ, JSON. slurm: a topology.conf of tree or
    block. slurm-yaml: a topology.yaml."""


class Topology(base.Model):
    """An object that lists labels of nodes, from coarse to fine: a Topology of Kueue, or of KAI."""

    api_version: Annotated[
        pydantic.StrictStr,
        pydantic.Field(max_length=253, pattern="^(kueue.x-k8s.io|kai.scheduler)/v[0-9][a-z0-9]*$"),
    ]
    """Group and version in which it is read, such as kueue.x-k8s.io/v1beta1."""
    name: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=253)]
    """Its name."""


class HyperNodes(base.Model):
    """All HyperNodes of Volcano."""

    api_version: Annotated[
        pydantic.StrictStr,
        pydantic.Field(max_length=253, pattern="^topology.volcano.sh/v[0-9][a-z0-9]*$"),
    ]
    """Group and version in which they are read, such as topology.volcano.sh/v1alpha1."""


class Vertex(base.Model):
    """A node of the graph."""

    name: _Vertex
    """Its name; of a machine that of the Kubernetes node."""
    kind: VertexKind = VertexKind.NODE
    """node: a machine. switch: of the network. nvl: an NVLink switch, or the whole of a rack of them. nic and
    gpu: parts of a machine, whose cables are those of it."""
    node: _Vertex | None = None
    """The machine that a nic or a gpu is in."""


class Link(base.Model):
    """A cable, or several in parallel."""

    between: Annotated[tuple[_Vertex, ...], pydantic.Field(min_length=2, max_length=2)]
    """Names of its two ends."""
    bandwidth: Bandwidth | None = None
    """Of each cable, one way."""
    count: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=1024)] = 1
    """How many cables."""
    latency: Annotated[pydantic.StrictStr, pydantic.Field(max_length=20, pattern=_LATENCY)] | None = None
    """One way, such as 600ns or 2us."""
    healthy: base.Flag = True
    """False: it is dead, and counts as not there."""


class Explicit(base.Model):
    """A graph that somebody writes down."""

    nodes: Annotated[tuple[Vertex, ...], base.list_map(8192, least=1), base.unique("name")]
    """Machines, switches, and what is in machines."""
    links: Annotated[tuple[Link, ...], pydantic.Field(max_length=16384)] = pydantic.Field(
        default_factory=tuple
    )
    """Cables."""


class Source(base.Model):
    """One place where something is told of the interconnect; exactly one field beside the name."""

    name: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=63, pattern=_NAME)]
    """Its name, for people."""
    node_labels: NodeLabels | None = None
    """Labels of the nodes."""
    config_map: ConfigMapKey | None = None
    """A file in a ConfigMap."""
    topology: Topology | None = None
    """A Topology of Kueue or KAI, and the labels of the nodes that it names."""
    hyper_nodes: HyperNodes | None = None
    """HyperNodes of Volcano."""
    explicit: Explicit | None = None
    """Nodes and links, written down here."""


class LevelRate(base.Model):
    """What leads out of the domains of a level, where no source tells."""

    name: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=317)]
    """Name of the level, as in the status."""
    bandwidth: Bandwidth
    """Of each of its domains to the one around it, one way, all cables together."""


class Spec(base.Model):
    """Where it is told which nodes are near each other."""

    sources: Annotated[tuple[Source, ...], base.list_map(16, least=1), base.unique("name")]
    """What is read. Of one level what cables say counts first, then what an earlier source says; later ones
    fill in what it leaves open."""
    levels: Annotated[tuple[LevelRate, ...], base.list_map(16), base.unique("name")] = pydantic.Field(
        default_factory=tuple
    )
    """Bandwidth of levels, where no source tells it."""
    node_bandwidth: Bandwidth | None = None
    """What each node sends into its innermost domain, one way, all cables together, where no source tells."""
    span_roots: base.Flag = True
    """Whether a gang that asks for no level may lie in several domains of the outermost one, between which
    nothing is known to lead. False: every gang of several pods needs one of them."""


class LevelStatus(base.Model):
    """One level."""

    name: Annotated[pydantic.StrictStr, pydantic.Field(max_length=317)]
    """Its name."""
    domains: base.Count
    """How many domains it has."""
    nodes: base.Count
    """How many nodes are in one of them."""


class Oddity(base.Model):
    """Something that is not as it might be, and why."""

    name: base.Text
    """A node, a switch or a place in a source."""
    reason: base.Message
    """Why."""


class Status(base.Model):
    """What became of it. Written by lstqueue alone."""

    observed_generation: base.Count | None = None
    """The generation of the spec that this status speaks of."""
    nodes: base.Count = 0
    """Nodes of the cluster."""
    summary: base.Text = ""
    """How many domains of each level, outermost first."""
    levels: Annotated[tuple[LevelStatus, ...], base.list_map(MOST_LEVELS)] = ()
    """Levels, outermost first."""
    left_out: Annotated[tuple[Oddity, ...], pydantic.Field(max_length=MOST_TOLD)] = ()
    """What is in no domain, or not in the one it might be in: the first of them."""
    left_out_count: base.Count = 0
    """How many there are."""
    merged: Annotated[tuple[Oddity, ...], pydantic.Field(max_length=MOST_TOLD)] = ()
    """What became one domain although a source shows a difference, or several: the first of them."""
    merged_count: base.Count = 0
    """How many there are."""
    conditions: Conditions = ()
    """Accepted: its spec counts. Ready: domains are known. SourcesRead: all its sources could be read. Stale:
    what one that cannot be read said before still counts."""


def parse(obj: object) -> Spec:
    """Read the spec of a raw Interconnect.

    Raises:
        InvalidSpecError: with every problem by field.
    """
    return reading.read(Spec, obj, part="spec", rules=interconnect_rules.RULES)
