"""The verbs: what each method on each kind of path does to the store, and which bytes answer it.

Answers are encoded objects as the store keeps them; the same bytes go to watchers. Nothing here touches
sockets: `server` reads requests and writes answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from lstqueue.embedded import (
    admission_own,
    backend,
    discovery,
    encoding,
    eviction,
    failures,
    faults,
    pages,
    patches,
    requests,
    reviews,
    tables,
    targets,
    watches,
)
from lstqueue.embedded.eventlog import Stored
from lstqueue.kube import port

_RETURNS_DELETED = frozenset({port.PODS, port.SERVICES})
_ACTIONS = ("binding", "eviction")
"""Subresources that are no part of the object: something to do, by POST alone."""
_HEALTH = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, body read."""

    method: str
    path: str
    parameters: requests.Parameters
    content_type: str
    body: bytes
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send back. `lost`: carry on as if it was sent, but close the connection instead.

    `retry_after` is in seconds.
    """

    status: int
    body: bytes
    content_type: str = requests.JSON
    lost: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """An open watch, and how each of its changes is encoded."""

    watch: watches.Watch
    encode: Callable[[watches.Change], bytes] = encoding.encode_change


def refuse(error: port.ApiError, resource: port.Resource | None = None, name: str = "") -> Answer:
    """The answer that carries a refusal."""
    body = orjson.dumps(failures.as_status(error, resource, name))
    return Answer(error.status, body, retry_after=error.retry_after)


async def handle(state: backend.Backend, request: Request) -> Answer | Stream:
    """Carry out a request; a watch is returned open."""
    document = discovery.answer(request.path) if request.method == "GET" else None
    if document is not None:
        return Answer(200, orjson.dumps(document))
    if request.path in _HEALTH:
        return Answer(200, b"ok", "text/plain")
    try:
        review = reviews.answer(
            request.method, request.path, content_type=request.content_type, body=request.body
        )
        if review is not None:
            return Answer(201, orjson.dumps(review))
        target = targets.parse_path(request.path)
    except port.ApiError as error:
        return refuse(error)
    try:
        return await _carry_out(state, request, target)
    except port.ApiError as error:
        return refuse(error, target.kind.resource, target.name or _name_in(request.body))


def _name_in(body: bytes) -> str:
    """The name in the body of a creation that was refused, as far as there is one."""
    try:
        name = orjson.loads(body)["metadata"]["name"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return ""
    return name if isinstance(name, str) else ""


async def _carry_out(state: backend.Backend, request: Request, target: targets.Target) -> Answer | Stream:
    verb = _verb(request, target)
    call = faults.Call(verb, target.kind.resource, target.namespace or None, target.name, target.subresource)
    lost = await state.faults.meet(call)
    answer = _VERBS[verb](state, request, target)
    if lost and isinstance(answer, Answer):
        return Answer(answer.status, answer.body, lost=True)
    return answer


def _verb(request: Request, target: targets.Target) -> str:
    name = bool(target.name)
    verb = {
        ("GET", True): "get",
        ("GET", False): "list",
        ("POST", False): "create",
        ("PUT", True): "update",
        ("PATCH", True): "patch",
        ("DELETE", True): "delete",
        ("DELETE", False): "deletecollection",
    }.get((request.method, name), "")
    if target.subresource in _ACTIONS:
        verb = "create" if request.method == "POST" else ""
    elif target.subresource and verb == "delete":
        verb = ""
    if not verb:
        raise failures.method(request.method)
    if target.kind.read_only and verb not in ("get", "list", "patch"):
        raise failures.built_in(target.kind.resource)
    return "watch" if verb == "list" and request.parameters.flag("watch") else verb


def _tables(state: backend.Backend, request: Request, target: targets.Target) -> tables.Tables | None:
    if not tables.wanted(request.accept):
        return None
    return tables.Tables(target.kind, request.parameters, now_ms=state.store.now_ms)


def _get(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    table = _tables(state, request, target)
    found = state.store.get(target.kind.resource, target.namespace, target.name)
    return Answer(200, table.of_object(found) if table else found.json())


def _list(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    parameters = request.parameters
    _refuse_initial_events(parameters)
    query = pages.Query(
        resource=target.kind.resource,
        namespace=target.namespace or None,
        labels=parameters.text("labelSelector"),
        fields=parameters.text("fieldSelector"),
        limit=max(0, parameters.number("limit") or 0),
        continue_token=parameters.text("continue"),
        resource_version=parameters.text("resourceVersion"),
        match=parameters.text("resourceVersionMatch"),
    )
    table = _tables(state, request, target)
    listing = state.pages.page(query)
    return Answer(
        200, table.of_list(listing) if table else encoding.encode_list(target.kind.resource, listing)
    )


def _watch(state: backend.Backend, request: Request, target: targets.Target) -> Stream:
    parameters = request.parameters
    _refuse_initial_events(parameters)
    name = f"metadata.name={target.name}" if target.name else ""
    query = watches.Query(
        resource=target.kind.resource,
        namespace=target.namespace or None,
        labels=parameters.text("labelSelector"),
        fields=",".join(filter(None, [parameters.text("fieldSelector"), name])),
        resource_version=parameters.text("resourceVersion"),
        bookmarks=parameters.flag("allowWatchBookmarks"),
        timeout_s=max(0, parameters.number("timeoutSeconds") or 0),
    )
    table = _tables(state, request, target)
    watch = state.watches.open(query)
    return Stream(watch, table.of_change) if table else Stream(watch)


def _refuse_initial_events(parameters: requests.Parameters) -> None:
    if parameters.text("sendInitialEvents"):
        detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise failures.bad_options("ListOptions", failures.forbidden_field("sendInitialEvents", detail))


def _create(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    if target.subresource == "eviction":
        return _evict(state, request, target)
    requests.check_json(request.content_type)
    body = requests.decode(request.body)
    if target.subresource == "binding":
        return _bind(state, request, target, body)
    _check_strictly(request, target, body)
    created = state.store.create(
        target.kind.resource, target.namespace or None, body, dry_run=request.parameters.dry_run()
    )
    return Answer(201, created.json())


def _check_strictly(request: Request, target: targets.Target, body: object) -> None:
    """With fieldValidation=Strict, refuse what pruning would silently drop. Built-in kinds prune nothing."""
    if request.parameters.text("fieldValidation") != "Strict" or not isinstance(body, dict):
        return
    if target.kind.own and (unknown := admission_own.unknown_fields(target.kind.resource.kind, body)):
        fields = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise failures.bad_request(f"strict decoding error: {fields}")


def _bind(state: backend.Backend, request: Request, target: targets.Target, body: object) -> Answer:
    if not isinstance(body, dict) or not (body.get("target") or {}).get("name"):
        needed = [failures.required("target.name")]
        raise failures.invalid(port.Resource("", "v1", "pods", "Binding"), target.name, needed)
    if request.parameters.dry_run():
        state.store.get(port.PODS, target.namespace, target.name)
    else:
        uid = (body.get("metadata") or {}).get("uid") or ""
        state.store.bind(target.namespace, target.name, body["target"]["name"], uid=uid)
    return Answer(201, orjson.dumps(_DONE))


def _evict(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    asked = requests.eviction(request.parameters, request.body, content_type=request.content_type)
    eviction.evict(state.store, target.namespace, target.name, asked)
    return Answer(201, orjson.dumps(_DONE))


_DONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _update(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    requests.check_json(request.content_type)
    body = requests.decode(request.body)
    _check_strictly(request, target, body)
    resource = target.kind.resource
    existed = state.store.find(resource, target.namespace, target.name) is not None
    updated = state.store.replace(
        resource,
        target.namespace or None,
        target.name,
        body,
        subresource=target.subresource,
        dry_run=request.parameters.dry_run(),
    )
    return Answer(200 if existed else 201, updated.json())


def _patch(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    patch = requests.decode_patch(request.content_type, request.body, custom=target.kind.custom)
    _check_strictly(request, target, patch)
    if target.kind.read_only:
        _refuse_changes(state, target, patch)
    patched = state.store.patch(
        target.kind.resource,
        target.namespace or None,
        target.name,
        patch,
        subresource=target.subresource,
        dry_run=request.parameters.dry_run(),
        strategic=requests.media(request.content_type) == requests.STRATEGIC_PATCH,
    )
    return Answer(200, patched.json())


def _refuse_changes(state: backend.Backend, target: targets.Target, patch: object) -> None:
    """Let `kubectl apply` of what is there note that it was applied, and nothing else."""
    known = state.store.get(target.kind.resource, target.namespace, target.name)
    said = patch if isinstance(patch, dict) else {"spec": patch}
    # What a patch leaves alone it may also repeat.
    asked = patches.merge({key: known.get(key) for key in said}, said)
    if any(asked.get(key) != known.get(key) for key in said if key != "metadata"):
        raise failures.built_in(target.kind.resource)


def _delete_options(request: Request) -> requests.DeleteOptions:
    return requests.delete_options(request.parameters, request.body, content_type=request.content_type)


def _delete(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    options = _delete_options(request)
    last = _delete_one(state, target.kind.resource, target.namespace, target.name, options)
    resource = target.kind.resource
    gone = options.dry_run or state.store.find(resource, target.namespace, target.name) is None
    if gone and resource not in _RETURNS_DELETED:
        return Answer(
            200, orjson.dumps(requests.status_success(resource, target.name, last["metadata"]["uid"]))
        )
    return Answer(200, last.json())


def _delete_collection(state: backend.Backend, request: Request, target: targets.Target) -> Answer:
    options = _delete_options(request)
    resource = target.kind.resource
    if resource.namespaced and not target.namespace:
        raise failures.method("DELETE")
    rows = state.store.list(
        resource,
        namespace=target.namespace,
        labels=request.parameters.text("labelSelector"),
        fields=request.parameters.text("fieldSelector"),
    )
    last = [
        _delete_one(state, resource, target.namespace, row["metadata"]["name"], options)
        for row in rows
        if state.store.find(resource, target.namespace, row["metadata"]["name"]) is not None
    ]
    return Answer(200, encoding.encode_list(resource, pages.Listing(last, str(state.store.revision))))


def _delete_one(
    state: backend.Backend,
    resource: port.Resource,
    namespace: str,
    name: str,
    options: requests.DeleteOptions,
) -> Stored:
    return state.store.delete(
        resource,
        namespace or None,
        name,
        uid=options.uid,
        resource_version=options.resource_version,
        grace_seconds=options.grace_seconds,
        propagation=options.propagation,
        dry_run=options.dry_run,
    )


_VERBS: dict[str, Callable[[backend.Backend, Request, targets.Target], Answer | Stream]] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}
