"""What an HTTP request asks for, checked: query parameters, bodies and media types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib import parse

import orjson

from lstqueue.embedded import failures, protobufs
from lstqueue.kube import port

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_APPLY_PATCH = "application/apply-patch"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
LARGEST_BODY = 3 * 2**20
"""Bytes; a real server's limit."""

_POLICIES = ("Foreground", "Background", "Orphan")
_TRUE = ("1", "t", "true")
_FALSE = ("", "0", "f", "false")


class Parameters:
    """The query of a request."""

    __slots__ = ("_values",)

    def __init__(self, query: str) -> None:
        self._values = dict(parse.parse_qsl(query, keep_blank_values=True)) if query else {}

    def text(self, name: str) -> str:
        """A parameter as text, empty when it is not there."""
        return self._values.get(name, "")

    def flag(self, name: str) -> bool:
        """A parameter as a boolean.

        Raises:
            port.InvalidError: 400.
        """
        value = self.text(name).lower()
        if value not in _TRUE and value not in _FALSE:
            raise failures.bad_request(f"query parameter {name}={value}: must be true or false")
        return value in _TRUE

    def number(self, name: str) -> int | None:
        """A parameter as a number, None when it is not there.

        Raises:
            port.InvalidError: 400.
        """
        value = self.text(name)
        if not value:
            return None
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise failures.bad_request(f"query parameter {name}={value}: must be a number")
        return int(value)

    def dry_run(self) -> bool:
        """Whether nothing is to be stored.

        Raises:
            port.InvalidError: 422 for a value other than All.
        """
        return _dry_run(self.text("dryRun"))


def _dry_run(value: str) -> bool:
    if value not in ("", "All"):
        raise failures.bad_options("Options", failures.unsupported("dryRun", value, ("All",)))
    return value == "All"


def decode(body: bytes) -> Any:
    """The JSON in a body.

    Raises:
        port.InvalidError: 400.
        port.ApiError: 413.
    """
    if len(body) > LARGEST_BODY:
        message = f"Request entity too large: limit is {LARGEST_BODY}"
        raise failures.refusal(413, "RequestEntityTooLarge", message)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise failures.bad_request(f"the body of the request is not JSON: {error}") from error


def check_json(content_type: str) -> None:
    """Refuse a body that says it is not JSON.

    Raises:
        port.ApiError: 415.
    """
    sent = media(content_type)
    if sent == _PROTOBUF:
        remedy = (
            "send JSON; with kubectl: `kubectl create ... --dry-run=client -o yaml | kubectl create -f -`"
        )
        raise failures.media_type(content_type, [JSON], remedy=remedy)
    if sent not in ("", JSON):
        raise failures.media_type(content_type, [JSON])


def media(content_type: str) -> str:
    """The media type of a Content-Type header, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def decode_patch(content_type: str, body: bytes, *, custom: bool = False) -> Any:
    """A merge patch or strategic merge patch (an object), or a JSON patch (a list).

    Args:
        content_type: says which.
        body: of the request.
        custom: whether it is for a kind without built-in schema, which takes no strategic merge patch.

    Raises:
        port.ApiError: 415 for a format that the kind does not take, and for server-side apply.
        port.InvalidError: 400 when the body is not what its media type says.
    """
    sent = media(content_type)
    if sent.startswith(_APPLY_PATCH):
        remedy = "the embedded API has no server-side apply; use `kubectl apply` without --server-side"
        raise failures.media_type(content_type, [JSON_PATCH, MERGE_PATCH], remedy=remedy)
    allowed = [JSON_PATCH, MERGE_PATCH] + ([] if custom else [STRATEGIC_PATCH])
    if sent not in allowed:
        raise failures.media_type(content_type, allowed)
    patch = decode(body)
    if sent != JSON_PATCH and not isinstance(patch, dict):
        raise failures.bad_request("a merge patch is a JSON object")
    if sent == JSON_PATCH and not isinstance(patch, list):
        raise failures.bad_request("a JSON patch is a list of operations")
    return patch


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: preconditions, grace in seconds (None: not stated), propagation (empty: not stated)."""

    uid: str
    resource_version: str
    grace_seconds: int | None
    propagation: str
    dry_run: bool


def delete_options(parameters: Parameters, body: bytes, *, content_type: str = "") -> DeleteOptions:
    """Read the options of a DELETE from its body, JSON or protobuf, or without one from its query.

    Raises:
        port.InvalidError: 400 or 422.
    """
    if body and media(content_type) == _PROTOBUF:
        return _delete_options(protobufs.delete_options(body), parameters)
    return _delete_options(decode(body) if body else {}, parameters)


@dataclass(frozen=True, slots=True)
class Eviction:
    """Which pod is to be evicted (empty: not stated), and how it is to be deleted."""

    name: str
    options: DeleteOptions


def eviction(parameters: Parameters, body: bytes, *, content_type: str = "") -> Eviction:
    """Read an Eviction, JSON or protobuf.

    Raises:
        port.InvalidError: 400 or 422.
    """
    sent: Any = protobufs.eviction(body) if media(content_type) == _PROTOBUF else decode(body)
    if not isinstance(sent, dict) or not isinstance(sent.get("metadata") or {}, dict):
        raise failures.bad_request("Eviction is a JSON object")
    name = (sent.get("metadata") or {}).get("name") or ""
    return Eviction(str(name), _delete_options(sent.get("deleteOptions") or {}, parameters))


def _delete_options(options: Any, parameters: Parameters) -> DeleteOptions:
    if not isinstance(options, dict):
        raise failures.bad_request("DeleteOptions is a JSON object")
    conditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", parameters.number("gracePeriodSeconds"))
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise failures.bad_request("gracePeriodSeconds must be a number")
    propagation = options.get("propagationPolicy") or parameters.text("propagationPolicy")
    if propagation and propagation not in _POLICIES:
        raise failures.bad_options(
            "DeleteOptions", failures.unsupported("propagationPolicy", propagation, _POLICIES)
        )
    dry_run = [_dry_run(value) for value in options.get("dryRun") or ()]
    return DeleteOptions(
        uid=conditions.get("uid") or "",
        resource_version=conditions.get("resourceVersion") or "",
        grace_seconds=grace,
        propagation=propagation,
        dry_run=any(dry_run) or parameters.dry_run(),
    )


def status_success(resource: port.Resource, name: str, uid: str) -> port.Object:
    """The Status that answers a DELETE after which nothing is left."""
    details = {"name": name, "kind": resource.plural, "uid": uid}
    if resource.group:
        details["group"] = resource.group
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
