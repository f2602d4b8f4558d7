"""What a node offers and what a pod asks for, as frozen values.

Resources are integers in canonical units: `cpu` in millicores, `memory` and `ephemeral-storage` in bytes,
everything else (GPUs, `pods`) in pieces. A pod always asks for one `pods`, so that pod slots are one more
resource and need no rule of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Resources = tuple[tuple[str, int], ...]
"""Amounts by resource name, sorted by name, no name twice."""

PODS = "pods"
"""The resource of which every pod takes one."""


def resources(amounts: Mapping[str, int]) -> Resources:
    """Return `amounts` in the canonical, hashable form; zero amounts are dropped."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint. `effect`: NoSchedule, PreferNoSchedule or NoExecute; the middle one never matters."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration: an empty key tolerates every key, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node affinity term. Operators: In, NotIn, Exists, DoesNotExist, Gt, Lt.

    `field` is true for `matchFields`, whose only key is `metadata.name`.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


@dataclass(frozen=True, slots=True)
class PodShape:
    """All that decides on which nodes a pod may run; equal shapes fit the same nodes.

    `requests` includes one `pods`. `affinity` holds the required node affinity: the terms are alternatives,
    the requirements of a term must all hold; empty means no constraint.
    """

    requests: Resources
    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node as seen now.

    `used` sums the requests of every bound pod that is neither Succeeded nor Failed, whoever owns it,
    terminating ones included. What admitted jobs hold for pods that are not bound yet is not in it. A
    `suspect` is of a domain in which nodes failed together: it is taken last.
    """

    name: str
    allocatable: Resources
    used: Resources = ()
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False
    suspect: bool = False
