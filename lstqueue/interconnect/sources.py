"""`FORMAT:PATH`: the files of an interconnect, read, joined and contracted."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.evaluate import documents
from lstqueue.evaluate.traces import text
from lstqueue.topology import contract, join
from lstqueue.topology.domains import Domains
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import (
    alibaba,
    explicit,
    ibnetdiscover,
    kueue,
    labels,
    netq,
    nvidia_smi,
    slurm,
    slurm_yaml,
    volcano,
)

LINES: Mapping[str, Callable[[Any], Found]] = {
    "alibaba": alibaba.read,
    "ibnetdiscover": ibnetdiscover.read,
    "nvidia-smi": nvidia_smi.read,
    "slurm": slurm.read,
}
"""Formats of lines."""
OBJECTS: Mapping[str, Callable[[Sequence[object]], Found]] = {
    "explicit": explicit.read,
    "kueue": kueue.read,
    "netq": netq.read,
    "slurm-yaml": slurm_yaml.read,
    "volcano": volcano.read,
}
"""Formats of YAML or JSON objects, besides `labels`, which may be told the keys."""
LABELS = "labels"
CLUSTERS = (LABELS, "kueue")
"""Formats that have the nodes of a cluster."""
FORMATS = tuple(sorted([*LINES, *OBJECTS, LABELS]))


class SourceError(ValueError):
    """A source that cannot be used; the message names it, the place in it and the remedy."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """What of a node, or of a domain, is free, of how much."""

    free: int
    whole: int


@dataclass(frozen=True, slots=True)
class Source:
    """A source, as domains, and what its reader has to say of it.

    `gpus` is by node, where a cluster was asked; `whole` is False where a source of it could not be read.
    """

    name: str
    domains: Domains
    notes: tuple[str, ...]
    gpus: Mapping[str, Gpus] | None = None
    whole: bool = True

    def within(self, start: int, end: int) -> Gpus | None:
        """What is free on a slice of the nodes; None where nobody knows."""
        if self.gpus is None:
            return None
        there = [self.gpus[name] for name in self.domains.nodes[start:end]]
        return Gpus(sum(one.free for one in there), sum(one.whole for one in there))


def read(*specs: str, keys: Sequence[str] = ()) -> Source:
    """Read `FORMAT:PATH`, or several of one interconnect, those that count first before the others.

    Where one has the nodes of a cluster, these are what there is, and the others are about them.

    Args:
        specs: The formats and files, which may be gzip.
        keys: Of `labels`, the labels that say where a node is, from coarse to fine.

    Raises:
        SourceError: There is no such format or file, or it says nothing usable.
    """
    if twice := [spec for spec in specs if specs.count(spec) > 1]:
        raise SourceError(f"{twice[0]} is given twice; give each once")
    parts, nodes = [], None
    for spec in specs:
        form, colon, name = spec.partition(":")
        if not colon or not name or form not in FORMATS:
            raise SourceError(f"{spec!r} is no topology; write FORMAT:PATH with one of {', '.join(FORMATS)}")
        found = _read(form, pathlib.Path(name), keys)
        parts.append(join.Part(spec, found))
        if form in CLUSTERS:
            nodes = list(dict.fromkeys([*(nodes or ()), *found.nodes]))
    if keys and not any(part.source.startswith(f"{LABELS}:") for part in parts):
        raise SourceError(f"--key is for {LABELS}:PATH; leave it out")
    found = join.join(parts, nodes)
    made = contract.contract(found)
    return Source(", ".join(specs), made, (*found.notes, *made.notes))


def _read(form: str, path: pathlib.Path, keys: Sequence[str]) -> Found:
    try:
        return _found(form, path, keys)
    except text.TraceError as error:
        raise SourceError(str(error)) from error
    except TopologyError as error:
        raise SourceError(f"{path}: {error}") from error


def _found(form: str, path: pathlib.Path, keys: Sequence[str]) -> Found:
    if form in LINES:
        return LINES[form](text.lines(path))
    objects = _objects(path)
    if form != LABELS:
        return OBJECTS[form](objects)
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise SourceError(f"--key {twice[0]} is given twice; give each once, from coarse to fine")
    return labels.read(objects, kueue.named([key for key in keys if key != labels.HOSTNAME]))


def _objects(path: pathlib.Path) -> list[object]:
    """The objects of a file: its documents, and of lists what is in them."""
    found: list[object] = []
    for document in documents.read_all(path):
        if document is None:  # what is behind a last ---
            continue
        items = document.get("items") if isinstance(document, Mapping) else document
        found += items if isinstance(items, list) else [document]
    return found
