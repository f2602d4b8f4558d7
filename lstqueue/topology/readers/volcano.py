"""`HyperNode` objects of Volcano: trees of nodes, each at the tier that it says.

Members are named exactly, or nodes are picked by a pattern or by labels, for which the source needs the
nodes. Which patterns are taken is for `patterns` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, TopologyError, known
from lstqueue.topology.readers import fields, labels, patterns, tree

_MOST_TRIED = 20_000_000
"""Patterns times names."""
_MOST_TIER = 1 << 20


def read(objects: Sequence[object]) -> Found:
    """Read all HyperNodes among the objects, and the nodes if there are any.

    Raises:
        TopologyError: There is none, one cannot be read, or they lie in themselves.
    """
    hypernodes = fields.kinds(objects, "HyperNode")
    if not hypernodes:
        raise TopologyError(
            "", "has no HyperNode; give what `kubectl get hypernodes -o json` (or yaml) prints"
        )
    listed = any(isinstance(item, Mapping) and item.get("kind") == "Node" for item in objects)
    nodes = labels.nodes(objects) if listed else None
    _bound(hypernodes, nodes)
    made = tree.Tree("HyperNode")
    named = [item.get("metadata") for item in hypernodes]
    names = [str(its.get("name")) for its in named if isinstance(its, Mapping)]
    tiers: dict[str, int] = {}
    titles: dict[int, str] = {}
    for index, item in enumerate(hypernodes):
        metadata = fields.mapping(item.get("metadata"), f"items[{index}].metadata")
        name = fields.name(metadata.get("name"), f"items[{index}].metadata.name")
        if not made.add(name, f"HyperNode {name}"):
            continue
        spec = fields.mapping(item.get("spec"), f"HyperNode {name}: spec")
        tiers[name] = _tier(spec.get("tier"), name)
        if title := known(spec.get("tierName")):
            titles.setdefault(tiers[name], title)
        _members(made, name, spec, names=names, nodes=nodes)
    _check_tiers(made, tiers)
    found = tree.found(made, lambda tier: titles.get(tier, f"tier-{tier}"), heights=tiers)
    if nodes is None:
        return replace(found, left_out=(*found.left_out, *fields.strange(objects)))
    outside = sorted(nodes.nodes.keys() - set(found.nodes))
    lacking = [LeftOut(node, "is in no HyperNode; add it to one") for node in outside]
    left_out = (*found.left_out, *nodes.left_out, *lacking)
    return Found((*found.nodes, *outside), said=found.said, left_out=left_out)


def _tier(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_TIER:
        raise TopologyError(
            f"HyperNode {name}: spec.tier",
            f"is {fields.shown(value)}; write a whole number of 0 to {_MOST_TIER:,}",
        )
    return value


def _bound(hypernodes: Sequence[Mapping[str, object]], nodes: labels.Labelled | None) -> None:
    """Refuse so many patterns over so many names that trying each takes long."""
    picking = 0
    for item in hypernodes:
        spec = item.get("spec")
        members = spec.get("members") if isinstance(spec, Mapping) else None
        for member in members if isinstance(members, list) else ():
            selector = member.get("selector") if isinstance(member, Mapping) else None
            picking += isinstance(selector, Mapping) and "exactMatch" not in selector
    if picking * (len(hypernodes) + len(nodes.nodes if nodes else ())) > _MOST_TRIED:
        raise TopologyError("", f"has {picking:,} patterns for its names, too many; use exactMatch")


def _members(
    made: tree.Tree,
    name: str,
    spec: Mapping[str, object],
    *,
    names: Sequence[str],
    nodes: labels.Labelled | None,
) -> None:
    for index, item in enumerate(fields.sequence(spec.get("members"), f"HyperNode {name}: spec.members")):
        where = f"HyperNode {name}: spec.members[{index}]"
        member = fields.mapping(item, where)
        kind = member.get("type")
        if kind not in ("Node", "HyperNode"):
            raise TopologyError(f"{where}.type", f"is {fields.shown(kind)}; write Node or HyperNode")
        selector = fields.mapping(member.get("selector"), f"{where}.selector")
        among = names if kind == "HyperNode" else nodes.nodes if nodes else None
        for picked in _picked(selector, f"{where}.selector", among=among, nodes=nodes):
            if kind == "Node":
                made.put(picked, name)
            elif picked != name or "exactMatch" in selector:
                made.nest(picked, name)


def _picked(
    selector: Mapping[str, object], where: str, *, among: Iterable[str] | None, nodes: labels.Labelled | None
) -> list[str]:
    if "exactMatch" in selector:
        exact = fields.mapping(selector["exactMatch"], f"{where}.exactMatch")
        return [fields.name(exact.get("name"), f"{where}.exactMatch.name")]
    if among is None:
        raise TopologyError(where, "picks nodes by a pattern or labels; add the nodes to the file")
    if "regexMatch" in selector:
        given = fields.mapping(selector["regexMatch"], f"{where}.regexMatch").get("pattern")
        pattern = patterns.read(given, f"{where}.regexMatch.pattern")
        return [name for name in among if pattern.search(name)]
    if "labelMatch" in selector and nodes is not None:
        wanted = fields.mapping(selector["labelMatch"], f"{where}.labelMatch")
        fields.only(wanted, ("matchLabels",), f"{where}.labelMatch")
        pairs = fields.mapping(wanted.get("matchLabels"), f"{where}.labelMatch.matchLabels").items()
        return [
            name for name, its in nodes.nodes.items() if all(its.get(key) == value for key, value in pairs)
        ]
    raise TopologyError(where, "picks nothing; write exactMatch, regexMatch or labelMatch")


def _check_tiers(made: tree.Tree, tiers: Mapping[str, int]) -> None:
    for child, parent in list(made.parents.items()):
        if child in tiers and tiers[child] >= tiers[parent]:
            if child == parent:
                raise TopologyError(f"HyperNode {child}", "lies in itself; break the circle")
            del made.parents[child]
            why = f"is of tier {tiers[child]} and {parent} above it of {tiers[parent]}; raise that"
            made.left_out.append(LeftOut(f"HyperNode {child}", why))
