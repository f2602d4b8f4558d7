"""Finding the server and keeping the token fresh: URL, kubeconfig, service account, and what goes wrong."""

from __future__ import annotations

import asyncio
import datetime
import pathlib
import shutil
import ssl
import subprocess
import types

import pytest
import yaml
from aiohttp import web
from kubernetes.aio.config import incluster_config

from lstqueue.embedded import clock
from lstqueue.kube import client, login, port


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def write_kubeconfig(
    path: pathlib.Path, *, user: dict[str, object], server: str = "http://127.0.0.1:1"
) -> str:
    contexts = [{"name": name, "context": {"cluster": name, "user": name}} for name in ("one", "two")]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [
            {"name": "one", "cluster": {"server": server}},
            {"name": "two", "cluster": {"server": "http://127.0.0.1:2/"}},
        ],
        "contexts": contexts,
        "users": [{"name": "one", "user": user}, {"name": "two", "user": {"token": "second"}}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def test_nothing_configured_names_what_to_give(tmp_path):
    with pytest.raises(client.LoginError, match="give a kubeconfig or a url"):
        await client.connect()


@pytest.mark.parametrize(
    "url", ["", "localhost:6443", "ftp://x", "https://", "http://[::1", "https://u:p@host", "https://h?x=1"]
)
async def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(client.LoginError, match="url must look like"):
        await client.connect(url=url)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "http://h", "kubeconfig": "k"}, "not both"),
        ({"url": "http://h", "context": "c"}, "not both"),
        ({"token": "t"}, "give the url"),
        ({"ca": "c"}, "give the url"),
        ({"url": "http://h", "token": " "}, "token must be"),
        ({"url": "http://h", "token": "a\nb"}, "token must be"),
        ({"url": "https://h", "ca": "/no/such/file"}, "no file '/no/such/file'"),
        ({"url": "https://h", "ca": "-----BEGIN CERTIFICATE-----\nx"}, "certificates for https://h"),
        ({"kubeconfig": "/no/such/file"}, "/no/such/file"),
    ],
)
async def test_arguments_that_do_not_work_are_named(arguments, message):
    with pytest.raises(client.LoginError, match=message):
        await client.connect(**arguments)


@pytest.mark.parametrize(
    "content", ["[" * 500, "", "[]", "a: b", "\t{", "clusters: 3", "current-context: x\ncontexts: []"]
)
async def test_a_malformed_kubeconfig_is_one_kind_of_error(tmp_path, content):
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(client.LoginError, match="kubectl"):
        await client.connect(kubeconfig=str(path))


async def test_a_context_is_chosen_by_name(tmp_path):
    path = write_kubeconfig(tmp_path / "config", user={"token": "first"})
    current = await login.configure(kubeconfig=path)
    other = await login.configure(kubeconfig=path, context="two")
    assert (current.host, await login.authorization(current)) == ("http://127.0.0.1:1", "Bearer first")
    assert (other.host, await login.authorization(other)) == ("http://127.0.0.1:2", "Bearer second")
    with pytest.raises(login.LoginError, match="three"):
        await login.configure(kubeconfig=path, context="three")


async def test_kubeconfigs_are_found_in_order(tmp_path, monkeypatch):
    write_kubeconfig(tmp_path / ".kube" / "config", user={"token": "home"})
    assert await login.authorization(await login.configure()) == "Bearer home"
    named = write_kubeconfig(tmp_path / "named", user={"token": "environment"})
    monkeypatch.setenv("KUBECONFIG", named)
    assert await login.authorization(await login.configure()) == "Bearer environment"
    given = write_kubeconfig(tmp_path / "given", user={"token": "argument"})
    assert await login.authorization(await login.configure(kubeconfig=given)) == "Bearer argument"


async def test_basic_credentials_and_none(tmp_path):
    path = write_kubeconfig(tmp_path / "basic", user={"username": "u", "password": "p"})
    configuration = await login.configure(kubeconfig=path)
    assert await login.authorization(configuration) == "Basic dTpw"
    found = await login.credentials(configuration)
    assert (found.scheme, found.token) == ("Basic", "dTpw")

    path = write_kubeconfig(tmp_path / "none", user={})
    configuration = await login.configure(kubeconfig=path)
    assert await login.authorization(configuration) == ""
    assert await login.credentials(configuration) == login.Credentials("http://127.0.0.1:1")


async def test_another_client_can_be_the_same_user(tmp_path):
    configuration = await login.configure(url="https://api.example:6443/", token="t", ca="-----BEGIN x")
    assert await login.credentials(configuration) == login.Credentials(
        "https://api.example:6443", scheme="Bearer", token="t", ca_data="-----BEGIN x"
    )


def test_a_token_file_is_read_again_every_minute(tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")
    path = write_kubeconfig(tmp_path / "config", user={"tokenFile": str(token)})

    async def main() -> list[str]:
        configuration = await login.configure(kubeconfig=path)
        seen = [await login.authorization(configuration)]
        token.write_text("new\n")
        for _ in range(2):
            await asyncio.sleep(31)
            seen += await asyncio.gather(*[login.authorization(configuration) for _ in range(2)])
        token.write_text("newest\n")
        await asyncio.sleep(31)
        seen.append(await login.authorization(configuration))
        token.unlink()
        await asyncio.sleep(61)
        with pytest.raises(port.UnavailableError, match="could not be refreshed"):
            await login.authorization(configuration)
        return seen

    assert clock.run(main()) == ["Bearer old"] * 3 + ["Bearer new"] * 3


async def test_the_pods_service_account_is_used_and_its_token_followed(tmp_path, monkeypatch):
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("pod-1\n")
    ca.write_text("certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(ca))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = await login.configure()
    assert configuration.host == "https://[fd00::1]:443"
    assert configuration.ssl_ca_cert == str(ca)
    assert await login.authorization(configuration) == "bearer pod-1"
    found = await login.credentials(configuration)
    assert (found.scheme, found.token, found.ca_path) == ("Bearer", "pod-1", str(ca))

    token.write_text("pod-2\n")
    later = datetime.datetime.now() + datetime.timedelta(seconds=61)  # noqa: DTZ005 (the library's own clock)
    fake = types.SimpleNamespace(now=lambda: later)
    monkeypatch.setattr(
        incluster_config, "datetime", types.SimpleNamespace(datetime=fake, timedelta=datetime.timedelta)
    )
    assert await login.authorization(configuration) == "bearer pod-2"


async def test_a_pod_without_a_token_is_told_why(tmp_path, monkeypatch):
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(login.LoginError, match="automountServiceAccountToken"):
        await login.configure()


async def test_the_environments_proxy_holds_except_where_excluded(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example,127.0.0.1")
    assert (await login.configure(url="https://api.example:6443")).proxy == "http://proxy:3128"
    assert (await login.configure(url="https://inside.example:6443")).proxy is None
    assert (await login.configure(url="https://127.0.0.1:6443")).proxy is None
    assert (await login.configure(url="http://api.example:6443")).proxy is None


@pytest.fixture
def certificate(tmp_path: pathlib.Path) -> pathlib.Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program")
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    command = [openssl, *options.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "ca.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return tmp_path / "ca.pem"


@pytest.mark.parametrize("form", ["path", "text", "missing"])
async def test_a_private_authority_is_trusted_when_given(certificate, form):
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=b'{"gitVersion": "v1.36.3"}')

    app = web.Application()
    app.router.add_get("/version", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    ca = {"path": str(certificate), "text": certificate.read_text(), "missing": None}[form]
    api = await client.connect(url=f"https://127.0.0.1:{runner.addresses[0][1]}", ca=ca)
    try:
        if form == "missing":
            with pytest.raises(port.UnavailableError, match="certificate"):
                await api.version()
        else:
            assert await api.version() == {"gitVersion": "v1.36.3"}
    finally:
        await api.close()
        await runner.cleanup()
