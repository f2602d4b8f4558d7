"""`FORMAT:PATH`: the file of an interconnect, read and contracted."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.evaluate import documents
from lstqueue.evaluate.traces import text
from lstqueue.topology import contract
from lstqueue.topology.domains import Domains
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import alibaba, explicit, ibnetdiscover, kueue, labels, slurm, volcano

LINES: Mapping[str, Callable[[Any], Found]] = {
    "alibaba": alibaba.read,
    "ibnetdiscover": ibnetdiscover.read,
    "slurm": slurm.read,
}
"""Formats of lines."""
OBJECTS: Mapping[str, Callable[[Sequence[object]], Found]] = {
    "explicit": explicit.read,
    "kueue": kueue.read,
    "volcano": volcano.read,
}
"""Formats of YAML or JSON objects, besides `labels`, which may be told the keys."""
LABELS = "labels"
FORMATS = tuple(sorted([*LINES, *OBJECTS, LABELS]))


class SourceError(ValueError):
    """A source that cannot be used; the message names it, the place in it and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source, as domains, and what its reader has to say of it."""

    name: str
    domains: Domains
    notes: tuple[str, ...]


def read(spec: str, keys: Sequence[str] = ()) -> Source:
    """Read `FORMAT:PATH`.

    Args:
        spec: The format and the file, which may be gzip.
        keys: Of `labels`, the labels that say where a node is, from coarse to fine.

    Raises:
        SourceError: There is no such format or file, or it says nothing usable.
    """
    form, colon, name = spec.partition(":")
    if not colon or not name or form not in FORMATS:
        raise SourceError(f"{spec!r} is no topology; write FORMAT:PATH with one of {', '.join(FORMATS)}")
    if keys and form != LABELS:
        raise SourceError(f"--key is for {LABELS}:PATH; leave it out")
    path = pathlib.Path(name)
    try:
        found = _found(form, path, keys)
        return Source(spec, contract.contract(found), found.notes)
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
        items = document.get("items") if isinstance(document, Mapping) else document
        found += items if isinstance(items, list) else [document]
    return [item for item in found if item is not None]
