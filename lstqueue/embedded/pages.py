"""LIST in pages: a first page pins what the rest will say, so that all pages are of one revision.

The pinned rows are references to objects that never change, so a pin costs a list of pointers. Pins are few
and the oldest goes first; its token then answers 410, as a token does whose revision was compacted.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass

from lstqueue.embedded import failures, store
from lstqueue.embedded.eventlog import Stored
from lstqueue.kube import port

_MATCHES = ("Exact", "NotOlderThan")


@dataclass(frozen=True, slots=True)
class Listing:
    """One page: its rows, the revision of the whole list, and how to go on.

    `remaining` is how many rows follow; None on the last page and, as in a real server, under a selector.
    """

    rows: list[Stored]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class _Pin:
    rows: list[Stored]
    revision: int
    counted: bool


@dataclass(frozen=True, slots=True)
class Query:
    """What a LIST asks for. A `limit` of 0 is none."""

    resource: port.Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""


class Pages:
    """Serves LISTs of one store.

    Args:
        source: the store.
        pins: how many unfinished lists are remembered.
    """

    def __init__(self, source: store.Store, *, pins: int = 64) -> None:
        self._store = source
        self._limit = pins
        self._pins: OrderedDict[str, _Pin] = OrderedDict()
        self._made = 0

    def page(self, query: Query) -> Listing:
        """Answer a LIST.

        Raises:
            port.ApiError: 400 or 422 for a malformed query, 410 for a token or an exact revision that is no
                longer known, 504 for a revision from the future.
        """
        if query.continue_token:
            return self._next(query)
        revision = self._store.revision
        self._check_version(query, revision)
        rows = self._store.list(
            query.resource, namespace=query.namespace, labels=query.labels, fields=query.fields
        )
        if not query.limit or len(rows) <= query.limit:
            return Listing(rows, str(revision))
        pin = _Pin(rows, revision, counted=not (query.labels or query.fields))
        self._made += 1
        name = str(self._made)
        self._pins[name] = pin
        if len(self._pins) > self._limit:
            self._pins.popitem(last=False)
        return _slice(pin, name, 0, query.limit)

    def forget(self) -> None:
        """Drop all unfinished lists; their tokens answer 410 from now on."""
        self._pins.clear()

    def _next(self, query: Query) -> Listing:
        if query.resource_version not in ("", "0"):
            raise failures.bad_request("specifying resource version is not allowed when using continue")
        name, offset = _decode(query.continue_token)
        pin = self._pins.get(name)
        if pin is None:
            raise failures.gone(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
        return _slice(pin, name, offset, query.limit)

    def _check_version(self, query: Query, revision: int) -> None:
        asked = revision_of(query.resource_version)
        if query.match and query.match not in _MATCHES:
            problem = failures.unsupported("resourceVersionMatch", query.match, _MATCHES)
            raise failures.bad_options("ListOptions", problem)
        if query.match and not query.resource_version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            problem = failures.forbidden_field("resourceVersionMatch", detail)
            raise failures.bad_options("ListOptions", problem)
        if asked > revision:
            message = f"Too large resource version: {asked}, current: {revision}"
            raise failures.refusal(504, "Timeout", message, retry_after=1)
        if query.match == "Exact" and asked != revision:
            raise failures.too_old(asked, revision)


def revision_of(text: str) -> int:
    """The number in a resourceVersion; 0 when there is none.

    Raises:
        port.InvalidError: 400 when it is no number.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise failures.bad_request(f'resourceVersion: Invalid value: "{text}": must be a number')
    return int(text)


def list_meta(listing: Listing) -> port.Object:
    """The metadata of the answer that carries a page."""
    meta: port.Object = {"resourceVersion": listing.resource_version}
    if listing.continue_token:
        meta["continue"] = listing.continue_token
    if listing.remaining is not None:
        meta["remainingItemCount"] = listing.remaining
    return meta


def _slice(pin: _Pin, name: str, offset: int, limit: int) -> Listing:
    end = offset + limit if limit else len(pin.rows)
    left = len(pin.rows) - end
    if left <= 0:
        return Listing(pin.rows[offset:], str(pin.revision))
    token = base64.urlsafe_b64encode(f"{name}/{end}".encode()).decode()
    return Listing(pin.rows[offset:end], str(pin.revision), token, left if pin.counted else None)


def _decode(token: str) -> tuple[str, int]:
    try:
        name, _, offset = base64.urlsafe_b64decode(token.encode()).decode().partition("/")
        return name, int(offset)
    except (binascii.Error, ValueError) as error:
        raise failures.bad_request(f"continue key is not valid: {error}") from error
