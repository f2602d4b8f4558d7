"""The bytes of lists and watch streams, joined from objects that are encoded already."""

from __future__ import annotations

import orjson

from lstqueue.embedded import failures, pages, watches
from lstqueue.kube import port


def encode_list(resource: port.Resource, listing: pages.Listing) -> bytes:
    """The bytes of a LIST, from the encoded rows."""
    head = {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": pages.list_meta(listing),
    }
    rows = b",".join([row.json() for row in listing.rows])
    return orjson.dumps(head)[:-1] + b',"items":[' + rows + b"]}"


def encode_change(change: watches.Change) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"' + change[0].encode() + b'","object":' + change[1].json() + b"}\n"


def encode_error(error: port.ApiError) -> bytes:
    """The line that ends a watch stream with an error."""
    return orjson.dumps({"type": "ERROR", "object": failures.as_status(error)}) + b"\n"
