"""Faults on demand: what an API server, or the way to it, may do to a client.

Faults are rules on requests: which calls, how often, and what happens (a delay, a refusal, an answer that
gets lost after the write took effect), and commands on open watches. They apply to the HTTP server and to
the in-process client alike. Delays are in loop time. Without rules a request costs one look at an empty list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lstqueue.embedded import failures, pages, store, watches
from lstqueue.kube import port

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request as a rule sees it: an RBAC verb and its object."""

    verb: str
    resource: port.Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


When = Callable[[Call], bool]


def any_call(_call: Call) -> bool:
    """Every request."""
    return True


def writes(call: Call) -> bool:
    """Every request that writes."""
    return call.verb in WRITE_VERBS


def calls(
    *, verb: str = "", resource: port.Resource | None = None, name: str = "", subresource: str | None = None
) -> When:
    """Requests that agree with everything given."""

    def match(call: Call) -> bool:
        return (
            verb in ("", call.verb)
            and resource in (None, call.resource)
            and name in ("", call.name)
            and subresource in (None, call.subresource)
        )

    return match


@dataclass(slots=True)
class _Rule:
    when: When
    left: int | None
    delay_s: float = 0.0
    error: port.ApiError | None = None
    lose: bool = False


class Faults:
    """The faults of one server.

    Args:
        source: its store, for compaction.
        lists: its unfinished lists.
        open_watches: its watches.
    """

    def __init__(self, source: store.Store, lists: pages.Pages, open_watches: watches.Watches) -> None:
        self._store = source
        self._lists = lists
        self._watches = open_watches
        self._rules: list[_Rule] = []

    def delay(self, seconds: float, *, when: When = any_call, times: int | None = None) -> None:
        """Let requests wait before they are looked at."""
        self._rules.append(_Rule(when, times, delay_s=seconds))

    def fail(
        self,
        status: int,
        reason: str,
        *,
        message: str = "injected fault",
        retry_after: float | None = None,
        when: When = any_call,
        times: int | None = 1,
    ) -> None:
        """Refuse requests, which then have no effect."""
        error = failures.refusal(status, reason, message, retry_after=retry_after)
        self._rules.append(_Rule(when, times, error=error))

    def throttle(self, *, retry_after: float = 1.0, when: When = any_call, times: int | None = 1) -> None:
        """Answer 429 with Retry-After (seconds)."""
        self.fail(
            429,
            "TooManyRequests",
            message="too many requests, please try again later",
            retry_after=retry_after,
            when=when,
            times=times,
        )

    def conflict(self, *, when: When = writes, times: int | None = 1) -> None:
        """Answer writes with 409, as if somebody else had written first."""
        self.fail(409, "Conflict", message="the object has been modified", when=when, times=times)

    def lose_response(self, *, when: When = writes, times: int | None = 1) -> None:
        """Carry out a request, then close the connection instead of answering."""
        self._rules.append(_Rule(when, times, lose=True))

    def refuse_watches(self, resource: port.Resource | None = None, *, times: int | None = 1) -> None:
        """Answer watch requests with 410 as an HTTP status."""
        when = calls(verb="watch", resource=resource)
        message = "The resourceVersion for the provided watch is too old."
        self.fail(410, "Expired", message=message, when=when, times=times)

    def expire_watches(self, resource: port.Resource | None = None) -> int:
        """End open watches with 410 in the stream; returns how many."""
        return self._watches.expire(resource)

    def cut_watches(self, resource: port.Resource | None = None) -> int:
        """Close the connections of open watches in mid-stream; returns how many."""
        return self._watches.cut(resource)

    def compact(self) -> None:
        """Forget the past: older watches and continue tokens get 410 from now on."""
        self._store.compact()
        self._lists.forget()

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    async def meet(self, call: Call) -> bool:
        """Apply the rules to a request; returns whether its answer is to be lost.

        Raises:
            port.ApiError: the request is refused.
        """
        if not self._rules:
            return False
        lose = False
        for rule in [rule for rule in self._rules if rule.when(call)]:
            if rule.left is not None:
                if rule.left == 0:  # another request used it up while this one was delayed
                    continue
                rule.left -= 1
                if rule.left == 0:
                    self._rules.remove(rule)
            if rule.delay_s:
                await asyncio.sleep(rule.delay_s)
            if rule.error is not None:
                raise rule.error
            lose = lose or rule.lose
        return lose
