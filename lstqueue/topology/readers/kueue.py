"""A `Topology` of Kueue (or KAI, of the same shape) with the nodes that its labels are on."""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.topology.found import MOST_LEVELS, Found, TopologyError
from lstqueue.topology.readers import fields, labels
from lstqueue.topology.readers.presets import Key


def read(objects: Sequence[object]) -> Found:
    """Read the one Topology among the objects, and the nodes.

    Raises:
        TopologyError: There is no Topology or several, one without levels, or no node.
    """
    topologies = fields.kinds(objects, "Topology")
    if len(topologies) != 1:
        raise TopologyError(
            "", f"has {len(topologies)} objects of kind Topology; keep one, and add the nodes"
        )
    spec = fields.mapping(topologies[0].get("spec"), "spec")
    levels = fields.sequence(spec.get("levels"), "spec.levels")
    if not 1 <= len(levels) <= MOST_LEVELS:
        raise TopologyError("spec.levels", f"has {len(levels)}; write 1 to {MOST_LEVELS}, outermost first")
    keys = []
    for index, level in enumerate(levels):
        where = f"spec.levels[{index}]"
        keys.append(fields.name(fields.mapping(level, where).get("nodeLabel"), f"{where}.nodeLabel"))
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise TopologyError("spec.levels", f"has the label {twice} twice; name each once")
    return labels.columns(labels.nodes(objects), named([key for key in keys if key != labels.HOSTNAME]))


def named(keys: Sequence[str]) -> list[Key]:
    """Call a level by what is behind the `/` of its label, or by all of it where two would be alike."""
    short = [key.rpartition("/")[2] for key in keys]
    return [(key, name if short.count(name) == 1 else key) for key, name in zip(keys, short, strict=True)]
