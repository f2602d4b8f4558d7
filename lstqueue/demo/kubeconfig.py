"""The kubeconfig of the cluster that `lstqueue demo --serve` runs, for as long as it runs.

It never takes the place of a file that somebody else wrote, and goes with the cluster.
"""

from __future__ import annotations

import contextlib
import pathlib
import socket
import tempfile
from collections.abc import Iterator
from urllib import parse

import click
import yaml

MARK = "# Written by `lstqueue demo --serve`, which removes it when it ends.\n"
_NAME = "lstqueue-demo"
_PATIENCE = 0.5
"""Seconds in which a server on loopback has answered."""


def text(url: str) -> str:
    """The kubeconfig of a server that asks for no credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": url}}],
        "users": [{"name": _NAME, "user": {}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
    }
    return MARK + yaml.safe_dump(content, sort_keys=False)


def check(path: pathlib.Path) -> None:
    """Find out before anything is started whether the file can be written.

    Raises:
        click.BadParameter: it is somebody else's, or that of a demo that runs, or cannot be written.
    """
    try:
        if not path.parent.is_dir():
            raise _refused(f"folder {str(path.parent)!r} does not exist; create it, or name another file")
        if path.exists() and not (path.is_file() and path.read_text(encoding="utf-8").startswith(MARK)):
            raise _refused(f"{str(path)!r} exists and is not ours; name a file that does not exist")
        if path.exists() and _served(path.read_text(encoding="utf-8")):
            raise _refused(f"{str(path)!r} is that of a demo that runs; end that, or name another file")
        with path.open("a", encoding="utf-8"):
            pass
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"{str(path)!r} cannot be written ({error}); name another file") from error
    if not path.stat().st_size:
        path.unlink()


def _served(content: str) -> bool:
    """Whether the server of a kubeconfig of ours answers: a demo that was killed leaves its file behind."""
    try:
        url = parse.urlsplit(yaml.safe_load(content)["clusters"][0]["cluster"]["server"])
        with socket.create_connection((url.hostname or "", url.port or 0), timeout=_PATIENCE):
            return True
    except (OSError, ValueError, yaml.YAMLError, KeyError, IndexError, TypeError):
        return False


def _remove(path: pathlib.Path, content: str) -> None:
    """Remove the file, unless somebody has put something else in its place."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == content:
            path.unlink(missing_ok=True)


def _refused(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="--kubeconfig")


@contextlib.contextmanager
def written(url: str, path: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """The path of the kubeconfig inside the `with`; without a `path` it is a temporary one."""
    with contextlib.ExitStack() as cleanup:
        if path is None:
            folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="lstqueue-demo-"))
            path = pathlib.Path(folder) / "kubeconfig"
        path.write_text(text(url), encoding="utf-8")
        cleanup.callback(_remove, path, text(url))
        yield path
