"""The Kubernetes API as lstqueue needs it: a few verbs over plain JSON objects, and the errors they raise.

Two adapters exist: `kube.client` over HTTP, and one in memory beside the embedded API server, so that the
operator's tests need no sockets. Nothing here retries; whoever calls decides that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
"""A Kubernetes object as JSON, or a Status."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind on the wire. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """URL path of a collection or an object; no namespace means all of them."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
DEADLINE_JOBS = Resource("lstqueue.dev", "v1alpha1", "deadlinejobs", "DeadlineJob")
GPU_QUEUES = Resource("lstqueue.dev", "v1alpha1", "gpuqueues", "GPUQueue", namespaced=False)
INTERCONNECTS = Resource("lstqueue.dev", "v1alpha1", "interconnects", "Interconnect", namespaced=False)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a LIST. `continue_token` is empty on the last page."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK. In-stream errors are raised instead."""

    type: str
    object: Object


REASONS = frozenset(
    {
        *("AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError"),
        *("Invalid", "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge"),
        *("ServerTimeout", "ServiceUnavailable", "StoreReadError", "Timeout", "TooManyRequests"),
        *("Unauthorized", "UnsupportedMediaType", "Closed", "ConnectionFailed", "Unreadable"),
    }
)
"""The words of `ApiError.reason` that API servers and our clients use; webhooks find others."""


class ApiError(Exception):
    """The API server refused a request, or no answer came.

    `status` is the HTTP code, 0 when there was none. `reason` is the server's word (`AlreadyExists`, ...).
    """

    def __init__(self, status: int, reason: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class FencedError(Exception):
    """Whoever asks may write nothing any more and has to end; it is no failure of one request."""


class NotFoundError(ApiError):
    """404: the object (or the kind) is not there."""


class ConflictError(ApiError):
    """409: somebody else wrote first, or the name is taken (reason `AlreadyExists`)."""


class GoneError(ApiError):
    """410: the resourceVersion is too old; list again."""


class InvalidError(ApiError):
    """422 or 400: the server will never accept this object."""


class ForbiddenError(ApiError):
    """403: permission, quota or an admission plugin."""


class UnavailableError(ApiError):
    """429, 5xx, or no answer at all: the outcome of a write is unknown unless the status is 429."""


class KubeApi(Protocol):
    """Ten verbs. All raise `ApiError`; objects are plain dicts the caller may keep."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """Return one object."""
        ...

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page:
        """Return one page of a LIST, filtered by the server."""
        ...

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[WatchEvent]:
        """Yield events after `resource_version`, bookmarks included, until the server ends the stream.

        Raises `GoneError` for a 410 in either form.
        """
        ...

    async def create(
        self, resource: Resource, namespace: str | None, body: Object, *, dry_run: bool = False
    ) -> Object:
        """Create an object and return it as the server has it."""
        ...

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Object) -> Object:
        """Apply a merge patch; `metadata.resourceVersion` in the body makes it conditional."""
        ...

    async def patch_status(
        self, resource: Resource, namespace: str | None, name: str, body: Object
    ) -> Object:
        """Apply a merge patch to the status subresource."""
        ...

    async def replace(self, resource: Resource, namespace: str | None, name: str, body: Object) -> Object:
        """Replace an object (PUT)."""
        ...

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        at_once: bool = False,
    ) -> None:
        """Delete an object, only if uid and resourceVersion still match where they are given.

        `at_once` waits for nobody who ought to end it first.
        """
        ...

    async def version(self) -> Mapping[str, str]:
        """Return the server's /version."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
