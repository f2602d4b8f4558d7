"""The kinds this server knows, and what distinguishes them on the wire.

A kind is a row: its names for discovery, which subresources it has, which fields a field selector may name,
and the rules that default and validate it. Adding a kind means adding a row; there is no code per kind
outside its rules. Kinds cannot be registered at run time: a CustomResourceDefinition is readable but not
creatable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lstqueue.api import names
from lstqueue.embedded import (
    admission_core,
    admission_cron,
    admission_job,
    admission_own,
    admission_pod,
    admission_pytorch,
    limits,
    quotas,
    resources,
    rules,
)
from lstqueue.kube import port

CONFIG_MAPS = port.CONFIG_MAPS
SERVICE_ACCOUNTS = port.Resource("", "v1", "serviceaccounts", "ServiceAccount")
CRDS = port.Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

_BASE_FIELDS = {"metadata.name": ("metadata", "name"), "metadata.namespace": ("metadata", "namespace")}


def _fields(*dotted: str) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType(_BASE_FIELDS | {name: tuple(name.split(".")) for name in dotted})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    `status` says that /status exists and that the main endpoint ignores the field; `keeps_status_on_create`
    is the exception for Nodes, which kubelets register with a status. `status_metadata`: /status writes
    labels and annotations too, as for built-in kinds. `generation`: metadata.generation counts spec changes.
    `unconditional`: PUT without resourceVersion is allowed. `upsert`: PUT creates. `orphans`: a DELETE that
    states no propagation policy leaves the dependents. `foreign`: somebody else's definition made it.
    """

    resource: port.Resource
    rules: rules.Rules
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    status_metadata: bool = True
    keeps_status_on_create: bool = False
    generation: bool = False
    unconditional: bool = True
    upsert: bool = False
    orphans: bool = False
    read_only: bool = False
    foreign: bool = False
    subresources: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=_fields)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Top-level fields that an update through the main endpoint leaves as they are."""
        if "finalize" in self.subresources:
            return ("status", "spec")
        return ("status",) if self.status else ()

    @property
    def custom(self) -> bool:
        """Whether it is defined by a CustomResourceDefinition; bodies then have to state their kind."""
        return self.own or self.foreign

    @property
    def own(self) -> bool:
        """Whether it is one of lstqueue's, whose definition is here."""
        return self.resource.group == names.GROUP

    @property
    def all_subresources(self) -> tuple[str, ...]:
        """The subresources, status among them."""
        return (("status",) if self.status else ()) + self.subresources

    @property
    def singular(self) -> str:
        """The lower-case name in the singular."""
        return self.resource.kind.lower()


def _own(resource: port.Resource, short: str, *dotted: str) -> Kind:
    return Kind(
        resource,
        admission_own.RULES[resource.kind],
        short_names=(short,),
        categories=("lstqueue",),
        status_metadata=False,
        generation=True,
        unconditional=False,
        fields=_fields(*dotted),
    )


_ROWS = (
    Kind(
        port.PODS,
        admission_pod.RULES,
        short_names=("po",),
        categories=("all",),
        generation=True,
        subresources=("binding", "eviction"),
        fields=_fields("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase"),
    ),
    Kind(
        port.NODES,
        admission_core.NODE,
        short_names=("no",),
        keeps_status_on_create=True,
        fields=_fields("spec.unschedulable"),
    ),
    Kind(port.SERVICES, admission_core.SERVICE, short_names=("svc",), categories=("all",)),
    Kind(
        port.NAMESPACES,
        admission_core.NAMESPACE,
        short_names=("ns",),
        subresources=("finalize",),
        fields=_fields("status.phase"),
    ),
    Kind(
        port.EVENTS,
        admission_core.EVENT,
        short_names=("ev",),
        status=False,
        upsert=True,
        fields=_fields(
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
        ),
    ),
    Kind(CONFIG_MAPS, admission_core.PLAIN, short_names=("cm",), status=False),
    Kind(SERVICE_ACCOUNTS, admission_core.PLAIN, short_names=("sa",), status=False),
    Kind(
        port.JOBS,
        admission_job.RULES,
        categories=("all",),
        generation=True,
        orphans=True,
        fields=_fields("status.successful"),
    ),
    Kind(
        port.CRON_JOBS,
        admission_cron.RULES,
        short_names=("cj",),
        categories=("all",),
        generation=True,
    ),
    Kind(
        port.PYTORCH_JOBS,
        admission_pytorch.RULES,
        status_metadata=False,
        generation=True,
        unconditional=False,
        foreign=True,
    ),
    Kind(port.RESOURCE_QUOTAS, quotas.RULES, short_names=("quota",)),
    Kind(resources.LIMIT_RANGES, limits.LIMIT_RANGE, short_names=("limits",), status=False),
    Kind(resources.RUNTIME_CLASSES, limits.RUNTIME_CLASS, status=False),
    Kind(port.LEASES, admission_core.LEASE, status=False, unconditional=False, upsert=True),
    Kind(
        port.PRIORITY_CLASSES,
        admission_core.PRIORITY_CLASS,
        short_names=("pc",),
        status=False,
        generation=True,
    ),
    Kind(
        CRDS,
        admission_core.PLAIN,
        short_names=("crd", "crds"),
        keeps_status_on_create=True,
        generation=True,
        read_only=True,
    ),
    _own(port.DEADLINE_JOBS, "dj", "spec.queue"),
    _own(port.GPU_QUEUES, "gq"),
    _own(port.INTERCONNECTS, "ic"),
)

KINDS: Mapping[tuple[str, str], Kind] = MappingProxyType(
    {(row.resource.group, row.resource.plural): row for row in _ROWS}
)
"""Every kind by (group, plural)."""
