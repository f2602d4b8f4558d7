"""Credentials of the local control plane, and a small client that uses them.

Everything here lives as long as one control plane and is worth nothing beyond it: random bearer
tokens, a signing key for service accounts, and kubeconfig files.  The client is for setting the
plane up; programs under test bring their own.
"""

import base64
import contextlib
import http.client
import json
import pathlib
import secrets
import ssl
import textwrap
import urllib.parse
from typing import Any

import stack_process

REQUEST_TIMEOUT_S = 10.0

# The order of the group of NIST P-256 (FIPS 186-5): private keys lie below it.
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# DER of an RFC 5915 ECPrivateKey around its 32 bytes: version 1 before, the curve's identifier after.
_EC_KEY_HEAD = bytes.fromhex("30310201010420")
_EC_KEY_CURVE = bytes.fromhex("a00a06082a8648ce3d030107")


class RequestError(stack_process.ControlPlaneError):
    """A request failed; ``status`` is the HTTP status, or None when there was no answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message)
        self.status = status


def write_private(path: pathlib.Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def write_signing_key(path: pathlib.Path) -> None:
    """Write a new private key for signing service account tokens, in PEM.

    An elliptic curve key is a random number in a fixed frame, the public part being optional in
    RFC 5915, so neither openssl nor a cryptography library is needed.
    """
    scalar = (1 + secrets.randbelow(_P256_ORDER - 1)).to_bytes(32, "big")
    body = base64.b64encode(_EC_KEY_HEAD + scalar + _EC_KEY_CURVE).decode()
    lines = "\n".join(textwrap.wrap(body, 64))
    write_private(path, f"-----BEGIN EC PRIVATE KEY-----\n{lines}\n-----END EC PRIVATE KEY-----\n")


def write_kubeconfig(path: pathlib.Path, *, url: str, authority: pathlib.Path, token: str) -> None:
    """Write a kubeconfig (as JSON, which is YAML too) for one bearer token."""
    name = "lstqueue"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    write_private(path, json.dumps(config, indent=1))


class Client:
    """Plain requests to one server, each on a connection of its own.

    ``authority`` may not exist yet: the API server writes it when it starts.
    """

    def __init__(self, url: str, *, authority: pathlib.Path | None = None, token: str | None = None) -> None:
        self._server = urllib.parse.urlsplit(url)
        self._authority = authority
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._context: ssl.SSLContext | None = None

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> Any:
        """Return the decoded answer: JSON as Python values, anything else as text.

        Raises:
            RequestError: no answer, or one with a status of 400 and above.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": content_type}
        try:
            with contextlib.closing(self._connect()) as connection:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise RequestError(f"{method} {path}: {error}", status=None) from error
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestError(f"{method} {path}: {response.status} {text}", status=response.status)
        is_json = response.headers.get_content_type() == "application/json"
        return json.loads(text) if is_json else text

    def answers(self, path: str) -> bool:
        """Say whether a GET succeeds at the moment."""
        try:
            self.request("GET", path)
        except RequestError:
            return False
        return True

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._server.hostname or "", self._server.port
        if self._server.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=REQUEST_TIMEOUT_S)
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._authority)
        return http.client.HTTPSConnection(host, port, timeout=REQUEST_TIMEOUT_S, context=self._context)
