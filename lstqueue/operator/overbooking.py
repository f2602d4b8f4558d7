"""Finds room that was given twice, before anything runs in it: who came later gives it back.

A decision is made on what this process knows, and every commit is conditional on its own DeadlineJob alone.
So an admission that a former leader sent, and that arrives late, can be valid although its room has gone to
another gang meanwhile. This is no second fit: what somebody else's pods take on the way is for the time to
start to judge, and a gang of which a pod was let go anywhere goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.topology import model as topology

Part = tuple[str, topology.Resources, int]
"""(node, requests of a pod, pods)."""


def crowded(cache: caches.Cache, record: caches.Record, job_of: Callable[[caches.Record], model.Job]) -> str:
    """Say in words which node another gang has, too, of those of an admission under which nothing runs yet.

    Older admissions go first, and so do what was let go already, and claims: somebody may have left for one.

    Returns:
        "" where there is room for it beside all of that and what is bound.
    """
    mine = record.ledger.status.admission
    if mine is None:
        return ""
    nodes = frozenset(mine.nodes)
    needs: dict[str, Counter[str]] = {name: Counter() for name in nodes}
    rivals: dict[str, str] = {}
    for other in cache.on_nodes(mine.nodes):
        for name, requests, count in _first(record, other, nodes, job_of):
            for key, amount in requests:
                needs[name][key] += count * amount
            if other is not record:
                rivals[name] = other.ledger.key
    for owner in cache.claimants(mine.nodes):
        for name, amounts in _claimed(cache, owner, nodes, job_of).items():
            needs[name] += amounts
            rivals[name] = owner.ledger.key
    for name in sorted(rivals):
        node = cache.engine_node(name)
        if node is not None and _exceeds(needs[name], node):
            return f"node {name} was given to {rivals[name]} as well"
    return ""


def takes(
    cache: caches.Cache,
    node: topology.Node,
    requests: topology.Resources,
    job_of: Callable[[caches.Record], model.Job],
) -> bool:
    """Whether a node has room for one more pod beside all that is bound, held and claimed there."""
    need = Counter(dict(requests))
    for record in cache.on_nodes([node.name]):
        job = job_of(record)
        for part in job.assigned:
            for key, amount in job.groups[part.group].shape.requests if part.node == node.name else ():
                need[key] += part.held * amount
    for owner in cache.claimants([node.name]):
        need += _claimed(cache, owner, (node.name,), job_of).get(node.name, Counter())
    return not _exceeds(need, node)


def _exceeds(need: Counter[str], node: topology.Node) -> bool:
    used, there = dict(node.used), dict(node.allocatable)
    return any(amount > there.get(key, 0) - used.get(key, 0) for key, amount in need.items())


def _first(
    record: caches.Record,
    other: caches.Record,
    nodes: Collection[str],
    job_of: Callable[[caches.Record], model.Job],
) -> Iterator[Part]:
    """Yield what `other` is to have on these nodes before `record` gets anything there.

    That is what it holds, or nothing where it was admitted later and has let no pod go; of one without an
    admission, its pods that are on their way. What is bound is not in it (such a part counts 0 pods): the
    node has that already. `other` may be `record` itself.
    """
    mine, held = record.ledger.status.admission, other.assumed or other.ledger.status.admission
    if mine is None or (held is None and not other.pods):
        return
    older = held is not None and (held.at, other.ledger.uid) <= (mine.at, record.ledger.uid)
    if older or (held is not None and other.ungated_at >= held.at):
        job = job_of(other)
        for part in job.assigned:
            if part.node in nodes:
                yield part.node, job.groups[part.group].shape.requests, part.held
        return
    for pod in other.pods.values():
        if not (pod.gated or pod.gone) and (place := pod.node or pod.aim) in nodes:
            yield place, pod.requests, int(not pod.node)


def _claimed(
    cache: caches.Cache,
    owner: caches.Record,
    nodes: Collection[str],
    job_of: Callable[[caches.Record], model.Job],
) -> Mapping[str, Counter[str]]:
    """Return what a claim takes of these nodes beyond what its own victims still have there.

    The same sum as the engine's, or what one pass admits the other would take back.
    """
    job = job_of(owner)
    if job.claim is None:
        return {}
    needs: dict[str, Counter[str]] = {}
    for group, place in zip(job.groups, job.claim.groups, strict=False):
        for name, count in place.nodes:
            if name in nodes:
                need = needs.setdefault(name, Counter())
                for key, amount in group.shape.requests:
                    need[key] += count * amount
    for victim in job.claim.victims:
        other = cache.records.get(victim.uid)
        there = job_of(other) if other is not None else None
        if there is None or there.attempt != victim.attempt:
            continue
        for part in there.assigned:
            if part.node in needs:
                for key, amount in there.groups[part.group].shape.requests:
                    needs[part.node][key] -= (part.bound + part.held) * amount
    return {name: +need for name, need in needs.items()}
