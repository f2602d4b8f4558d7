"""Slurm's `topology.yaml`: several topologies, of which one counts; its tree or its blocks are read.

That is the first with `cluster_default`, or the first of all. A ring or a torus of Slurm's is not read, nor
is `flat`, which says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.topology import fabric
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import blocks, fields, hostlist, tree

_KINDS = ("tree", "block")


def read(objects: Sequence[object]) -> Found:
    """Read the topologies of a file.

    Raises:
        TopologyError: There is none, it is neither tree nor block, or a field is wrong.
    """
    if not objects:
        raise TopologyError("", "has no topology; give a topology.yaml of Slurm")
    topologies = [fields.mapping(item, f"[{index}]") for index, item in enumerate(objects)]
    names = [fields.name(item.get("topology"), f"[{at}].topology") for at, item in enumerate(topologies)]
    at = next((at for at, item in enumerate(topologies) if item.get("cluster_default") is True), 0)
    where, chosen = f"[{at}]", topologies[at]
    kinds = [kind for kind in _KINDS if kind in chosen]
    if len(kinds) != 1:
        others = sorted(str(key) for key in chosen.keys() - {"topology", "cluster_default"})
        has = ", ".join(others)[:60] or "nothing"
        raise TopologyError(where, f"topology {names[at]} has {has}; only tree and block are read")
    kind = kinds[0]
    body = fields.mapping(chosen[kind], f"{where}.{kind}")
    others = [name for index, name in enumerate(names) if index != at]
    notes = (f"of its topologies {names[at]} counts, and not {', '.join(others)[:200]}",) if others else ()
    if kind == "tree":
        made = _read(body, f"{where}.tree", "switches", "switch")
        return tree.found(made, fabric.level_name, notes=notes)
    made = _read(body, f"{where}.block", "blocks", "block")
    planned = fields.sequence(body.get("block_sizes"), f"{where}.block.block_sizes")
    sizes = blocks.sizes(",".join(map(fields.shown, planned)), f"{where}.block.block_sizes")
    return blocks.above(tree.found(made, lambda _: blocks.LEVEL, notes=notes), list(made.wheres), sizes)


def _read(body: Mapping[str, object], where: str, many: str, one: str) -> tree.Tree:
    """Read the switches, or the blocks, of a topology."""
    made = tree.Tree(one)
    for index, item in enumerate(fields.sequence(body.get(many), f"{where}.{many}")):
        place = f"{where}.{many}[{index}]"
        entry = fields.mapping(item, place)
        name = fields.name(entry.get(one), f"{place}.{one}")
        if not made.add(name, place):
            continue
        nodes, children = (_names(entry.get(key), f"{place}.{key}") for key in ("nodes", "children"))
        made.fill(name, nodes, children, place)
    if not made.wheres:
        raise TopologyError(f"{where}.{many}", "lists none; list them")
    return made


def _names(value: object, where: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        raise TopologyError(where, f"is {fields.shown(value)}; write names such as n[01-18]")
    try:
        return hostlist.expand(value)
    except ValueError as error:
        raise TopologyError(where, str(error)) from error
