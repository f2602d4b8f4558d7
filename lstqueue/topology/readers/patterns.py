"""Patterns of Go, matched by Python: which ones end soon on every name, and may be tried.

Go takes time in proportion to a name whatever the pattern is. Python goes back and tries another way, so that
a repeat inside a repeat takes for ever, and many in a row nearly so. How many ways there are is bounded here
from the text of a pattern, roughly and from above; one that could have too many is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from lstqueue.topology.found import TopologyError
from lstqueue.topology.readers import fields

LONGEST = 256
"""Characters of a pattern."""
MOST_WORK = 2_500_000
"""Steps that a name may take: 45 ms or less as measured. With a repeat without end in each of two places
it is over, unless `^` holds the pattern to where names begin."""
_EXACTLY = "name the members with exactMatch"
_OTHERWISE = f"begin it with ^, repeat or choose less, or {_EXACTLY}"
_TWICE = re.compile(r"[*+}]\s*[*+{]")
_BACK = re.compile(r"\\[1-9]|\(\?(?!:|P<)")
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?::|P<[^>]*>))?|[*+?]\??|\{(?=[\d,])\d*(?:,\d*)?\}\??|.",
    re.DOTALL,
)


@dataclass(slots=True)
class _Part:
    """What a part can cost: steps of one way, ways to match it, and how many repeats without end it has."""

    steps: int = 0
    ways: int = 1
    endless: int = 0

    @property
    def varies(self) -> bool:
        return self.ways > 1 or self.endless > 0


@dataclass(slots=True)
class _Group:
    """A group that is being read: its alternatives before this one, and the parts of this one."""

    before: list[_Part] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)

    def choose(self) -> None:
        """Begin another alternative."""
        parts, self.parts = self.parts, []
        steps, endless = sum(part.steps for part in parts), sum(part.endless for part in parts)
        self.before.append(_Part(steps + 1, math.prod(part.ways for part in parts), endless))

    def whole(self) -> _Part:
        """All of it as one part."""
        self.choose()
        among = self.before
        steps, ways = sum(part.steps for part in among), sum(part.ways for part in among)
        return _Part(steps + 1, ways, max(part.endless for part in among))


def read(value: object, where: str) -> re.Pattern[str]:
    """Return a pattern that ends soon on every name.

    Raises:
        TopologyError: It is none, or could take long.
    """
    text = value if isinstance(value, str) else ""
    if not text or len(text) > LONGEST:
        raise TopologyError(where, f"is {fields.shown(value)}; write one of up to {LONGEST} characters")
    if _TWICE.search(text) or _BACK.search(text):
        raise TopologyError(where, f"{text!a} repeats what repeats, or looks back; {_EXACTLY}")
    try:
        made = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise TopologyError(where, f"{text!a} is no pattern ({error}); mend it") from error
    if _work(text, where) > MOST_WORK:
        raise TopologyError(where, f"{text!a} could take long, since it repeats so much; {_OTHERWISE}")
    return made


def _work(text: str, where: str) -> int:
    """Steps that the longest name may take, at most."""
    groups, free = [_Group()], not text.startswith("^")
    for piece in _TOKEN.findall(text):
        now = groups[-1]
        if piece.startswith("("):
            groups.append(_Group())
        elif piece == ")":
            inner = groups.pop().whole()
            groups[-1].parts.append(inner)
        elif piece == "|":
            free = free or len(groups) == 1
            now.choose()
        elif piece[0] in "*+?" or (piece[0] == "{" and len(piece) > 1):
            _repeat(now.parts[-1], piece, text=text, where=where)
        else:
            now.parts.append(_Part(1))
    whole = groups[0].whole()
    # So many places can a name be cut at by the repeats, and by where it begins.
    cuts = whole.endless + free
    return math.comb(fields.LONGEST + cuts, cuts) * whole.ways * whole.steps


def _repeat(part: _Part, piece: str, *, text: str, where: str) -> None:
    """Reckon in that a part is repeated."""
    least, most = _bounds(piece.removesuffix("?") if len(piece) > 1 else piece)
    if part.varies and most != 1:
        raise TopologyError(where, f"{text!a} repeats what repeats or chooses; {_EXACTLY}")
    part.steps = part.steps * max(1, least if most is None else most) + 1
    if most is None:
        part.endless += 1
    else:
        part.ways = part.ways * min(most - least, fields.LONGEST) + 1 if most > least else part.ways


def _bounds(piece: str) -> tuple[int, int | None]:
    """How often, at least and at most; None for no end."""
    if piece[0] != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[piece]
    low, comma, high = piece[1:-1].partition(",")
    least = int(low or 0)
    return least, (int(high) if high else None) if comma else least
