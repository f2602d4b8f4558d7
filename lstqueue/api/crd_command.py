"""What `lstqueue crd` does: print the manifests, write them, or tell which files are out of date."""

from __future__ import annotations

import pathlib

from lstqueue.api import crd


def text() -> str:
    """Return all manifests as one YAML stream."""
    return "---\n".join(crd.files().values())


def write(directory: pathlib.Path) -> list[pathlib.Path]:
    """Write every manifest that differs and return the files written."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = _differing(directory)
    for path, content in wanted.items():
        path.write_text(content, encoding="utf-8")
    return list(wanted)


def stale(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the files that are missing or differ from what the models say."""
    return list(_differing(directory))


def _differing(directory: pathlib.Path) -> dict[pathlib.Path, str]:
    wanted = {directory / name: content for name, content in crd.files().items()}
    return {path: content for path, content in wanted.items() if _content(path) != content}


def _content(path: pathlib.Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
