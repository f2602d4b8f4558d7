"""The labels in which providers and agents say where a node is, from coarse to fine.

The order is theirs as far as they document it, and only breaks ties: `nesting` looks at what contains what.
`{}` stands for a number, which names the level, too; `rising` families count from the top down.
"""

from __future__ import annotations

from dataclasses import dataclass

Key = tuple[str, str]
"""A label, and what its level is called."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Labels of one origin, coarse to fine."""

    name: str
    keys: tuple[Key, ...]

    @property
    def origin(self) -> str:
        """Whose they are, whatever the version."""
        return next((known for known in ORIGINS if self.name.startswith(known)), self.name)


ORIGINS = ("Topograph", "GKE", "EKS", "OCI", "CoreWeave", "Crusoe", "Nebius", "GPU Operator")


def _numbered(prefix: str, level: str, numbers: range) -> tuple[Key, ...]:
    return tuple((f"{prefix}{number}", f"{level}{number}") for number in numbers)


_OCI, _COREWEAVE = "oci.oraclecloud.com/", "backend.coreweave.cloud/"
_OLDER = "network.topology.nvidia.com/"
_OLDEST = "network.topology.kubernetes.io/"
_IB = "ib.coreweave.cloud/"

PLACES: tuple[Key, ...] = (
    ("topology.kubernetes.io/region", "region"),
    ("topology.kubernetes.io/zone", "zone"),
)
"""Told by every cloud; a level only where there are several."""

NETWORKS: tuple[Preset, ...] = (
    Preset("Topograph", _numbered("fabric.topograph.run/tier-", "tier-", range(7, -1, -1))),
    Preset(
        "Topograph 0.x",
        tuple((_OLDER + word, word) for word in ("datacenter", "core", "spine", "leaf", "block")),
    ),
    Preset("Topograph 0.1", tuple((_OLDEST + word, word) for word in ("datacenter", "spine", "block"))),
    Preset(
        "GKE",
        tuple((f"cloud.google.com/gce-topology-{word}", word) for word in ("block", "subblock", "host")),
    ),
    Preset(
        "GKE before 1.31", tuple((f"topology.gke.io/{word}", word) for word in ("cluster", "rack", "host"))
    ),
    Preset("EKS", _numbered("topology.k8s.aws/network-node-layer-", "layer-", range(1, 6))),
    Preset(
        "OCI",
        (
            (_OCI + "rdma.hpc_island_id", "island"),
            (_OCI + "rdma.network_block_id", "block"),
            (_OCI + "rdma.local_block_id", "localblock"),
            (_OCI + "rdma.host_id", "host"),
        ),
    ),
    Preset("OCI host", ((_OCI + "host.network_block_id", "block"), (_OCI + "host.rack_id", "rack"))),
    Preset("CoreWeave", tuple((_COREWEAVE + word, word) for word in ("fabric", "superpod", "leafgroup"))),
    Preset("CoreWeave InfiniBand", tuple((_IB + word, word) for word in ("fabric", "superpod", "leafgroup"))),
    Preset("Crusoe", (("crusoe.ai/ib.partition.id", "partition"), ("crusoe.ai/pod.id", "pod"))),
    Preset("Nebius", _numbered("topologyconf.slurm.nebius.ai/tier-", "tier-", range(7, 0, -1))),
    Preset("Nebius, default prefix", _numbered("topology.nebius.com/tier-", "tier-", range(7, 0, -1))),
)
"""Of several that nodes have, that counts which most nodes have; of equals the first."""

ACCELERATORS: tuple[Preset, ...] = (
    Preset(
        "Topograph",
        (("accelerator.topograph.run/domain", "nvl"), ("accelerator.topograph.run/sub-domain", "nvl-sub")),
    ),
    Preset("GPU Operator", (("nvidia.com/gpu.clique", "nvl"),)),
    Preset("Topograph 0.x", ((_OLDER + "accelerator", "nvl"),)),
    Preset("Topograph 0.1", ((_OLDEST + "accelerator", "nvl"),)),
    Preset("OCI", ((_OCI + "host.gpu_memory_fabric_id", "nvl"),)),
    Preset("CoreWeave", (("ds.coreweave.com/nvlink.domain", "nvl"),)),
    Preset("EKS", (("topology.k8s.aws/ultraserver-id", "nvl"),)),
    Preset("Nebius", (("topologyconf.slurm.nebius.ai/tier-0", "nvl"),)),
    Preset("Nebius, default prefix", (("topology.nebius.com/tier-0", "nvl"),)),
)
"""The same for NVLink domains."""
NO_CLIQUE = "00000000-0000-0000-0000-000000000000"
"""The cluster of `nvidia.com/gpu.clique` where a GPU is in no fabric."""
