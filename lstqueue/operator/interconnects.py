"""Interconnects as the operator keeps them: which one counts, what its sources said last, and what they make.

One Interconnect counts, the oldest whose spec can be used; without any the labels of nodes that are known do,
where nodes have some. A source that cannot be read any more, or says nothing, counts as it last could: a file
that is being written anew must not tear domains apart. Contracting takes time, so it is done only when what
the sources say has changed, or which nodes there are. Never calls the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lstqueue.api import errors, interconnect
from lstqueue.operator import fabric_sources, lenient
from lstqueue.operator import nodes as node_views
from lstqueue.topology import contract, domains, join
from lstqueue.topology.domains import Domains
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import presets

Object = Mapping[str, Any]

LABELS = interconnect.Source(name="labels", node_labels=interconnect.NodeLabels())
"""What counts without an Interconnect."""


@dataclass(frozen=True, slots=True)
class View:
    """An Interconnect. `created` is ms since the epoch; without a spec `problem` says what is wrong."""

    uid: str
    name: str
    version: int
    generation: int
    created: int
    spec: interconnect.Spec | None
    problem: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)


def view(raw: Object) -> View:
    """Project an Interconnect; never raises for what a user wrote."""
    meta = raw["metadata"]
    made = View(
        uid=meta["uid"],
        name=meta["name"],
        version=int(meta["resourceVersion"]),
        generation=meta.get("generation", 0),
        created=lenient.moment(meta.get("creationTimestamp")) or 0,
        spec=None,
        status=raw.get("status") or {},
    )
    try:
        return replace(made, spec=interconnect.parse(raw))
    except errors.InvalidSpecError as error:
        return replace(made, problem=str(error))


def chosen(views: Iterable[View]) -> View | None:
    """Return the one that counts."""
    usable = [one for one in views if one.spec is not None]
    return min(usable, key=lambda one: (one.created, one.name), default=None)


@dataclass(frozen=True, slots=True)
class Heard:
    """What there is of the objects that a source is read from.

    `refusal` says why they cannot be read, `pending` why not yet.
    """

    objects: Sequence[Object] = ()
    refusal: str = ""
    pending: str = ""


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source: what it said when it last could be read, and what is wrong with it now.

    `reason` is Unreadable or Refused, or empty. `given` is what it was read from.
    """

    given: object = None
    found: Found | None = None
    reason: str = ""
    problem: str = ""

    @property
    def stale(self) -> bool:
        """Whether what counts of it is not what it says now."""
        return bool(self.problem) and self.found is not None


class Interconnect:
    """What the sources of the one that counts say, and the domains that they make."""

    def __init__(self) -> None:
        self.view: View | None = None
        self.states: dict[str, SourceState] = {}
        self.domains: Domains | None = None
        self.problem = ""
        self.contractions = 0
        self._last: object = None

    def look(
        self,
        view: View | None,
        heard: Mapping[fabric_sources.Watched, Heard],
        nodes: Mapping[str, node_views.NodeView],
    ) -> bool:
        """Read all sources; return whether the domains are others than before.

        Args:
            view: The Interconnect that counts.
            heard: What there is of the objects that its sources are read from.
            nodes: All nodes of the cluster; without any nothing is done.
        """
        self.view = view
        if not nodes:
            return False
        spec = view.spec if view is not None and view.spec is not None else None
        sources = spec.sources if spec is not None else (LABELS,)
        known, self.states = self.states, {}
        for source in sources:
            self.states[source.name] = _state(source, heard, nodes, known.get(source.name, SourceState()))
        parts = [
            join.Part(name, state.found) for name, state in self.states.items() if state.found is not None
        ]
        more = (spec.levels, spec.node_bandwidth, spec.span_roots) if spec else ()
        now = (_facts(parts), tuple(nodes), more)
        if now == self._last:
            return False
        self._last = now
        before = self.domains
        self.domains, self.problem = _contracted(parts, spec, nodes)
        self.contractions += 1
        return self.domains is not before


def _state(
    source: interconnect.Source,
    heard: Mapping[fabric_sources.Watched, Heard],
    nodes: Mapping[str, node_views.NodeView],
    before: SourceState,
) -> SourceState:
    """A source read anew, where what it is read from is not what it was."""
    place = fabric_sources.watched(source)
    there = heard.get(place, Heard()) if place is not None else Heard()
    labels = {name: node.labels for name, node in nodes.items()} if fabric_sources.by_labels(source) else {}
    given = (source, there, labels)
    if given == before.given:
        return before
    # What another source of the name once said is nothing that this one may count as.
    same = isinstance(before.given, tuple) and before.given[0] == source
    last = before.found if same else None
    if there.refusal:
        return SourceState(given, last, "Refused", there.refusal)
    if there.pending:
        return SourceState(given, last, "Unreadable", there.pending)
    try:
        told = fabric_sources.as_objects(nodes.values())
        return SourceState(given, fabric_sources.read(source, there.objects, told))
    except TopologyError as error:
        return SourceState(given, last, "Unreadable", str(error))


def _facts(parts: Sequence[join.Part]) -> object:
    """All that contraction looks at, as values that can be compared."""
    return tuple((part.source, part.found.facts()) for part in parts)


def _contracted(
    parts: Sequence[join.Part], spec: interconnect.Spec | None, nodes: Mapping[str, node_views.NodeView]
) -> tuple[Domains | None, str]:
    """The domains, and what is wrong with them; None without any."""
    if not parts:
        return None, "no source could be read"
    try:
        made = contract.contract(join.join(parts, nodes))
    except TopologyError as error:
        return None, str(error)
    if not made.levels:
        return None, "no source says which nodes are near each other"
    if spec is None:
        # Zones alone say little of a network, and nobody has asked for them.
        known = {level.name for level in made.levels} - {name for _, name in presets.PLACES}
        return (made, "") if known else (None, "")
    rates = {level.name: fabric_sources.rate(level.bandwidth) for level in spec.levels}
    strange = sorted(rates.keys() - {level.name for level in made.levels})
    problem = f"levels: {', '.join(strange)} is no level here; name one of status.levels" if strange else ""
    made = domains.rated(made, rates, fabric_sources.rate(spec.node_bandwidth))
    return replace(made, spans=spec.span_roots), problem
