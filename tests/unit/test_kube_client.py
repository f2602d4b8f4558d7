"""The HTTP adapter against a server on loopback: what it sends, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import socket

import orjson
import pytest
from aiohttp import web

from cases import kube_fakes
from lstqueue.embedded import clock
from lstqueue.kube import client, port

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}}


class Recorder:
    """A server that keeps requests and answers all of them alike."""

    def __init__(self, answer: object = POD, status: int = 200, **headers: str) -> None:
        self.requests: list[dict[str, object]] = []
        self._answer = answer
        self._status = status
        self._headers = headers

    async def __call__(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(request.query),
                "type": request.headers["Content-Type"],
                "body": orjson.loads(body) if body else None,
                "headers": request.headers,
            }
        )
        answer = self._answer if isinstance(self._answer, bytes) else orjson.dumps(self._answer)
        return web.Response(status=self._status, body=answer, headers=self._headers)

    def only(self, *keys: str) -> tuple[object, ...]:
        (request,) = self.requests
        return tuple(request[key] for key in keys)


@pytest.mark.parametrize(
    ("call", "method", "path", "kind", "body"),
    [
        (lambda api: api.get(port.PODS, "ns", "a"), "GET", "/api/v1/namespaces/ns/pods/a", "json", None),
        (
            lambda api: api.create(port.JOBS, "ns", POD),
            "POST",
            "/apis/batch/v1/namespaces/ns/jobs",
            "json",
            POD,
        ),
        (
            lambda api: api.patch(port.PODS, "ns", "a", {"spec": None}),
            "PATCH",
            "/api/v1/namespaces/ns/pods/a",
            "merge-patch+json",
            {"spec": None},
        ),
        (
            lambda api: api.patch_status(port.DEADLINE_JOBS, "ns", "a", {"status": {}}),
            "PATCH",
            "/apis/lstqueue.dev/v1alpha1/namespaces/ns/deadlinejobs/a/status",
            "merge-patch+json",
            {"status": {}},
        ),
        (lambda api: api.replace(port.NODES, None, "a", POD), "PUT", "/api/v1/nodes/a", "json", POD),
    ],
)
async def test_each_verb_states_method_path_and_content_type(call, method, path, kind, body):
    server = Recorder()
    async with kube_fakes.serving(server) as api:
        assert await call(api) == POD
    assert server.only("method", "path", "type", "body") == (method, path, f"application/{kind}", body)


async def test_delete_is_conditional_where_asked():
    server = Recorder()
    async with kube_fakes.serving(server) as api:
        await api.delete(port.PODS, "ns", "a", uid="u", resource_version="5", propagation="Foreground")
        await api.delete(port.PODS, "ns", "a")
    conditional, plain = (request["body"] for request in server.requests)
    assert conditional["preconditions"] == {"uid": "u", "resourceVersion": "5"}
    assert conditional["propagationPolicy"] == "Foreground"
    assert "preconditions" not in plain


async def test_a_dry_run_says_so_and_a_create_does_not():
    server = Recorder()
    async with kube_fakes.serving(server) as api:
        await api.create(port.PODS, "ns", POD, dry_run=True)
        await api.create(port.PODS, "ns", POD)
    assert [request["query"] for request in server.requests] == [{"dryRun": "All"}, {}]


async def test_selectors_reach_the_server_as_written():
    server = Recorder({"metadata": {"resourceVersion": "1"}, "items": []})
    labels = "lstqueue.dev/job in (a,b),tier!=x,é"
    async with kube_fakes.serving(server) as api:
        await api.list_page(port.PODS, labels=labels, fields="spec.nodeName=n+1", limit=7)
    (query,) = server.only("query")
    assert query == {"labelSelector": labels, "fieldSelector": "spec.nodeName=n+1", "limit": "7"}


async def test_pages_are_followed_by_their_token():
    pages = {
        None: {"metadata": {"resourceVersion": "9", "continue": "t+/="}, "items": [POD, POD]},
        "t+/=": {"metadata": {"resourceVersion": "9"}, "items": [POD]},
    }

    async def handler(request: web.Request) -> web.Response:
        # A real server refuses the two together.
        assert not ("continue" in request.query and "resourceVersion" in request.query)
        return web.Response(body=orjson.dumps(pages[request.query.get("continue")]))

    async with kube_fakes.serving(handler) as api:
        first = await api.list_page(port.PODS, resource_version="9")
        second = await api.list_page(port.PODS, continue_token=first.continue_token, resource_version="9")
    assert (len(first.items), len(second.items), second.continue_token) == (2, 1, "")


async def test_the_token_and_the_product_are_named():
    server = Recorder()
    async with kube_fakes.serving(server, token="abc\n") as api:
        await api.version()
    (headers,) = server.only("headers")
    assert headers.getall("Authorization") == ["Bearer abc"]
    assert headers["User-Agent"].startswith("lstqueue/")


async def test_the_servers_words_reach_the_caller():
    answer = kube_fakes.status(409, "AlreadyExists", 'pods "é" already exists')
    async with kube_fakes.serving(Recorder(answer, 409)) as api:
        with pytest.raises(port.ConflictError) as caught:
            await api.create(port.PODS, "ns", POD)
    assert (caught.value.reason, caught.value.message) == ("AlreadyExists", 'pods "é" already exists')


async def test_429_says_when_to_come_back():
    answer = kube_fakes.status(429, "TooManyRequests", "later")
    async with kube_fakes.serving(Recorder(answer, 429, **{"Retry-After": "4"})) as api:
        with pytest.raises(port.UnavailableError) as caught:
            await api.get(port.PODS, "ns", "a")
    assert (caught.value.status, caught.value.retry_after) == (429, 4.0)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"cut', b"[1]"])
async def test_an_unreadable_success_leaves_the_outcome_of_a_write_unknown(body):
    async with kube_fakes.serving(Recorder(body)) as api:
        with pytest.raises(port.UnavailableError) as caught:
            await api.patch(port.PODS, "ns", "a", {})
    assert (caught.value.status, caught.value.reason) == (0, "Unreadable")


async def test_a_refused_connection_is_unavailable_with_status_0():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can take the port
        api = await client.connect(url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        try:
            with pytest.raises(port.UnavailableError) as caught:
                await api.get(port.PODS, "ns", "a")
        finally:
            await api.close()
    assert (caught.value.status, caught.value.reason) == (0, "ConnectionFailed")


async def test_an_answer_that_breaks_off_is_unavailable_with_status_0():
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"kind":')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with kube_fakes.serving(handler) as api:
        with pytest.raises(port.UnavailableError) as caught:
            await api.get(port.PODS, "ns", "a")
    assert (caught.value.status, caught.value.reason) == (0, "ConnectionFailed")


@pytest.mark.parametrize("headers_first", [False, True])
def test_a_server_that_hangs_is_left_at_the_deadline(headers_first):
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if headers_first:
            await response.prepare(request)
        await asyncio.sleep(10_000)
        return response

    async def main() -> None:
        async with kube_fakes.serving(handler, deadline=30.0) as api:
            started = asyncio.get_running_loop().time()
            with pytest.raises(port.UnavailableError) as caught:
                await api.patch(port.PODS, "ns", "a", {})
            assert (caught.value.status, caught.value.reason) == (0, "Timeout")
            assert asyncio.get_running_loop().time() - started == pytest.approx(30, abs=0.01)

    clock.run(main(), horizon=100)


async def test_a_callers_own_timeout_stays_the_callers():
    reached = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        reached.set()
        await asyncio.Event().wait()
        return web.Response()

    async with kube_fakes.serving(handler) as api:
        call = asyncio.create_task(api.get(port.PODS, "ns", "a"))
        await asyncio.wait_for(reached.wait(), 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_closed_client_says_so_and_closing_twice_is_fine():
    async with kube_fakes.serving(Recorder()) as api:
        await api.get(port.PODS, "ns", "a")
        await api.close()
        with pytest.raises(port.UnavailableError, match="closed"):
            await api.get(port.PODS, "ns", "a")
    never_used = await client.connect(url="http://127.0.0.1:1")
    await never_used.close()
    with pytest.raises(port.UnavailableError, match="closed"):
        await never_used.version()


async def test_closing_the_client_ends_calls_that_wait():
    reached = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        reached.set()
        await asyncio.Event().wait()
        return web.Response()

    async with kube_fakes.serving(handler) as api:
        call = asyncio.create_task(api.get(port.PODS, "ns", "a"))
        await asyncio.wait_for(reached.wait(), 10)
        await api.close()
        with pytest.raises(port.UnavailableError):
            await asyncio.wait_for(call, 10)


async def test_an_empty_name_never_reaches_the_server():
    server = Recorder()
    async with kube_fakes.serving(server) as api:
        with pytest.raises(port.InvalidError, match="name"):
            await api.delete(port.PODS, "ns", "")
        with pytest.raises(port.InvalidError, match="namespace"):
            await api.create(port.PODS, None, POD)
    assert server.requests == []
