"""Command lines of the control plane's programs: what to run and with which flags, never running it.

The plane is real where the project touches it: API server, garbage collection, Jobs, scheduling,
policies.  It is cut short where nothing is at stake: data need not survive a crash of the machine,
there is one replica of everything, and no network beyond loopback.
"""

import dataclasses
import pathlib
from collections.abc import Mapping

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
KUBECTL = "kubectl"

PORTS_NEEDED = 4

# User and group behind each kubeconfig.  The scheduler is held to the role that Kubernetes gives it;
# the others would need roles that the plane does not otherwise want.
IDENTITIES: Mapping[str, tuple[str, str]] = {
    "admin": ("admin", "system:masters"),
    CONTROLLER_MANAGER: ("system:kube-controller-manager", "system:masters"),
    SCHEDULER: ("system:kube-scheduler", "system:authenticated"),
    KWOK: ("kwok", "system:masters"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """A program of the plane: its name, its arguments with the program first, and its environment."""

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the plane keeps its files and which ports it uses; both folders are absolute."""

    directory: pathlib.Path
    binaries: pathlib.Path
    ports: tuple[int, ...]

    @property
    def etcd_url(self) -> str:
        """URL of etcd for clients."""
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def url(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports[2]}"

    @property
    def authority(self) -> pathlib.Path:
        """Certificates to trust; the API server signs one for itself and writes it there."""
        return self.directory / "certificates" / "apiserver.crt"

    @property
    def signing_key(self) -> pathlib.Path:
        """Private key of the service account tokens."""
        return self.directory / "service-accounts.key"

    @property
    def tokens(self) -> pathlib.Path:
        """Bearer tokens of ``IDENTITIES``."""
        return self.directory / "tokens.csv"

    def kubeconfig(self, name: str) -> pathlib.Path:
        """Kubeconfig of an identity."""
        return self.directory / f"{name}.kubeconfig"

    def log(self, name: str) -> pathlib.Path:
        """Output of a program."""
        return self.directory / f"{name}.log"

    def program(self, name: str) -> str:
        """Path of a binary."""
        return str(self.binaries / name)


def etcd(layout: Layout) -> Command:
    """Return the command for etcd."""
    peer = f"http://127.0.0.1:{layout.ports[1]}"
    return Command(
        ETCD,
        (
            layout.program(ETCD),
            "--name=default",
            f"--data-dir={layout.directory / 'etcd'}",
            f"--listen-client-urls={layout.etcd_url}",
            f"--advertise-client-urls={layout.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Survives its own crash, not the machine's, and no longer waits for the disk.
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        ),
    )


def api_server(layout: Layout, *, emulate: str | None) -> Command:
    """Return the command for the API server; ``emulate`` is an older minor version such as "1.34"."""
    argv = (
        layout.program(API_SERVER),
        f"--etcd-servers={layout.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.url.rpartition(':')[2]}",
        f"--cert-dir={layout.authority.parent}",
        # Loopback is no valid address of an endpoint, and nobody looks the API server up.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        # Pods need no default service account in each new namespace first, and new nodes do not start
        # with a taint that the node controller has to lift.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--event-ttl=10m",
        *_emulated(emulate),
    )
    # Memory is cheaper here than CPU: collecting less often saves almost a third of the API server's time.
    return Command(API_SERVER, argv, {"GOGC": "400"})


def controller_manager(layout: Layout, *, emulate: str | None) -> Command:
    """Return the command for the controller-manager."""
    return Command(
        CONTROLLER_MANAGER,
        (
            layout.program(CONTROLLER_MANAGER),
            f"--kubeconfig={layout.kubeconfig(CONTROLLER_MANAGER)}",
            f"--service-account-private-key-file={layout.signing_key}",
            f"--root-ca-file={layout.authority}",
            # Each controller then is somebody, with the role that Kubernetes gives it, to policies as well.
            "--use-service-account-credentials",
            *_emulated(emulate),
            *_alone(),
        ),
    )


def scheduler(layout: Layout, *, emulate: str | None) -> Command:
    """Return the command for the scheduler."""
    return Command(
        SCHEDULER,
        (
            layout.program(SCHEDULER),
            f"--kubeconfig={layout.kubeconfig(SCHEDULER)}",
            *_emulated(emulate),
            *_alone(),
        ),
    )


def kwok(layout: Layout, *, stages: pathlib.Path) -> Command:
    """Return the command for KWOK, which plays the kubelet of every node by the rules in ``stages``."""
    return Command(
        KWOK,
        (
            layout.program(KWOK),
            f"--kubeconfig={layout.kubeconfig(KWOK)}",
            f"--config={stages}",
            "--manage-all-nodes=true",
            f"--server-address=127.0.0.1:{layout.ports[3]}",
            "--node-lease-duration-seconds=40",
            "--cidr=10.244.0.0/16",
        ),
    )


def _alone() -> tuple[str, ...]:
    """Flags for a controller that runs once, serves nobody and is not to be the bottleneck."""
    return ("--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000")


def _emulated(version: str | None) -> tuple[str, ...]:
    return () if version is None else (f"--emulated-version=kube={version}",)
