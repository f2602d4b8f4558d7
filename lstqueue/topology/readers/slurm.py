"""Slurm's `topology.conf`: switches that hold nodes or switches (tree), or blocks of nodes (block).

`LinkSpeed` means nothing to Slurm either, and is not read. Several topmost switches are legal: no job of
Slurm's spans them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lstqueue.topology import fabric
from lstqueue.topology.found import Found, TopologyError
from lstqueue.topology.readers import blocks, hostlist, tree

_WORD = re.compile(r'([A-Za-z]+)\s*=\s*("[^"]*"|\S*)')
_NAMES = {"switchname": "SwitchName", "blockname": "BlockName"}
_KEYS = {"switchname", "blockname", "nodes", "switches", "linkspeed", "blocksizes"}


def read(lines: Iterable[str]) -> Found:
    """Read the lines of a file.

    Raises:
        TopologyError: A line is none of such a file's, or switches lie in themselves, or there is nothing.
    """
    made = tree.Tree("switch")
    sizes = ""
    for where, line in _logical(lines):
        words = _words(where, line)
        key = next((key for key in _NAMES if key in words), "")
        sizes = words.get("blocksizes", sizes)
        if not key:
            if "blocksizes" not in words:
                raise TopologyError(
                    where, "has neither SwitchName nor BlockName; write one, or remove the line"
                )
            continue
        name = words[key]
        if not name:
            raise TopologyError(where, f"has a {_NAMES[key]} without anything; write a name")
        made.what = _NAMES[key].removesuffix("Name").lower() if not made.wheres else made.what
        if made.what not in key:
            first = next(iter(made.wheres.values()))
            raise TopologyError(where, f"has a {_NAMES[key]}, and {first} a {made.what}; a file has one kind")
        if not made.add(name, where):
            continue
        nodes, children = (_expand(where, words.get(key, "")) for key in ("nodes", "switches"))
        made.fill(name, nodes, children, where)
    if not made.wheres:
        raise TopologyError("", "has no SwitchName and no BlockName; give a topology.conf of tree or block")
    if made.what != "block":
        return tree.found(made, fabric.level_name)
    planned = blocks.sizes(sizes, "BlockSizes")
    return blocks.above(tree.found(made, lambda _: blocks.LEVEL), list(made.wheres), planned)


def _logical(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Lines without comments, those joined that end in a backslash, with where they begin."""
    held: list[str] = []
    first = 0
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        first = first if held else number
        held.append(text.removesuffix("\\"))
        if not text.endswith("\\"):
            whole, held = " ".join(held).strip(), []
            if whole:
                yield f"line {first}", whole
    if held and (whole := " ".join(held).strip()):
        yield f"line {first}", whole


def _words(where: str, line: str) -> dict[str, str]:
    found: dict[str, str] = {}
    end = 0
    for match in _WORD.finditer(line):
        key = match[1].lower()
        if line[end : match.start()].strip() or key not in _KEYS:
            break
        if _WORD.match(match[2]):  # blanks may stand behind an equals sign, so the next word was taken
            raise TopologyError(
                where, f"has a {match[1]} without anything; write it, or leave {match[1]} out"
            )
        found[key] = match[2].strip('"')
        end = match.end()
    if line[end:].strip():
        said = ascii(line[end:].strip()[:40])
        raise TopologyError(where, f"{said} is nothing that topology.conf has; mend or remove it")
    if "switchname" in found and "blockname" in found:
        raise TopologyError(where, "has SwitchName and BlockName; write one")
    return found


def _expand(where: str, text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except ValueError as error:
        raise TopologyError(where, str(error)) from error
