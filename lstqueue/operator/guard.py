"""The one place where an error of ours about ONE object is survived instead of ending the operator.

Every other error ends the process, which starts again from what the API shows. But an object that cannot be
dealt with would be there again, and end the next one too: nobody's job would start until somebody found it.
So what is done or written for a single object is tried here; the error is logged with its traceback and
counted, and the object is left out or held back. Errors of the API are not meant: those have their own
handling. Nor is a fence, which forbids all writing and has to end the process.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from lstqueue.kube import port

Object = Mapping[str, Any]

CODE = "Unreadable"
"""Why a DeadlineJob waits that could not be dealt with."""

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class DefectError(port.ApiError):
    """An error of ours in the middle of a write: what came of that is as unknown as without an answer."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, "Defect", problem)


class Guard:
    """`counts` says by kind how often an object could not be dealt with."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def attempt(self, kind: str, name: str, do: Callable[[], None]) -> str:
        """Do something for one object; return what went wrong in words, "" for nothing."""
        try:
            do()
        except Exception as error:  # any error: see the module's docstring
            return self._note(kind, name, error)
        return ""

    async def calls(self, kind: str, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Return what calls for one object do.

        Raises:
            ApiError: as they do.
            FencedError: as they do.
            DefectError: instead of any other error.
        """
        try:
            return await make()
        except (port.ApiError, port.FencedError):
            raise
        except Exception as error:  # any error: see the module's docstring
            raise DefectError(self._note(kind, name, error)) from error

    def _note(self, kind: str, name: str, error: Exception) -> str:
        self.counts[kind] += 1
        _LOG.exception("%s %s cannot be dealt with, and is left aside", kind, name)
        return f"{type(error).__name__}: {error}"[:200]


def words(problem: str) -> str:
    """Say to its user that a DeadlineJob could not be dealt with, and what to do."""
    return f"lstqueue cannot make sense of it ({problem}); put right what was edited by hand, or make it anew"


def named(raw: Object) -> str:
    """Return namespace/name of an object, as far as it has them."""
    meta = raw.get("metadata") or {}
    return "/".join(str(meta[key]) for key in ("namespace", "name") if meta.get(key)) or str(meta.get("uid"))


class Guarded(Protocol):
    """Whoever has a guard."""

    guard: Guard


def one(kind: str) -> Callable[[Callable[[Any, str, Object], None]], Callable[[Any, str, Object], None]]:
    """Decorate a method that takes in one object, (event, raw), of something `Guarded`."""

    def wrap(apply: Callable[[Any, str, Object], None]) -> Callable[[Any, str, Object], None]:
        @functools.wraps(apply)
        def guarded(self: Guarded, event: str, raw: Object) -> None:
            self.guard.attempt(kind, named(raw), functools.partial(apply, self, event, raw))

        return guarded

    return wrap
