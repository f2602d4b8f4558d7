"""Where a gang would go on an interconnect read from a file, for people and as JSON for scripts.

Resources other than GPUs, taints and labels play no part: every node has the same number of GPUs.
"""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from lstqueue.interconnect.sources import Source, SourceError
from lstqueue.topology import bandwidth, described, domains, search, tree, wanted

_GANG = re.compile(r"([1-9][0-9]{0,6})x([0-9]{1,4})")
_DIGITS = 9
"""Of a number of GPUs; no node has as many."""
_SLICE = re.compile(r"([1-9][0-9]{0,6})(?::(.+))?")


@dataclass(frozen=True, slots=True)
class Asked:
    """The options: `gangs` are PODSxGPUS, the leader's first; `used` is a file of GPUs in use."""

    gangs: tuple[str, ...]
    gpus: int
    required: str | None = None
    preferred: str | None = None
    slice: str | None = None
    used: pathlib.Path | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Where the gang goes: (node, pods) pairs of each group in rank order, None when it fits nowhere.

    `words` say how good that is. `ever` is whether it fits where nothing is in use.
    """

    levels: tuple[str, ...]
    groups: tuple[tuple[tuple[str, int], ...], ...] | None
    domain: str | None = None
    quality: bandwidth.Quality | None = None
    preferred: bool | None = None
    words: str = ""
    ever: bool = True


def find(source: Source, asked: Asked) -> Answer:
    """Place a gang.

    Raises:
        SourceError: An option or the file of what is in use cannot be used.
    """
    try:
        fabric = tree.Tree(source.domains)
        wants = _wanted(fabric, asked)
        preferred = None if asked.preferred is None else fabric.level(asked.preferred) - 1
        free = _room(asked, source)
        place = search.find(fabric, free, wants)
    except SourceError:
        raise
    except ValueError as error:
        raise SourceError(str(error)) from error
    levels = tuple(level.name for level in source.domains.levels)
    if place is None:
        empty = wanted.Free(free.whole, free.whole)
        return Answer(levels, None, ever=search.find(fabric, empty, wants) is not None)
    quality = bandwidth.judge(fabric, free, wants, [(part.nodes, part.pods) for part in place.parts])
    names = source.domains.nodes
    pairs = [zip(part.nodes.tolist(), part.pods.tolist(), strict=True) for part in place.parts]
    nodes = np.concatenate([part.nodes for part in place.parts])
    return Answer(
        levels=levels,
        words=described.place(fabric, quality, nodes),
        groups=tuple(tuple((names[node], pods) for node, pods in part) for part in pairs),
        domain=described.domain(fabric, quality, nodes),
        quality=quality,
        preferred=None if preferred is None else quality.level is not None and quality.level >= preferred,
    )


def document(answer: Answer) -> dict[str, Any]:
    """Return all there is, for JSON. Rates are MB/s one way, null where unknown."""
    found = answer.quality
    if answer.groups is None or found is None:
        return {"fits": False, "fits_when_empty": answer.ever}
    counts = zip(answer.levels, found.used, found.fewest, strict=True)
    return {
        "fits": True,
        "level": None if found.level is None else answer.levels[found.level],
        "domain": answer.domain,
        "preferred": answer.preferred,
        "hops": found.hops,
        "ring": found.ring or None,
        "ring_best": found.best or None,
        "all_to_all": found.all_to_all or None,
        "domains": {level: {"used": used, "fewest": fewest} for level, used, fewest in counts},
        "groups": [[{"node": node, "pods": pods} for node, pods in group] for group in answer.groups],
    }


def words(answer: Answer, asked: Asked) -> list[str]:
    """Say it in lines."""
    found = answer.quality
    if answer.groups is None or found is None:
        where = "" if asked.required is None else f" in one {asked.required}"
        when = (
            "now"
            if answer.ever
            else "even where nothing is in use; ask for fewer pods or GPUs, or a wider level"
        )
        return [f"{' + '.join(asked.gangs)}: does not fit{where} {when}"]
    lines = [f"{' + '.join(asked.gangs)}: {answer.words}"]
    if answer.preferred is False:
        lines.append(f"not in one {asked.preferred}, as was preferred")
    rank = 0
    for group in answer.groups:
        for node, pods in group:
            ranks = str(rank) if pods == 1 else f"{rank}-{rank + pods - 1}"
            lines.append(f"  {node}: rank {ranks}" if pods == 1 else f"  {node}: ranks {ranks}")
            rank += pods
    return lines


def _wanted(fabric: tree.Tree, asked: Asked) -> wanted.Wanted:
    unit, tier = 1, None
    if asked.slice is not None:
        matched = _SLICE.fullmatch(asked.slice)
        if matched is None:
            raise SourceError(f"--slice {asked.slice}: give PODS or PODS:LEVEL, such as 4:leafgroup")
        unit = int(matched[1])
        tier = fabric.level(matched[2]) if matched[2] else fabric.depth or None
    groups = []
    for number, gang in enumerate(asked.gangs):
        found = _GANG.fullmatch(gang)
        if found is None:
            raise SourceError(f"--gang {gang}: give PODSxGPUS, such as 16x8")
        pods, gpus = int(found[1]), int(found[2])
        sliced = number == len(asked.gangs) - 1  # the workers; a leader before them is none
        groups.append(wanted.Group(pods, (gpus,), None, *((unit, tier) if sliced else (1, None))))
    return wanted.Wanted(
        groups=tuple(groups),
        required=None if asked.required is None else fabric.level(asked.required),
        balance=next(iter(fabric.accelerators), None),
    )


def _room(asked: Asked, source: Source) -> wanted.Free:
    """What nodes have and what of that is free: as a cluster says, or as asked."""
    made = source.domains
    if source.gpus is None:
        whole = np.full((1, len(made.nodes)), asked.gpus, dtype=np.int64)
        return wanted.Free(whole - _used(asked, made), whole)
    if asked.used is not None:
        raise SourceError("--used is for files; a cluster says itself what is in use")
    there = [source.gpus[name] for name in made.nodes]
    free = np.array([[one.free for one in there]], dtype=np.int64)
    return wanted.Free(free, np.array([[one.whole for one in there]], dtype=np.int64))


def _used(asked: Asked, made: domains.Domains) -> np.ndarray[Any, np.dtype[np.int64]]:
    """GPUs in use by node, of a file with a node and a number a line."""
    used = np.zeros(len(made.nodes), dtype=np.int64)
    if asked.used is None:
        return used
    index = {name: place for place, name in enumerate(made.nodes)}
    seen: set[str] = set()
    try:
        lines = asked.used.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"--used {asked.used}: {error}; give a file of lines NODE GPUS") from error
    for number, line in enumerate(lines, start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if not fields:
            continue
        if len(fields) != 2 or fields[0] not in index or not fields[1].isdecimal():
            raise SourceError(
                f"--used {asked.used}, line {number}: {line.strip()!r}; "
                "give a node of the topology and its GPUs in use"
            )
        where = f"--used {asked.used}, line {number}"
        if fields[0] in seen:
            raise SourceError(
                f"{where}: {fields[0]} is there twice; give a node once, with all that is in use"
            )
        if len(fields[1]) > _DIGITS or int(fields[1]) > asked.gpus:
            raise SourceError(
                f"{where}: {fields[0]} has {asked.gpus} GPUs; give as many or fewer, or set --gpus-per-node"
            )
        seen.add(fields[0])
        used[index[fields[0]]] = int(fields[1])
    return used
