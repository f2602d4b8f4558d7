"""A real Kubernetes control plane as plain processes on loopback, for tests and benchmarks.

``ControlPlane`` runs etcd, the API server, the controller-manager, the scheduler and KWOK, whose
simulated nodes run pods by the rules of ``stages.yaml``.  Everything it writes stays in one folder,
its ports are whatever was free, and it ends only what it started.  It does not build the programs;
``build.py`` does.

Usage: ``with ControlPlane(directory=folder, nodes=4) as plane: plane.kubectl("get", "nodes")``, or
by hand ``python hack/controlplane/stack.py start|stats|stop``.
"""

import argparse
import pathlib
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import build
import stack_access
import stack_commands
import stack_objects
import stack_process
import stack_state

HERE = pathlib.Path(__file__).resolve().parent
STAGES = HERE / "stages.yaml"
READY_WITHIN_S = 60.0


class NotBuiltError(stack_process.ControlPlaneError):
    """The programs are not in the cache."""

    def __init__(self) -> None:
        super().__init__("the control plane is not built; run `python hack/controlplane/build.py` (needs Go)")


class ControlPlane:
    """A control plane that lives as long as the ``with`` block around it.

    ``directory`` must be new, empty or left by an earlier plane, whose files are then replaced.
    ``crds`` are manifests, or folders of them, that are in force before the controllers start: garbage
    collection notices kinds that come later only after half a minute.  ``emulate`` is an older minor
    version of Kubernetes to behave like, such as "1.34".
    """

    def __init__(
        self,
        *,
        directory: pathlib.Path | str,
        nodes: int = 4,
        crds: Iterable[pathlib.Path | str] = (),
        emulate: str | None = None,
    ) -> None:
        self.directory = pathlib.Path(directory).absolute()
        self.timings_ms: dict[str, int] = {}
        self._nodes = nodes
        self._crds = stack_objects.manifests(crds)
        self._emulate = emulate
        self._ports: stack_process.PortReservation | None = None
        self._layout: stack_commands.Layout | None = None
        self._client: stack_access.Client | None = None
        self._commands: dict[str, stack_commands.Command] = {}
        self._processes: dict[str, stack_process.Process] = {}
        self._watch: stack_state.Watch | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def layout(self) -> stack_commands.Layout:
        """Files and ports of the running plane."""
        if self._layout is None:
            raise stack_process.ControlPlaneError("the control plane is not started")
        return self._layout

    @property
    def kubeconfig(self) -> pathlib.Path:
        """Kubeconfig of an administrator."""
        return self.layout.kubeconfig("admin")

    @property
    def url(self) -> str:
        """URL of the API server."""
        return self.layout.url

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl as an administrator and return what it printed.

        Raises:
            ControlPlaneError: it failed; the message holds its error output.
        """
        command = [
            self.layout.program(stack_commands.KUBECTL),
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.directory / 'kubectl-cache'}",
            *args,
        ]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise stack_process.ControlPlaneError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Ask the API server as an administrator; much cheaper than kubectl in a polling loop."""
        if self._client is None:
            raise stack_process.ControlPlaneError("the control plane is not started")
        return self._client.request(method, path, body)

    def kubeconfig_for(self, namespace: str, service_account: str) -> pathlib.Path:
        """Return a kubeconfig of an existing service account, good for an hour, to meet RBAC as it is."""
        path = self.layout.kubeconfig(f"{namespace}.{service_account}")
        token = self.kubectl("create", "token", service_account, f"--namespace={namespace}").strip()
        stack_access.write_kubeconfig(path, url=self.url, authority=self.layout.authority, token=token)
        return path

    def start(self, *, detached: bool = False) -> None:
        """Start everything and return when the nodes are ready.

        A ``detached`` plane runs on when this interpreter ends; otherwise it ends as well.
        """
        binaries = build.directory()
        if not build.is_complete(binaries):
            raise NotBuiltError
        stack_state.claim(self.directory)
        self._ports = stack_process.PortReservation(stack_commands.PORTS_NEEDED)
        self._layout = stack_commands.Layout(
            directory=self.directory, binaries=binaries, ports=self._ports.ports
        )
        began = time.monotonic()
        try:
            if not detached:
                self._watch = stack_state.Watch(self.directory, script=pathlib.Path(__file__).resolve())
            self._write_credentials()
            for step in (self._start_api, self._apply_crds, self._start_controllers, self._add_nodes):
                step()
                self.timings_ms[step.__name__.lstrip("_")] = round((time.monotonic() - began) * 1000)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End what was started; safe to call twice, and after a start that failed."""
        if self._layout is None:
            return
        # Clients go before their servers, or they would fill the logs with complaints.
        stack_process.end_all(reversed(self._processes.values()))
        self._processes.clear()
        self._save()
        if self._ports is not None:
            self._ports.release()
        if self._watch is not None:
            self._watch.close()
        self._layout = self._client = self._ports = self._watch = None

    def kill(self, name: str) -> None:
        """End one program without warning, as a crash would; ``revive`` brings it back."""
        self._processes.pop(name).end()
        self._save()

    def revive(self, name: str) -> None:
        """Start a killed program again, with the same data and on the same port, and wait for the API."""
        self._launch(self._commands[name])
        self._wait(self._api_ready, what="the API server")

    def usage(self) -> list[stack_process.Usage]:
        """Return memory and CPU time of each program that runs."""
        return [used for process in self._processes.values() if (used := process.usage()) is not None]

    def _write_credentials(self) -> None:
        layout = self.layout
        stack_access.write_signing_key(layout.signing_key)
        lines = []
        for name, (user, group) in stack_commands.IDENTITIES.items():
            token = secrets.token_hex(16)
            lines.append(f'{token},{user},{user},"{group}"\n')
            stack_access.write_kubeconfig(
                layout.kubeconfig(name), url=layout.url, authority=layout.authority, token=token
            )
            if name == "admin":
                self._client = stack_access.Client(layout.url, authority=layout.authority, token=token)
        stack_access.write_private(layout.tokens, "".join(lines))

    def _start_api(self) -> None:
        self._launch(stack_commands.etcd(self.layout))
        etcd = stack_access.Client(self.layout.etcd_url)
        self._wait(lambda: etcd.answers("/health"), what="etcd")
        self._launch(stack_commands.api_server(self.layout, emulate=self._emulate))
        self._wait(self._api_ready, what="the API server")

    def _apply_crds(self) -> None:
        if self._crds:
            self.kubectl("apply", "--server-side", *(f"--filename={path}" for path in self._crds))
        self._wait(self._crds_established, what="the custom resource definitions")

    def _start_controllers(self) -> None:
        self._launch(stack_commands.controller_manager(self.layout, emulate=self._emulate))
        self._launch(stack_commands.scheduler(self.layout, emulate=self._emulate))
        self._launch(stack_commands.kwok(self.layout, stages=STAGES))

    def _add_nodes(self) -> None:
        for index in range(self._nodes):
            self.request("POST", "/api/v1/nodes", stack_objects.node(index))
        self._wait(self._nodes_ready, what="the nodes")

    def _launch(self, command: stack_commands.Command) -> None:
        log = self.layout.log(command.name)
        self._commands[command.name] = command
        self._processes[command.name] = stack_process.spawn(
            command.name, command.argv, log=log, environ=command.environ
        )
        self._save()

    def _wait(self, condition: Callable[[], bool], *, what: str) -> None:
        def holds() -> bool:
            for process in self._processes.values():
                if not process.is_alive():
                    tail = stack_process.log_tail(self.layout.log(process.name))
                    raise stack_process.ControlPlaneError(f"{process.name} ended; {tail}")
            return condition()

        stack_process.wait_until(holds, what=what, within_s=READY_WITHIN_S)

    def _api_ready(self) -> bool:
        # The default namespace comes a moment after readiness, and the first test may want it.
        return self._client is not None and all(
            self._client.answers(path) for path in ("/readyz", "/api/v1/namespaces/default")
        )

    def _crds_established(self) -> bool:
        listed = self.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        return all(stack_objects.has_condition(crd, "Established") for crd in listed["items"])

    def _nodes_ready(self) -> bool:
        items = self.request("GET", "/api/v1/nodes")["items"]
        return sum(map(stack_objects.is_schedulable, items)) >= self._nodes

    def _save(self) -> None:
        stack_state.write(self.directory, self._processes.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parse(arguments)
    directory = options.directory.absolute()
    try:
        if options.command == "start":
            _start(directory, nodes=options.nodes, crds=options.crd, emulate=options.emulate)
        elif options.command == "stop":
            if options.after_stdin:
                sys.stdin.read()
            stack_state.stop(directory)
        else:
            _print_usage(directory)
    except NotBuiltError as error:
        print(f"error: {error}", file=sys.stderr)
        return build.EXIT_NO_GO
    except stack_process.ControlPlaneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a local control plane in the background.")
    parser.add_argument("command", choices=("start", "stats", "stop"))
    parser.add_argument("--directory", type=pathlib.Path, default=build.cache_root() / "run")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--crd", action="append", default=[], help="manifest or folder of them; repeatable")
    parser.add_argument("--emulate", help='older minor version to behave like, such as "1.34"')
    parser.add_argument("--after-stdin", action="store_true", help="stop when standard input ends")
    return parser.parse_args(arguments)


def _start(directory: pathlib.Path, *, nodes: int, crds: Sequence[str], emulate: str | None) -> None:
    plane = ControlPlane(directory=directory, nodes=nodes, crds=crds, emulate=emulate)
    plane.start(detached=True)
    print(", ".join(f"{step} at {ms} ms" for step, ms in plane.timings_ms.items()), file=sys.stderr)
    print(f"export KUBECONFIG={plane.kubeconfig}")


def _print_usage(directory: pathlib.Path) -> None:
    for process in stack_state.read(directory):
        print(process.usage() or f"{process.name} has ended")


if __name__ == "__main__":
    sys.exit(main())
