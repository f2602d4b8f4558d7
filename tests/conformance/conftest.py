"""The same cases for the embedded API (over HTTP and in process) and for a real API server.

LSTQUEUE_CONFORMANCE_KUBECONFIG names a kubeconfig with a bearer token; the cluster behind it gets lstqueue's
CRDs and one namespace per case. Cases that ask for `http` speak HTTP themselves and do not run in process.
"""

import base64
import json
import os
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from lstqueue.api import crd, kinds
from lstqueue.embedded import backend, memory, server, store
from lstqueue.kube import client, port

KUBECONFIG = os.environ.get("LSTQUEUE_CONFORMANCE_KUBECONFIG", "")


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: Any
    headers: Any


class Http:
    """Plain HTTP to one server."""

    def __init__(self, url: str, *, token: str = "", tls: ssl.SSLContext | bool = True) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.session = aiohttp.ClientSession(url, headers=headers, connector=aiohttp.TCPConnector(ssl=tls))

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> Reply:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        async with self.session.request(method, path, data=data, headers=headers, params=query) as answer:
            text = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return Reply(answer.status, json.loads(text) if is_json and text else text, answer.headers)


@dataclass(frozen=True)
class Target:
    """One server under test, with a namespace for the case."""

    kind: str
    api: port.KubeApi
    namespace: str
    http: Http | None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        chosen = ["http"] if "http" in metafunc.fixturenames else ["http", "memory"]
        metafunc.parametrize("target", chosen + (["real"] if KUBECONFIG else []), indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of a long table to the slow tests where it comes over HTTP."""
    for item in items:
        if item.get_closest_marker("sampled_over_http") and isinstance(item, pytest.Function):
            number = item.callspec.indices["case"]
            if item.callspec.params["target"] == "http" and number % 8:
                item.add_marker("slow")


@pytest.fixture
async def target(request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    if request.param == "real":
        async for found in real():
            yield found
        return
    objects = store.Store(now=lambda: time.time_ns() // 1_000_000)
    objects.create(port.NAMESPACES, None, {"metadata": {"name": "case"}})
    if request.param == "memory":
        yield Target("memory", memory.MemoryApi(backend.Backend(objects)), "case", None)
        return
    async with server.ApiServer(objects) as running:
        api = await client.connect(url=running.url)
        http = Http(running.url)
        yield Target("http", api, "case", http)
        await http.session.close()
        await api.close()


async def real() -> AsyncGenerator[Target]:
    config = yaml.safe_load(Path(KUBECONFIG).read_text())  # noqa: ASYNC240 - nothing else runs yet
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    if "certificate-authority-data" in cluster:
        tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
    else:
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    api = await client.connect(kubeconfig=KUBECONFIG)
    http = Http(cluster["server"], token=user["token"], tls=tls)
    namespace = f"case-{secrets.token_hex(4)}"
    try:
        for kind in kinds.KINDS:
            await http.send(
                "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.manifest(kind)
            )
        await api.create(port.NAMESPACES, None, {"metadata": {"name": namespace}})
        yield Target("real", api, namespace, http)
        await api.delete(port.NAMESPACES, None, namespace)
    finally:
        await http.session.close()
        await api.close()


@pytest.fixture
def api(target: Target) -> port.KubeApi:
    return target.api


@pytest.fixture
def namespace(target: Target) -> str:
    return target.namespace


@pytest.fixture
def http(target: Target) -> Http:
    assert target.http is not None
    return target.http
