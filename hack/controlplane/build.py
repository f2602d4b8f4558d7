"""Build a real Kubernetes control plane from Go modules, once per set of pinned versions.

End-to-end tests and benchmarks run against the genuine kube-apiserver, controller-manager and
scheduler, with etcd beneath and KWOK in place of kubelets, and beside them against the PyTorchJob
controller of Kubeflow's training operator, which pins older libraries and so is a module of its
own.  This script compiles both kits from the versions pinned in their ``go.mod`` into a cache
outside the checkout and prints the folders that hold the binaries on standard output; everything
else goes to standard error.

It is not a container build and needs neither root nor Docker: a Go toolchain is enough.  It imports
the standard library alone, so it also runs before the project's own environment exists.

Usage: ``python hack/controlplane/build.py``.  Exit codes: 0 built or already there, 1 the build
failed, 3 no usable Go toolchain (callers may skip on this one).
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

HERE = pathlib.Path(__file__).resolve().parent

EXIT_BUILD_FAILED = 1
EXIT_NO_GO = 3


class BuildError(Exception):
    """The binaries could not be built; ``exit_code`` is what the process should end with."""

    def __init__(self, message: str, *, exit_code: int = EXIT_BUILD_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One ``go build`` call: ``output`` is a file name, or "" to name binaries after their packages."""

    label: str
    output: str
    packages: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Kit:
    """Programs that are built from one Go module of ours, whose ``sources`` decide what comes out.

    ``files`` are copied beside the binaries: (module, path in it).  ``stamped`` has the binaries
    report the version of Kubernetes that is pinned.
    """

    name: str
    folder: pathlib.Path
    sources: tuple[str, ...]
    targets: tuple[Target, ...]
    binaries: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()
    stamped: bool = False


# etcd's main package is called "v3", so it needs an output name of its own.  The others share one
# call because the linker is single-threaded and a call links its packages side by side.
CONTROL_PLANE = Kit(
    name="the control plane",
    folder=HERE / "tools",
    sources=("go.mod", "go.sum"),
    targets=(
        Target("etcd", "etcd", ("go.etcd.io/etcd/server/v3",)),
        Target(
            "Kubernetes and KWOK",
            "",
            (
                "k8s.io/kubernetes/cmd/kube-apiserver",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-scheduler",
                "k8s.io/kubernetes/cmd/kubectl",
                "sigs.k8s.io/kwok/cmd/kwok",
            ),
        ),
    ),
    binaries=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"),
    stamped=True,
)

_OPERATOR = "github.com/kubeflow/training-operator"
PYTORCH_CRD = "kubeflow.org_pytorchjobs.yaml"
TRAINING_OPERATOR = Kit(
    name="the training operator",
    folder=HERE / "training-operator",
    sources=("go.mod", "go.sum", "main.go"),
    targets=(Target("the training operator", "training-operator", (".",)),),
    binaries=("training-operator",),
    files=((_OPERATOR, f"manifests/base/crds/{PYTORCH_CRD}"),),
)


def cache_root(environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """Return the folder that all control plane builds share; it need not exist."""
    own = environ.get("LSTQUEUE_CACHE")
    if own:
        return pathlib.Path(own).expanduser().absolute() / "controlplane"
    # The XDG specification says that an empty variable counts as unset.
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return pathlib.Path(base).expanduser().absolute() / "lstqueue" / "controlplane"


def build_flags(kit: Kit = CONTROL_PLANE) -> tuple[str, ...]:
    """Return the ``go build`` flags that shape the binaries, the reported Kubernetes version included."""
    if not kit.stamped:
        return ("-trimpath", "-ldflags=-s -w")
    pinned = re.search(r"^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", _read(kit, "go.mod"), re.MULTILINE)
    if pinned is None:
        raise BuildError(f"{kit.folder / 'go.mod'} does not pin k8s.io/kubernetes")
    # Without these the API server would call itself v0.0.0-master, and refuse emulated versions.
    stamps = zip(("gitVersion", "gitMajor", "gitMinor"), pinned.groups(), strict=True)
    stamped = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps)
    return ("-trimpath", f"-ldflags=-s -w {stamped}")


def directory(environ: Mapping[str, str] = os.environ, *, kit: Kit = CONTROL_PLANE) -> pathlib.Path:
    """Return where the binaries of the pinned versions belong, whether or not they are built."""
    digest = hashlib.sha256()
    for part in (*(_read(kit, name) for name in kit.sources), *build_flags(kit)):
        digest.update(part.encode())
        digest.update(b"\0")
    return cache_root(environ) / digest.hexdigest()[:16]


def is_complete(binaries: pathlib.Path, *, kit: Kit = CONTROL_PLANE) -> bool:
    """Say whether every binary is in place."""
    copied = all((binaries / pathlib.Path(path).name).is_file() for _, path in kit.files)
    return copied and all(os.access(binaries / name, os.X_OK) for name in kit.binaries)


def ensure(kit: Kit = CONTROL_PLANE) -> pathlib.Path:
    """Build what is missing and return the folder with the binaries.

    Safe to call from several processes at once: one builds, the others wait for it.
    """
    final = directory(kit=kit)
    if is_complete(final, kit=kit):
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with _locked(final.with_suffix(".lock")):
        if not is_complete(final, kit=kit):
            _check_go(kit)
            _build(kit, final)
    return final


def _read(kit: Kit, name: str) -> str:
    return (kit.folder / name).read_text(encoding="utf-8")


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    # The kernel drops a flock with its holder, so a killed build never leaves a stale lock behind.
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another build to finish")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _go_environment() -> dict[str, str]:
    # A go.work in some parent folder would replace the pinned versions.
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def _check_go(kit: Kit) -> None:
    wanted = re.search(r"^go (\d+\.\d+)", _read(kit, "go.mod"), re.MULTILINE)
    version = wanted.group(1) if wanted else "1.26"
    remedy = f"install Go >= {version} (https://go.dev/doc/install) and put it on PATH"
    if shutil.which("go") is None:
        raise BuildError(f"{kit.name} is built with Go, which was not found: {remedy}", exit_code=EXIT_NO_GO)
    # Asked inside the module: an older Go either fetches the toolchain it names or refuses here.
    probe = subprocess.run(
        ["go", "list", "-m"],
        cwd=kit.folder,
        env=_go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        raise BuildError(f"this Go cannot build {kit.name}: {remedy}\n{probe.stderr}", exit_code=EXIT_NO_GO)


def _build(kit: Kit, final: pathlib.Path) -> None:
    # Renaming a sibling is atomic, so a reader sees all the binaries or none.
    partial = final.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    _say(f"building {kit.name} into {final}; a first build downloads modules and takes minutes")
    for target in kit.targets:
        _go_build(kit, target, partial)
    for module, path in kit.files:
        shutil.copyfile(_module(kit, module) / path, partial / pathlib.Path(path).name)
    if not is_complete(partial, kit=kit):
        raise BuildError(f"go build succeeded without producing every binary in {partial}")
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def _module(kit: Kit, module: str) -> pathlib.Path:
    """Return where the cache of Go modules has a module, which the build has put there."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    asked = subprocess.run(
        command, cwd=kit.folder, env=_go_environment(), capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise BuildError(f"go list found no {module}: {asked.stderr.strip()}")
    return pathlib.Path(asked.stdout.strip())


def _go_build(kit: Kit, target: Target, partial: pathlib.Path) -> None:
    began = time.monotonic()
    _say(f"building {target.label} ...")
    # The trailing separator tells go that the output is a folder.
    output = f"{partial}{os.sep}{target.output}"
    command = ["go", "build", *build_flags(kit), "-o", output, *target.packages]
    done = subprocess.run(command, cwd=kit.folder, env=_go_environment(), stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise BuildError(f"building {target.label} failed (go build ended with {done.returncode})")
    _say(f"built {target.label} in {time.monotonic() - began:.0f} s")


def main() -> int:
    """Build and print the folders; return the exit code."""
    try:
        for kit in (CONTROL_PLANE, TRAINING_OPERATOR):
            print(ensure(kit))
    except BuildError as error:
        _say(f"error: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
