"""Check the pinned requirement files: in step with what they are made from, hashed, and naming no registry.

Needs no network, so it cannot tell whether newer versions exist; it tells whether `make lock` was forgotten.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib

from packaging import requirements, utils, version

ROOT = pathlib.Path(__file__).resolve().parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ \\;]+)")


def wanted() -> dict[str, list[requirements.Requirement]]:
    """Return the direct requirements by the file that pins them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {"run": [requirements.Requirement(line) for line in project["dependencies"]]}
    for name in ("build", "dev"):
        lines = (ROOT / "requirements" / f"{name}.in").read_text().splitlines()
        names = [line.partition("#")[0].strip() for line in lines]
        found[name] = [requirements.Requirement(line) for line in names if line and not line.startswith("-")]
    return found


def problems(name: str, direct: list[requirements.Requirement]) -> list[str]:
    """Return what is wrong with one pinned file, a sentence each."""
    path = ROOT / "requirements" / f"{name}.txt"
    text = path.read_text()
    shown = path.relative_to(ROOT)
    found = [f"{shown} names a registry: {line.strip()}" for line in text.splitlines() if "://" in line]
    pins: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", text):
        match = PIN.match(block)
        if match:
            pins[utils.canonicalize_name(match[1])] = match[2]
            if "--hash=sha256:" not in block:
                found.append(f"{shown}: {match[1]} has no hash")
    for requirement in direct:
        pin = pins.get(utils.canonicalize_name(requirement.name))
        if pin is None:
            found.append(f"{shown} does not pin {requirement.name}")
        elif not requirement.specifier.contains(version.Version(pin), prereleases=True):
            found.append(f"{shown} pins {requirement.name} {pin}, which {requirement} excludes")
    return found


def main() -> int:
    """Print every problem and the remedy; return the exit code."""
    found = [line for name, direct in wanted().items() for line in problems(name, direct)]
    for line in found:
        print(line)
    if found:
        print("run: make lock")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
