"""Who and what is on which node: gangs that are admitted, claim, or have pods there, and what pods take.

Indexes of the cache, kept pod by pod, so that a change of a node costs what is on it. Never calls the API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger
from lstqueue.operator import nodes as node_views
from lstqueue.topology import model as topology


class Occupancy:
    """Nodes by name, and what is on them.

    `on_places` is called when a node comes, goes or has other labels: where nodes are may be another then.
    `near` has by node the nodes of its innermost domain, where that is known, and `down` those not ready.
    """

    def __init__(self) -> None:
        self.on_places: Callable[[], None] = _nobody
        self.nodes: dict[str, node_views.NodeView] = {}
        self._gangs: dict[str, Counter[str]] = {}
        self._admitted: dict[str, set[str]] = {}
        self._left: dict[str, set[str]] = {}
        self._claims: dict[str, frozenset[str]] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._engine_nodes: dict[str, topology.Node] = {}
        self._foreign: dict[str, dict[str, views.PodView]] = {}
        self.near: Mapping[str, tuple[str, ...]] = {}
        self.down: dict[str, node_views.NodeView] = {}
        self._suspects: frozenset[str] = frozenset()

    def suspect(self, nodes: frozenset[str]) -> None:
        """Take in in whose domains nodes failed together."""
        for name in self._suspects ^ nodes:
            self._engine_nodes.pop(name, None)
        self._suspects = nodes

    @property
    def suspects(self) -> int:
        """How many nodes are suspects."""
        return len(self._suspects)

    def claim(self, uid: str, claim: model.Claim | None) -> None:
        """Take in what a gang claims, None for nothing."""
        if claim is None:
            self._claims.pop(uid, None)
        else:
            self._claims[uid] = frozenset(node for group in claim.groups for node, _ in group.nodes)

    def claimants(self, nodes: Iterable[str]) -> list[str]:
        """Return the gangs that claim room on any of these nodes."""
        wanted = frozenset(nodes)
        return sorted(uid for uid, claimed in self._claims.items() if claimed & wanted)

    def apply(self, event: str, raw: Mapping[str, Any]) -> bool:
        """Take in a node; return whether that changed anything that matters, as heartbeats do not."""
        name = raw["metadata"]["name"]
        known = self.nodes.get(name)
        if known is not None and (event == "DELETED" or (raw["metadata"].get("uid") or "") != known.uid):
            # It may be there again under its name before anybody looks.
            self._left.setdefault(name, set()).update(self._admitted.get(name, ()))
        if event == "DELETED":
            self.nodes.pop(name, None)
            self.down.pop(name, None)
            self.on_places()
        else:
            seen = node_views.read(raw)
            if known == seen:
                return False
            self.nodes[name] = seen
            self.down.pop(name, None)
            if not seen.ready:
                self.down[name] = seen
            if known is None or known.labels != seen.labels:
                self.on_places()
        self._engine_nodes.pop(name, None)
        return True

    def place(self, uid: str, before: ledger.Admission | None, after: ledger.Admission | None) -> None:
        """Keep who is admitted where; of an admission of which one rank moved, what it left stays left."""
        if before == after:
            return
        same = before is not None and after is not None and before.at == after.at
        stays = frozenset(after.nodes) if same and after is not None else frozenset()
        for node in before.nodes if before is not None else ():
            self._admitted[node].discard(uid)
            if not self._admitted[node]:
                del self._admitted[node]
            if node in self._left and node not in stays:
                self._left[node].discard(uid)
                if not self._left[node]:
                    del self._left[node]
        for node in after.nodes if after is not None else ():
            self._admitted.setdefault(node, set()).add(uid)

    def count(self, pod: views.PodView, sign: int) -> None:
        """Count a pod where it is bound, or on its way to, until it has ended; -1 takes it back."""
        if pod.gone:
            return
        place = pod.node or pod.aim
        if pod.job and place:
            gangs = self._gangs.setdefault(place, Counter())
            gangs[pod.job] += sign
            if not gangs[pod.job]:
                del gangs[pod.job]
            if not gangs:
                del self._gangs[place]
        if pod.node:
            used = self._used.setdefault(pod.node, {})
            for name, amount in pod.requests:
                used[name] = used.get(name, 0) + sign * amount
            if not any(used.values()):
                # Names of nodes that came and went would add up.
                del self._used[pod.node]
            self._engine_nodes.pop(pod.node, None)
        if pod.node and not pod.job:
            self._count_foreign(pod, sign)

    def _count_foreign(self, pod: views.PodView, sign: int) -> None:
        there = self._foreign.setdefault(pod.node, {})
        if sign > 0:
            there[pod.uid] = pod
        else:
            there.pop(pod.uid, None)
        if not there:
            del self._foreign[pod.node]

    def foreign(self) -> Mapping[str, Sequence[model.Foreign]]:
        """Return the pods that are not ours by node; a node's are put together when they are asked for."""
        return _Foreign(self._foreign)

    def admitted(self, node: str) -> set[str]:
        """Return the UIDs of the DeadlineJobs that are admitted on a node."""
        return self._admitted.get(node, set())

    def left(self, uid: str, node: str) -> bool:
        """Whether a node went since a gang was admitted there: one of its name is another machine."""
        return uid in self._left.get(node, ())

    def present(self, node: str) -> set[str]:
        """Return the UIDs of those that have pods there that have not ended, or pods on their way there."""
        return set(self._gangs.get(node, ()))

    def engine_nodes(self) -> Iterator[topology.Node]:
        """Yield the nodes with what is used on them; only those that changed are built anew."""
        for name in self.nodes:
            node = self.engine_node(name)
            if node is not None:
                yield node

    def engine_node(self, name: str) -> topology.Node | None:
        """Return a node with what is used on it, None for one that is not there."""
        node, view = self._engine_nodes.get(name), self.nodes.get(name)
        if node is None and view is not None:
            node = self._engine_nodes[name] = view.engine_node(
                self._used.get(name, {}), suspect=name in self._suspects
            )
        return node


def taken(pod: views.PodView | None) -> tuple[str, topology.Resources]:
    """Return where a pod takes what; a pod that takes nothing is as good as none."""
    return (pod.node, pod.requests) if pod is not None and pod.node and not pod.gone else ("", ())


def _nobody() -> None:
    """Nobody wants to know."""


class _Foreign(Mapping[str, Sequence[model.Foreign]]):
    """A view of what is there when it is looked at: nobody looks at more than a few nodes."""

    def __init__(self, known: Mapping[str, Mapping[str, views.PodView]]) -> None:
        self._known = known

    def __getitem__(self, node: str) -> Sequence[model.Foreign]:
        return [model.Foreign(pod.namespace, pod.name, pod.requests) for pod in self._known[node].values()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
