"""Where the API server is and who we are there: an explicit URL, a kubeconfig, or the pod's service account.

The client library's loaders do the reading; this module chooses between them, turns their many ways to fail
into one error with a remedy, and keeps tokens fresh. It opens no connection to the server.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
from dataclasses import dataclass
from typing import Any
from urllib import parse, request

import aiohttp
import yaml
from kubernetes.aio import client, config

from lstqueue.kube import port

_REFRESH = 60.0
"""Seconds between two looks at a kubeconfig's credentials; the library does the same inside a pod."""

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_NAMESPACE = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

# What the library's loaders raise for files that are missing, malformed or of the wrong shape.
_UNUSABLE = (
    config.ConfigException,
    yaml.YAMLError,
    aiohttp.ClientError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What another client in this process needs to be the same user: the kopf shell has its own.

    Attributes:
        server: URL.
        scheme: of the Authorization header, `Bearer` or `Basic`.
        token: what follows the scheme, as fresh as the library keeps it.
        ca_path: PEM file of the authority.
        ca_data: the same as PEM text.
        certificate_path: PEM file of a client certificate.
        private_key_path: PEM file of its key.
        insecure: the server's certificate is not checked.
        proxy: URL of the proxy on the way.
    """

    server: str
    scheme: str | None = None
    token: str | None = None
    ca_path: str | None = None
    ca_data: str | bytes | None = None
    certificate_path: str | None = None
    private_key_path: str | None = None
    insecure: bool = False
    proxy: str | None = None


class LoginError(Exception):
    """There is no usable way to an API server; the message says what to give instead."""


async def configure(
    *,
    url: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> client.Configuration:
    """Return the library's configuration for one server.

    In this order: `url`; `kubeconfig` or `context`; the file(s) that KUBECONFIG names; the service account of
    the pod we run in; `~/.kube/config`.

    Args:
        url: `http://` or `https://` address of the server.
        token: bearer token, with `url` only.
        ca: certificate authority, as PEM text or the path of a PEM file, with `url` only.
        kubeconfig: path; several are separated as in KUBECONFIG.
        context: context in the kubeconfig instead of its current one.

    Raises:
        LoginError: nothing of this is there, or it cannot be used.
    """
    configuration = client.Configuration()
    if url is not None:
        if kubeconfig is not None or context is not None:
            raise LoginError("give either a url or a kubeconfig (and context), not both")
        _use_url(configuration, url, token, ca)
    elif token is not None or ca is not None:
        raise LoginError("a token or ca belongs to a url: give the url too")
    elif kubeconfig is not None or context is not None or os.environ.get("KUBECONFIG"):
        await _use_kubeconfig(configuration, kubeconfig or _default_kubeconfig(), context)
    elif os.environ.get(_IN_CLUSTER):
        _use_service_account(configuration)
    elif _default_exists():
        await _use_kubeconfig(configuration, _default_kubeconfig(), None)
    else:
        raise LoginError(
            f"no API server: {_IN_CLUSTER} is not set and {_default_kubeconfig()} does not exist; "
            "give a kubeconfig or a url"
        )
    _finish(configuration)
    return configuration


def by_service_account(*, url: str | None, kubeconfig: str | None, context: str | None) -> bool:
    """Whether `configure` would use the account of the pod we run in."""
    told = url is not None or kubeconfig is not None or context is not None or os.environ.get("KUBECONFIG")
    return not told and bool(os.environ.get(_IN_CLUSTER))


def pod_namespace(path: pathlib.Path = _NAMESPACE) -> str | None:
    """Return the namespace of the pod we run in, None when there is none."""
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


async def authorization(configuration: client.Configuration) -> str:
    """Return the Authorization header for the next request, empty when there is none; may refresh the token.

    Raises:
        UnavailableError: the credentials could not be refreshed.
    """
    try:
        settings: Any = await configuration.auth_settings()
    except _UNUSABLE as error:
        raise port.UnavailableError(
            0, "Credentials", f"the credentials could not be refreshed: {error}"
        ) from error
    # Token files often end in a line feed, which no header may contain.
    return str(settings.get("BearerToken", {}).get("value") or "").strip()


async def credentials(configuration: client.Configuration) -> Credentials:
    """Return who we are as of now.

    Raises:
        UnavailableError: the credentials could not be refreshed.
    """
    # Schemes are case-insensitive, and the library's loaders write both "Bearer" and "bearer".
    scheme, _, token = (await authorization(configuration)).partition(" ")
    return Credentials(
        server=str(configuration.host).rstrip("/"),
        scheme=scheme.capitalize() or None,
        token=token.strip() or None,
        ca_path=configuration.ssl_ca_cert,
        ca_data=configuration.ca_cert_data,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        insecure=not configuration.verify_ssl,
        proxy=configuration.proxy,
    )


def _default_kubeconfig() -> str:
    return os.environ.get("KUBECONFIG") or str(pathlib.Path.home() / ".kube" / "config")


def _default_exists() -> bool:
    return pathlib.Path(_default_kubeconfig()).exists()


def _use_url(configuration: client.Configuration, url: str, token: str | None, ca: str | None) -> None:
    try:
        parts = parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable or parts.query or parts.fragment or parts.username:
        raise LoginError(f"url must look like https://host:port, not {url!r}")
    configuration.host = url.rstrip("/")
    if token is not None:
        token = token.strip()
        if not token or not token.isprintable():
            raise LoginError("token must be one line of text that is not empty")
        configuration.api_key["BearerToken"] = f"Bearer {token}"
    if ca is None:
        return
    if "-----BEGIN" in ca:
        configuration.ca_cert_data = ca
    elif pathlib.Path(ca).is_file():
        configuration.ssl_ca_cert = ca
    else:
        raise LoginError(f"ca must be PEM text or the path of a PEM file; there is no file {ca!r}")


def _use_service_account(configuration: client.Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except _UNUSABLE as error:
        raise LoginError(
            f"the pod's service account cannot be used: {error}; "
            "is automountServiceAccountToken off? Else give a kubeconfig"
        ) from error


def _any_exists(paths: str) -> bool:
    return any(pathlib.Path(part).exists() for part in paths.split(os.pathsep))


async def _use_kubeconfig(configuration: client.Configuration, path: str, context: str | None) -> None:
    if not _any_exists(path):
        raise LoginError(f"kubeconfig {path!r} does not exist; name one that does, or give a url")
    try:
        loader = await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path, context=context, client_configuration=configuration, persist_config=False
        )
    except _UNUSABLE as error:
        raise LoginError(
            f"kubeconfig {path!r}{f', context {context!r},' if context else ''} cannot be used: "
            f"{error or type(error).__name__}; check that it exists and that `kubectl` accepts it"
        ) from error
    if configuration.api_key:
        configuration.refresh_api_key_hook = _Refresh(loader)  # type: ignore[assignment]


def _finish(configuration: client.Configuration) -> None:
    if configuration.proxy is None:
        configuration.proxy = _environment_proxy(configuration.host)
    configuration.client_session_kwargs = {
        # Trusting the environment costs a thread per request (netrc, proxies): looked up once, above.
        "trust_env": False,
        "cookie_jar": aiohttp.DummyCookieJar(),
    }


def _environment_proxy(host: str) -> str | None:
    parts = parse.urlsplit(host)
    if request.proxy_bypass_environment(parts.netloc):  # type: ignore[attr-defined]
        return None
    return request.getproxies_environment().get(parts.scheme)


class _Refresh:
    """Reads a kubeconfig user's credentials again, at most once a minute and once at a time.

    The loader knows which ones can change (token files, exec plugins, identity providers). A client
    certificate that a plugin hands out is not exchanged: the TLS context is made once.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._lock = asyncio.Lock()
        self._due = asyncio.get_running_loop().time() + _REFRESH

    async def __call__(self, configuration: client.Configuration) -> None:
        """Refresh `configuration` when it is time."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._due:
            return
        async with self._lock:
            if loop.time() >= self._due:
                await self._loader.load_and_set(configuration)
                self._due = loop.time() + _REFRESH
