"""The HTTP adapter of the port: `kubernetes.aio` for connections, TLS and credentials, its raw path for data.

No typed model is made of any object: answers are decoded once, by orjson, into the dicts that the port
promises. Every call has a deadline, and every way in which no answer can come ends in `UnavailableError`.
Nothing is retried here. Importing this module imports the client library (about a second): programs that can
do without a server should import it late.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from urllib import parse

import aiohttp
import orjson
from kubernetes.aio import client
from kubernetes.aio.client import rest

import lstqueue
from lstqueue.kube import login, port, wire

LoginError = login.LoginError

_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_AGENT = f"lstqueue/{lstqueue.__version__}"

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)
"""The library's own timeout would count from the request only; `asyncio.timeout` covers credentials too."""

_KEEP_IDLE = 300.0
"""Seconds that an idle connection is kept."""

_Query = Iterable[tuple[str, str]]


class _Connections(rest.RESTClientObject):
    """The library's connections, kept longer when idle: bursts of writes are often more than 15 s apart."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, keepalive_timeout=_KEEP_IDLE)

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], body: port.Object | None
    ) -> aiohttp.ClientResponse:
        """Send a request as the library does; its own `request` encodes and dispatches at twice the cost."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        return await self.pool_manager.request(
            method,
            url,
            headers=headers,
            data=None if body is None else orjson.dumps(body),
            timeout=_NO_TIMEOUT,
            proxy=self.proxy,
            proxy_headers=self.proxy_headers,
            server_hostname=self.configuration.tls_server_name,
        )


async def connect(
    *,
    url: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
    deadline: float = 30.0,
    watch_slack: float = 30.0,
) -> KubeClient:
    """Return a client of one API server; nothing is sent yet.

    Args:
        url: address of the server; without it a kubeconfig or the pod's service account is used.
        token: bearer token, with `url` only.
        ca: certificate authority, PEM text or path, with `url` only.
        kubeconfig: path instead of KUBECONFIG and the default one.
        context: context in the kubeconfig.
        deadline: seconds within which each call must be answered.
        watch_slack: seconds that a watch may outlive the time it asked the server for.

    Raises:
        LoginError: no server is configured, or the configuration cannot be used.
    """
    configuration = await login.configure(url=url, token=token, ca=ca, kubeconfig=kubeconfig, context=context)
    try:
        api = client.ApiClient(configuration)
        connections = api.rest_client = _Connections(configuration)
    except (OSError, ValueError) as error:
        raise LoginError(f"the certificates for {configuration.host} cannot be used: {error}") from error
    return KubeClient(api, connections, deadline=deadline, watch_slack=watch_slack)


class KubeClient:
    """`port.KubeApi` over HTTP. Made by `connect`; close it when done.

    Args:
        api: the library's client, which this object owns.
        connections: those of `api`.
        deadline: seconds within which each call must be answered.
        watch_slack: seconds that a watch may outlive the time it asked the server for.
    """

    def __init__(
        self, api: client.ApiClient, connections: _Connections, *, deadline: float, watch_slack: float
    ) -> None:
        self._api = api
        self._connections = connections
        self._deadline = deadline
        self._watch_slack = watch_slack
        self._closed = False
        self._streams: set[aiohttp.ClientResponse] = set()

    @property
    def host(self) -> str:
        """The server's URL, without a slash at its end."""
        return str(self._api.configuration.host).rstrip("/")

    async def credentials(self) -> login.Credentials:
        """Return who we are as of now, for another client of the same process."""
        return await login.credentials(self._api.configuration)

    async def served(self, resources: Iterable[port.Resource]) -> list[port.Resource]:
        """Return those kinds that the server's discovery lists, as other clients will find them."""
        found = []
        for resource in resources:
            try:
                page = wire.decode(await self._call("GET", f"/apis/{resource.api_version}"))
            except port.NotFoundError:
                continue
            if any(item["name"] == resource.plural for item in page.get("resources") or ()):
                found.append(resource)
        return found

    async def get(self, resource: port.Resource, namespace: str | None, name: str) -> port.Object:
        """Return one object."""
        return wire.decode(await self._call("GET", wire.object_path(resource, namespace, name)))

    async def list_page(
        self,
        resource: port.Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
    ) -> port.Page:
        """Return one page of a LIST, filtered by the server. A `limit` of 0 is none."""
        query = _present(
            labelSelector=labels,
            fieldSelector=fields,
            limit=str(limit or ""),
            # Servers refuse a continue token together with a resourceVersion.
            resourceVersion="" if continue_token else resource_version,
        )
        if continue_token:
            query.append(("continue", continue_token))
        path = wire.collection_path(resource, namespace)
        return wire.page(resource, await self._call("GET", path, query))

    async def watch(
        self,
        resource: port.Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncGenerator[port.WatchEvent, None]:
        """Yield events after `resource_version` until the server ends the stream.

        Close the generator (`contextlib.aclosing`) to give its connection back early.

        Raises:
            GoneError: 410, as the answer or inside the stream.
            UnavailableError: the stream was cut, or outlived `timeout_seconds` and the slack.
            ApiError: any other refusal, in either form.
        """
        query = _present(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            labelSelector=labels,
            fieldSelector=fields,
            timeoutSeconds=str(timeout_seconds),
        )
        path = wire.collection_path(resource, namespace)
        with _no_answer(f"watch of {path}"):
            async with asyncio.timeout(self._deadline):
                answer = await self._open("GET", path, query)
                if answer.status != 200:
                    async with answer:
                        raise wire.refusal(
                            answer.status, answer.reason or "", answer.headers, await answer.read()
                        )
        self._streams.add(answer)
        try:
            lines = wire.Lines()
            end = asyncio.get_running_loop().time() + timeout_seconds + self._watch_slack
            while chunk := await _next_chunk(answer, end, path):
                for line in lines.feed(chunk):
                    yield wire.event(line)
            lines.end()
        finally:
            self._streams.discard(answer)
            answer.close()

    async def create(
        self, resource: port.Resource, namespace: str | None, body: port.Object, *, dry_run: bool = False
    ) -> port.Object:
        """Create an object and return it as the server has it."""
        wire.require_namespace(resource, namespace)
        path = wire.collection_path(resource, namespace)
        query = _present(dryRun="All" if dry_run else "")
        return wire.decode(await self._call("POST", path, query, body=body))

    async def patch(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch; `metadata.resourceVersion` in the body makes it conditional."""
        path = wire.object_path(resource, namespace, name)
        return wire.decode(await self._call("PATCH", path, body=body, content_type=_MERGE_PATCH))

    async def patch_status(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch to the status subresource."""
        path = wire.object_path(resource, namespace, name, "status")
        return wire.decode(await self._call("PATCH", path, body=body, content_type=_MERGE_PATCH))

    async def replace(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Replace an object (PUT)."""
        path = wire.object_path(resource, namespace, name)
        return wire.decode(await self._call("PUT", path, body=body))

    async def delete(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        at_once: bool = False,
    ) -> None:
        """Delete an object, only if uid and resourceVersion still match where they are given."""
        options: port.Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        conditions = dict(_present(uid=uid, resourceVersion=resource_version))
        if conditions:
            options["preconditions"] = conditions
        if at_once:
            options["gracePeriodSeconds"] = 0
        await self._call("DELETE", wire.object_path(resource, namespace, name), body=options)

    async def version(self) -> Mapping[str, str]:
        """Return the server's /version."""
        return wire.decode(await self._call("GET", "/version"))

    async def close(self) -> None:
        """Release connections; watches that still run end with `UnavailableError`."""
        self._closed = True
        for answer in list(self._streams):
            # Closing the session alone would leave their readers waiting until the deadline.
            answer.close()
        await self._api.close()  # type: ignore[no-untyped-call]

    async def _call(
        self,
        method: str,
        path: str,
        query: _Query = (),
        *,
        body: port.Object | None = None,
        content_type: str = _JSON,
    ) -> bytes:
        with _no_answer(f"{method} {path}"):
            async with asyncio.timeout(self._deadline):
                answer = await self._open(method, path, query, body=body, content_type=content_type)
                async with answer:
                    data = await answer.read()
        if not 200 <= answer.status < 300:
            raise wire.refusal(answer.status, answer.reason or "", answer.headers, data)
        return data

    async def _open(
        self,
        method: str,
        path: str,
        query: _Query,
        *,
        body: port.Object | None = None,
        content_type: str = _JSON,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": _JSON, "Content-Type": content_type, "User-Agent": _AGENT}
        authorization = await login.authorization(self._api.configuration)
        if authorization:
            headers["Authorization"] = authorization
        if self._closed:
            # Asked last: the library would silently open a new session for a client that was never used.
            raise port.UnavailableError(0, "Closed", f"{method} {path}: this client has been closed")
        url = f"{self.host}{path}"
        encoded = parse.urlencode(list(query), quote_via=parse.quote)
        return await self._connections.send(
            method, f"{url}?{encoded}" if encoded else url, headers=headers, body=body
        )


async def _next_chunk(answer: aiohttp.ClientResponse, end: float, path: str) -> bytes:
    # Bytes as they come: aiohttp's readline refuses long lines, and pods can be of any length.
    with _no_answer(f"watch of {path}"):
        async with asyncio.timeout_at(end):
            return await answer.content.readany()


@contextlib.contextmanager
def _no_answer(what: str) -> Iterator[None]:
    """Turn every way of getting no answer into `UnavailableError`.

    A bare TimeoutError can only be that of our own deadlines: aiohttp's are off.
    """
    try:
        yield
    except TimeoutError as error:
        raise port.UnavailableError(0, "Timeout", f"{what}: no answer within the deadline") from error
    except (aiohttp.ClientError, OSError) as error:
        detail = str(error) or type(error).__name__
        raise port.UnavailableError(0, "ConnectionFailed", f"{what}: {detail}") from error


def _present(**parameters: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parameters.items() if value]
