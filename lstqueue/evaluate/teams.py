"""Several queues in a replay: who has how many GPUs, what they lend each other, and who works where.

A file in YAML (or JSON):

    cohort: ml              # they lend each other what they do not use; absent: they do not
    queues:
      - name: red
        gpus: 64            # its nominal quota
        borrowingLimit: 16  # absent: whatever others lend
        users: [ada, bob]
      - name: blue          # without users: all others, by a hash of their names if there are several such
        gpus: 64
        windows:            # as in a GPUQueue
          - {name: day, schedule: "0 8 * * 1-5", zone: Europe/Berlin, duration: 12h, keepFree: 40%}

The policy sets all else of a queue, for all of them alike.
"""

from __future__ import annotations

import collections
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import errors, gpuqueue, intervals, reading
from lstqueue.engine import model
from lstqueue.evaluate import documents, workload
from lstqueue.evaluate.traces import cells

_FIELDS = frozenset({"name", "gpus", "borrowingLimit", "users", "windows"})
MOST = 1 << 30
"""GPUs of a queue."""
_OF_WINDOW = frozenset({"name", "schedule", "zone", "duration", "keepFree"})


class TeamsError(ValueError):
    """A file of queues that cannot be used; the message names it, the queue and the remedy."""


@dataclass(frozen=True, slots=True)
class Team:
    """One queue; of `limit` None is no limit, and `users` empty means those of no other queue."""

    name: str
    gpus: int
    limit: int | None = None
    users: tuple[str, ...] = ()
    windows: tuple[gpuqueue.Window, ...] = ()


@dataclass(frozen=True, slots=True)
class Teams:
    """All queues of a replay; `cohort` is empty where they lend each other nothing."""

    teams: tuple[Team, ...]
    cohort: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of all queues, in their order."""
        return tuple([team.name for team in self.teams])

    def standing(self, like: model.Queue) -> Standing:
        """The queues as the engine sees them, in all else like the one of the policy, of one pool."""
        found: list[model.Queue] = []
        for age, team in enumerate(self.teams):
            limits = () if team.limit is None or not self.cohort else ((workload.GPU, team.limit),)
            own = replace(like.pools[0], nominal=((workload.GPU, team.gpus),), limits=limits)
            found.append(replace(like, name=team.name, pools=(own,), cohort=self.cohort, created=age))
        return Standing(self, tuple(found))

    def of(self, work: workload.Work) -> str:
        """The queue of a job, by its user; where the trace knows none, by the job itself.

        Raises:
            TeamsError: Every queue says whose it is, and none is this user's.
        """
        user = work.user or work.key
        for team in self.teams:
            if work.user in team.users:
                return team.name
        rest = [team.name for team in self.teams if not team.users]
        if not rest:
            raise TeamsError(
                f"--queues: user {user!r} is in no queue; add that name, or leave `users` of one queue out"
            )
        return rest[zlib.crc32(user.encode()) % len(rest)]


class Standing:
    """The queues of a replay as the engine is given them; the same ones until a window comes into sight."""

    def __init__(self, several: Teams, queues: tuple[model.Queue, ...]) -> None:
        self._windows = [team.windows for team in several.teams]
        self._queues = list(queues)
        self._seen: list[intervals.Intervals] = [() for _ in queues]

    def as_of(self, now: int) -> tuple[model.Queue, ...]:
        """Return them at `now` (ms since the epoch)."""
        for index, said in enumerate(self._windows):
            found = intervals.as_of(said, now)
            if found is not self._seen[index]:
                self._seen[index] = found
                ahead = tuple(model.Window(*one) for one in found)
                self._queues[index] = replace(self._queues[index], windows=ahead)
        return tuple(self._queues)


def read(path: pathlib.Path) -> Teams:
    """Read a file of queues.

    Raises:
        TeamsError: It cannot be understood.
        TraceError: It cannot be read.
    """
    told = documents.read(path)
    rows = told.get("queues") if isinstance(told, Mapping) else None
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise TeamsError(f"{path}: queues is missing; list at least one queue with its name and gpus")
    _known(str(path), told, frozenset({"cohort", "queues"}))
    cohort = _named(f"{path}: cohort", told["cohort"], ", or leave it out") if "cohort" in told else ""
    teams = tuple(_team(path, number, row) for number, row in enumerate(rows))
    if len({team.name for team in teams}) < len(teams):
        raise TeamsError(f"{path}: two queues have the same name; give each its own")
    if not cohort and (limited := [team.name for team in teams if team.limit is not None]):
        raise TeamsError(
            f"{path}: queue {limited[0]!r} has a borrowingLimit and there is no cohort to borrow from; name "
            "a cohort, or leave the limit out"
        )
    counts = collections.Counter(user for team in teams for user in team.users)
    if twice := [user for user, count in counts.items() if count > 1]:
        raise TeamsError(f"{path}: user {twice[0]!r} is listed twice; leave that name in one queue")
    return Teams(teams, cohort)


def _known(where: str, row: Mapping[Any, Any], known: frozenset[str]) -> None:
    """Refuse a key that means nothing, by its name."""
    if strange := [key for key in row if key not in known]:
        raise TeamsError(
            f"{where}: {documents.shown(strange[0])} means nothing; known are {', '.join(sorted(known))}"
        )


def _team(path: pathlib.Path, number: int, row: Any) -> Team:
    where = f"{path}: queues[{number}]"
    if not isinstance(row, Mapping):
        raise TeamsError(f"{where}: give name, gpus, and if need be borrowingLimit and users")
    _known(where, row, _FIELDS)
    name, gpus, limit, users = row.get("name"), row.get("gpus"), row.get("borrowingLimit"), row.get("users")
    name = _named(f"{where}.name", name, "")
    gpus = _counted(f"{where}.gpus", gpus, "")
    limit = None if limit is None else _counted(f"{where}.borrowingLimit", limit, ", or leave it out")
    if users is not None and (not isinstance(users, list) or not all(isinstance(one, str) for one in users)):
        raise TeamsError(f"{where}.users is {documents.shown(users)}; list names, or leave it out")
    return Team(name, gpus, limit, tuple(users or ()), _windows(where, row.get("windows")))


def _named(where: str, value: Any, more: str) -> str:
    """A name, as it is written."""
    try:
        if not isinstance(value, str):
            raise cells.CellError(f"is {documents.shown(value)}; write a name in quotes")
        return documents.name(value)
    except cells.CellError as error:
        raise TeamsError(f"{where} {error}{more}") from error


def _counted(where: str, value: Any, more: str) -> int:
    """A number of GPUs."""
    try:
        if isinstance(value, str):
            raise cells.CellError(f"is {documents.shown(value)}; write a whole number without quotes")
        return documents.whole(value, MOST)
    except cells.CellError as error:
        raise TeamsError(f"{where} {error}{more}") from error


def _windows(where: str, rows: Any) -> tuple[gpuqueue.Window, ...]:
    """The windows of a queue, by the rules of a GPUQueue."""
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise TeamsError(
            f"{where}.windows is {documents.shown(rows)}; list windows as in a GPUQueue, or leave it out"
        )
    found: list[gpuqueue.Window] = []
    for number, row in enumerate(rows):
        part = f"{where}.windows[{number}]"
        if isinstance(row, Mapping):
            _known(part, row, _OF_WINDOW)
        try:
            found.append(reading.read(gpuqueue.Window, {part: row}, part=part))
        except errors.InvalidSpecError as error:
            raise TeamsError(str(error)) from error
    return tuple(found)
