"""The kinds of existing jobs that can be queued, and what the operator asks of each.

An adapter is a module: it reads an object of its kind into the terms of all of them (`existing.UnitView`),
and builds the patches in which the kinds differ. Adding a kind means adding a row here, its controller's
ways to `owners`, and its role to what the operator may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lstqueue.jobs import batch, existing, pytorch
from lstqueue.kube import port

Object = dict[str, Any]


class Adapter(Protocol):
    """One kind; implemented by modules.

    `SUSPENDED_BY` is the field that suspends it and `SIZED_BY` the one that says how many pods it has, for
    messages.
    """

    @property
    def RESOURCE(self) -> port.Resource:  # noqa: N802 - a constant of a module
        """The kind on the wire."""

    @property
    def SUSPENDED_BY(self) -> str:  # noqa: N802 - a constant of a module
        """The field that suspends it."""

    @property
    def SIZED_BY(self) -> str:  # noqa: N802 - a constant of a module
        """The field that says how many pods it has."""

    def unit(self, raw: Mapping[str, Any]) -> existing.UnitView:
        """Project an object of the kind, whatever its user wrote into it."""

    def templates(self, raw: Mapping[str, Any]) -> dict[str, Object]:
        """Return its pod templates by group, in the order of the ranks."""

    def template_path(self, group: str) -> str:
        """Return where the template of a group is, for messages."""

    def probe_pod(self, template: Mapping[str, Any], group: str) -> Object:
        """Build a pod as its controller would, for a dry run."""

    def release(self, view: existing.UnitView, *, job: str, attempt: int) -> Object:
        """Build the patch that lets a suspended one go, its pods gated, for a DeadlineJob's admission."""

    def pod_names(self, view: existing.UnitView) -> frozenset[str]:
        """Return the names that its pods will have, where those are fixed; none where they are not."""

    def end_pods(self, view: existing.UnitView) -> Object | None:
        """Build the patch that has its controller end the pods of one that is over; None where it does so."""

    def suspend(self, view: existing.UnitView, *, ended: str = "") -> Object:
        """Build the patch that suspends it; `ended` says why that is for good."""


ADAPTERS: Mapping[tuple[str, str], Adapter] = {
    (adapter.RESOURCE.api_version, adapter.RESOURCE.kind): adapter for adapter in (batch, pytorch)
}
"""Every kind by API version and kind."""


def of(view: existing.UnitView) -> Adapter:
    """Return the adapter of an existing job."""
    return ADAPTERS[view.api_version, view.kind]


def named(api_version: str, kind: str) -> Adapter:
    """Return the adapter of a kind that a DeadlineJob may refer to. Raises KeyError for any other."""
    return ADAPTERS[api_version, kind]
