"""The kubeconfig of the cluster that `lstqueue demo --serve` runs, for as long as it runs.

It never takes the place of a file that somebody else wrote, and goes with the cluster.
"""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

import click
import yaml

MARK = "# Written by `lstqueue demo --serve`, which removes it when it ends.\n"
_NAME = "lstqueue-demo"


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
        click.BadParameter: it is somebody else's, or cannot be written.
    """
    try:
        if not path.parent.is_dir():
            raise _refused(f"folder {str(path.parent)!r} does not exist; create it, or name another file")
        if path.exists() and not (path.is_file() and path.read_text(encoding="utf-8").startswith(MARK)):
            raise _refused(f"{str(path)!r} exists and is not ours; name a file that does not exist")
        with path.open("a", encoding="utf-8"):
            pass
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"{str(path)!r} cannot be written ({error}); name another file") from error
    if not path.stat().st_size:
        path.unlink()


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
        cleanup.callback(path.unlink, missing_ok=True)
        yield path
