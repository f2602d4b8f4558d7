"""Domains from the labels of nodes: those of a provider or an agent, or keys of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lstqueue.topology import found as finds
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, Said, TopologyError
from lstqueue.topology.readers import fields, presets
from lstqueue.topology.readers.presets import Key

HOSTNAME = "kubernetes.io/hostname"
_LONGEST = 253
"""Characters of a node's name, as Kubernetes has it."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Nodes by name with their labels, and those objects that are none."""

    nodes: Mapping[str, Mapping[str, str]]
    left_out: tuple[LeftOut, ...]


def read(objects: Sequence[object], keys: Sequence[Key] = (), origin: str = "") -> Found:
    """Read nodes as the API has them.

    Args:
        objects: Nodes, and others that do not count.
        keys: Labels from coarse to fine instead of what providers write.
        origin: Whose presets count; everybody's without.

    Raises:
        TopologyError: There is no node, or none has a label that says where it is.
    """
    labelled = nodes(objects)
    if keys:
        found = columns(labelled, keys)
        if not any(said.domain for said in found.said):
            wanted = ", ".join(key for key, _ in keys)
            raise TopologyError("metadata.labels", f"no node has a known value of {wanted}; mend the keys")
        return found
    networks, accelerators = (
        [preset for preset in family if origin in ("", preset.origin)]
        for family in (presets.NETWORKS, presets.ACCELERATORS)
    )
    accelerator = _commonest(labelled, accelerators)
    network = _commonest(labelled, networks)
    chosen = [preset for preset in (network, accelerator) if preset]
    places = [key for key in presets.PLACES if len(set(_values(labelled, key[0]).values())) > 1]
    if not chosen and not places:
        known = ", ".join(dict.fromkeys(preset.origin for preset in (*networks, *accelerators)))
        raise TopologyError(
            "metadata.labels", f"no node has labels of {known}; name keys of your own, from coarse to fine"
        )
    used = [key for preset in chosen for key in preset.keys if _values(labelled, key[0])]
    notes = [f"labels of {preset.name}" for preset in chosen]
    for family in (networks, accelerators):
        others = [preset.name for preset in family if preset not in chosen and _share(labelled, preset)]
        if others:
            notes.append(f"labels of {', '.join(others)} are not used, as fewer nodes have them")
    return columns(labelled, [*places, *used], notes=tuple(notes))


def nodes(objects: Sequence[object]) -> Labelled:
    """Pick the nodes out of objects of any kind.

    Raises:
        TopologyError: There is none, or too many.
    """
    found: dict[str, Mapping[str, str]] = {}
    left_out = fields.strange(objects)
    for index, item in enumerate(objects):
        if not isinstance(item, Mapping) or (item.get("kind") or "Node") != "Node":
            continue
        metadata = item.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
        if not isinstance(name, str) or not name or len(name) > _LONGEST:
            left_out.append(LeftOut(f"items[{index}]", "has no usable metadata.name; give the node its name"))
        elif name in found:
            left_out.append(LeftOut(name, "is there twice, and the first counts; remove one"))
        else:
            found[name] = _strings(labels, name, left_out)
    finds.within(found)
    if not found:
        raise TopologyError("", "has no Node; give what `kubectl get nodes -o json` (or yaml) prints")
    return Labelled(found, tuple(left_out))


def _strings(labels: object, name: str, left_out: list[LeftOut]) -> Mapping[str, str]:
    """The labels of a node; those that are none are told."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        left_out.append(LeftOut(name, f"has {fields.shown(labels)} for labels; write an object"))
        return {}
    found = {}
    for key, value in labels.items():
        if isinstance(key, str) and isinstance(value, str):
            found[key] = value
        else:
            why = f"has a label {fields.shown(key)} that is {fields.shown(value)}; write it in quotes"
            left_out.append(LeftOut(name, why))
    return found


def columns(labelled: Labelled, keys: Sequence[Key], notes: tuple[str, ...] = ()) -> Found:
    """Make a level of each label, told from coarse to fine, and name the nodes that lack one."""
    said = []
    missing: dict[str, list[str]] = {}
    for label, level in keys:
        values = _values(labelled, label)
        nvlink = any((label, level) in preset.keys for preset in presets.ACCELERATORS)
        said.append(Said(level, values, accelerator=nvlink))
        # Without an NVLink domain is what most machines are; without a block among blocks is a fault.
        for node in () if nvlink else labelled.nodes.keys() - values.keys():
            missing.setdefault(node, []).append(_lack(labelled.nodes[node], label, level))
    lacking = [LeftOut(node, "; ".join(why)) for node, why in sorted(missing.items())]
    return Found(
        tuple(labelled.nodes), said=tuple(said), left_out=(*labelled.left_out, *lacking), notes=notes
    )


def _values(labelled: Labelled, label: str) -> dict[str, str]:
    """By node, the value of a label, where it is known."""
    found = {}
    for node, labels in labelled.nodes.items():
        value = finds.known(labels.get(label))
        if value is not None and not value.startswith(presets.NO_CLIQUE):
            found[node] = value
    return found


def _lack(labels: Mapping[str, str], label: str, level: str) -> str:
    if label not in labels:
        return f"is in no {level}, as it has no label {label}"
    return f"is in no {level}, as its label {label} is {ascii(labels[label])[:60]}, which is unknown"


def _share(labelled: Labelled, preset: presets.Preset) -> int:
    """How many nodes have a known label of a preset."""
    return len({node for key, _ in preset.keys for node in _values(labelled, key)})


def _commonest(labelled: Labelled, family: Sequence[presets.Preset]) -> presets.Preset | None:
    shares = Counter({preset.name: _share(labelled, preset) for preset in family})
    best = max(family, key=lambda preset: shares[preset.name], default=None)
    return best if best is not None and shares[best.name] else None
