"""Answers as Tables: what a server sends when a client would rather show objects than read them.

kubectl asks for them in its Accept header, for GET, LIST and WATCH. A row carries the object's metadata, the
whole object (`includeObject=Object`) or nothing; the columns of a watch come with its first event only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from lstqueue.embedded import ages, columns, failures, kinds, pages, requests, watches
from lstqueue.embedded.eventlog import Stored
from lstqueue.kube import port

_META = "meta.k8s.io"
_VERSION = "meta.k8s.io/v1"
_INCLUDES = ("Metadata", "Object", "None")
_JSON_RANGES = ("application/json", "application/*", "*/*")


def wanted(accept: str) -> bool:
    """Whether the first format of an Accept header that we can answer in is a Table."""
    for item in accept.split(","):
        media, *rest = (part.strip() for part in item.split(";"))
        if media.lower() not in _JSON_RANGES:
            continue
        given = dict(part.split("=", 1) for part in rest if "=" in part)
        if "as" not in given:
            return False
        if (given["as"], given.get("g"), given.get("v")) == ("Table", _META, "v1"):
            return True
    return False


class Tables:
    """Makes the Tables of one request.

    Args:
        kind: of the objects.
        parameters: of the request.
        now_ms: the time that ages are told at.

    Raises:
        port.InvalidError: 400 for an `includeObject` that does not exist.
    """

    def __init__(
        self, kind: kinds.Kind, parameters: requests.Parameters, *, now_ms: Callable[[], int]
    ) -> None:
        self._include = parameters.text("includeObject") or "Metadata"
        if self._include not in _INCLUDES:
            raise failures.bad_request(
                "Unable to convert to Table as requested: includeObject: "
                f'Invalid value: "{self._include}": must be one of {", ".join(_INCLUDES)}, or empty'
            )
        self._kind = kind
        self._view = columns.view(kind)
        self._now_ms = now_ms
        self._told = False

    def of_object(self, stored: Stored) -> bytes:
        """The Table that answers a GET."""
        meta = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        return orjson.dumps(self._table(meta, [stored], headed=True))

    def of_list(self, listing: pages.Listing) -> bytes:
        """The Table that answers a LIST."""
        return orjson.dumps(self._table(pages.list_meta(listing), listing.rows, headed=True))

    def of_change(self, change: watches.Change) -> bytes:
        """One line of a watch stream."""
        meta = {"resourceVersion": change[1]["metadata"].get("resourceVersion", "")}
        table = self._table(meta, [change[1]], headed=not self._told)
        self._told = True
        return orjson.dumps({"type": change[0], "object": table}) + b"\n"

    def _table(self, meta: port.Object, rows: list[Stored], *, headed: bool) -> port.Object:
        now = self._now_ms()
        return {
            "kind": "Table",
            "apiVersion": _VERSION,
            "metadata": meta,
            "columnDefinitions": [_definition(column) for column in self._view.columns] if headed else None,
            "rows": [{"cells": self._cells(row, now), "object": self._object(row)} for row in rows],
        }

    def _cells(self, row: Stored, now: int) -> list[Any]:
        if "name" not in row["metadata"]:
            # A bookmark is no object; it has a version and nothing to show.
            return [""] * len(self._view.columns)
        try:
            return self._view.cells(row, now)
        except (AttributeError, KeyError, TypeError, IndexError, ValueError):
            # Statuses of built-in kinds are stored as they come; one broken object must not hide the rest.
            return [row["metadata"]["name"], *[ages.INVALID] * (len(self._view.columns) - 1)]

    def _object(self, row: Stored) -> Any:
        if self._include == "None":
            return None
        if self._include == "Object":
            return orjson.Fragment(row.json())
        return {"kind": "PartialObjectMetadata", "apiVersion": _VERSION, "metadata": row["metadata"]}


def _definition(column: columns.Column) -> port.Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": "",
        "priority": int(column.wide),
    }
