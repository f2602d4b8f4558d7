"""What the API server's bytes mean: refusals as errors, watch streams as lines, names as parts of a path.

Pure functions, so that every odd answer can be tested without a server. Nothing here does I/O or knows the
client library. Whatever cannot be read becomes `UnavailableError` with status 0: after a write such an answer
says as little as none at all.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from typing import Any
from urllib import parse

import orjson

from lstqueue.kube import port

LINE_LIMIT = 64 * 2**20
"""Bytes after which a watch line is taken for garbage; etcd's own limit keeps objects under a few MiB."""

_QUOTED = 300
"""Characters of an answer that is no Status which an error repeats."""

_CLASSES: dict[int, type[port.ApiError]] = {
    400: port.InvalidError,
    401: port.UnavailableError,  # a token being rotated, most likely: nothing was judged
    403: port.ForbiddenError,
    404: port.NotFoundError,
    408: port.UnavailableError,
    409: port.ConflictError,
    410: port.GoneError,
    413: port.InvalidError,  # the object is too large, and stays so
    422: port.InvalidError,
    429: port.UnavailableError,
}
_GONE_REASONS = ("Expired", "Gone")


def refusal(status: int, phrase: str, headers: Mapping[str, str], body: bytes) -> port.ApiError:
    """Return the error for an answer that is not a success.

    Args:
        status: the HTTP code.
        phrase: the reason phrase, for servers (proxies) that send no Status.
        headers: of the answer; Retry-After counts when it is in seconds.
        body: a Status object, or whatever a proxy says.
    """
    try:
        answer = decode(body)
    except port.UnavailableError:
        text = body[: 4 * _QUOTED].decode("utf-8", "replace").strip()[:_QUOTED]
        answer = {"message": text}
    if answer.get("kind", "Status") != "Status":
        answer = {}
    return _error(status, answer, phrase=phrase, retry_after=_seconds(headers.get("Retry-After")))


def _error(
    status: int, answer: port.Object, *, phrase: str = "", retry_after: float | None = None
) -> port.ApiError:
    reason = str(answer.get("reason") or phrase or "Unknown")
    details = answer.get("details")
    if retry_after is None and isinstance(details, dict):
        retry_after = _seconds(details.get("retryAfterSeconds"))
    fallback = port.UnavailableError if status >= 500 else port.ApiError
    return _CLASSES.get(status, fallback)(
        status, reason, str(answer.get("message") or "no message"), retry_after=retry_after
    )


def _seconds(value: object) -> float | None:
    # An HTTP date is legal too, but only proxies send it, and comparing it needs their clock: ignored.
    with contextlib.suppress(TypeError, ValueError):
        seconds = float(value)  # type: ignore[arg-type]
        if 0 < seconds < float("inf"):
            return seconds
    return None


def decode(body: bytes) -> port.Object:
    """Return the JSON object in an answer.

    Raises:
        UnavailableError: it is not JSON, or not an object.
    """
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise unreadable(f"not JSON ({error})", body) from error
    if not isinstance(answer, dict):
        raise unreadable("JSON, but no object", body)
    return answer


def unreadable(what: str, body: bytes) -> port.UnavailableError:
    """Return the error for an answer that makes no sense, quoting its beginning."""
    beginning = body[:80].decode("utf-8", "replace")
    return port.UnavailableError(0, "Unreadable", f"the answer is {what}; it begins {beginning!r}")


def page(resource: port.Resource, body: bytes) -> port.Page:
    """Return one page of a LIST; its items get the kind and version that the server leaves out.

    Raises:
        UnavailableError: the answer is no list.
    """
    with _no_collection():
        answer = decode(body)
    metadata = answer.get("metadata")
    items = answer.get("items") or []
    if not isinstance(metadata, dict) or not isinstance(items, list) or not metadata.get("resourceVersion"):
        raise unreadable("no list with a resourceVersion", body)
    api_version = resource.api_version
    for item in items:
        item["kind"] = resource.kind
        item["apiVersion"] = api_version
    return port.Page(items, metadata["resourceVersion"], metadata.get("continue") or "")


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Hold off garbage collection while a page is decoded.

    A page is tens of thousands of fresh dicts and lists, none of them garbage: looking for some in between
    takes three times as long as the decoding itself, all of it in one turn of the loop.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def event(line: bytes) -> port.WatchEvent:
    """Return the watch event in a line.

    Raises:
        ApiError: the line is an ERROR event: the class for the code in its Status.
        UnavailableError: it is not an event.
    """
    answer = decode(line)
    what = answer.get("type")
    body = answer.get("object")
    if what == "ERROR" and isinstance(body, dict):
        gone = body.get("reason") in _GONE_REASONS
        code = body.get("code")
        raise _error(code if isinstance(code, int) and code > 0 else 410 if gone else 500, body)
    if not isinstance(what, str) or not isinstance(body, dict):
        raise unreadable("no watch event", line)
    return port.WatchEvent(what, body)


class Lines:
    """Cuts a stream into lines whatever the sizes of its chunks, in linear time.

    A line may be far longer than a chunk: pods with large environments or annotations are.
    """

    def __init__(self, *, limit: int = LINE_LIMIT) -> None:
        self._pieces: list[bytes] = []
        self._length = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their ends; blank ones are left out.

        Raises:
            UnavailableError: a line has grown beyond the limit.
        """
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._pieces, complete[0]])
            self._pieces.clear()
            self._length = 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
            if self._length > self._limit:
                raise unreadable(f"a line of more than {self._limit} bytes", self._pieces[0])
        return [line for line in complete if line and not line.isspace()]

    def end(self) -> None:
        """Note that the stream has ended.

        Raises:
            UnavailableError: it ended inside a line.
        """
        if self._length:
            raise port.UnavailableError(0, "ConnectionFailed", "the stream was cut inside a line")


def collection_path(resource: port.Resource, namespace: str | None) -> str:
    """Return the URL path of a collection, in one namespace or in all.

    Raises:
        InvalidError: the namespace cannot be part of a path.
    """
    if namespace is not None:
        _check_segment(resource, "namespace", namespace)
    return resource.path(_quoted(namespace))


def object_path(resource: port.Resource, namespace: str | None, name: str, subresource: str = "") -> str:
    """Return the URL path of one object.

    Raises:
        InvalidError: name or namespace is missing or cannot be part of a path. Without this check an empty
            name would address the whole collection, with DELETE too.
    """
    _check_segment(resource, "name", name)
    require_namespace(resource, namespace)
    return resource.path(_quoted(namespace), _quoted(name), subresource)


def require_namespace(resource: port.Resource, namespace: str | None) -> None:
    """Check that a namespaced object has a namespace that can be part of a path.

    Raises:
        InvalidError: it has not.
    """
    if resource.namespaced or namespace is not None:
        _check_segment(resource, "namespace", namespace or "")


def _check_segment(resource: port.Resource, field: str, value: str) -> None:
    if not value or value in (".", "..") or any(char in "/%" or not char.isprintable() for char in value):
        raise port.InvalidError(
            400,
            "BadRequest",
            f"metadata.{field} of a {resource.kind} must be a name without '/' or '%', not {value!r}",
        )


def _quoted(segment: str | None) -> str | None:
    return None if segment is None else parse.quote(segment, safe="")
