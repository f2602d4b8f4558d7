"""What the server says about itself: groups, resources, version, and where to find its schemas."""

from __future__ import annotations

from collections.abc import Callable

from lstqueue.embedded import eviction, kinds, openapi, reviews
from lstqueue.kube import port

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+lstqueue",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "embedded/python",
}
"""The Kubernetes version whose behaviour is modelled; a client may parse it, and needs every field."""
_INFO = {"title": "lstqueue embedded API", "version": VERSION["gitVersion"]}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_READ_VERBS = ["get", "list", "watch"]
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "binding": ["create"],
    "eviction": ["create"],
    "finalize": ["update"],
}
_BODIES = {"binding": port.Resource("", "v1", "bindings", "Binding"), "eviction": eviction.RESOURCE}
_RESOURCES = (*(kind.resource for kind in kinds.KINDS.values()), *reviews.RESOURCES)


def answer(path: str) -> port.Object | None:
    """The document at a path, or None when the path is not part of discovery."""
    fixed = _FIXED.get(path.rstrip("/"))
    if fixed is not None:
        return fixed()
    parts = path.strip("/").split("/")
    if path.startswith(openapi.PREFIX):
        return openapi.version_3(path.removeprefix(openapi.PREFIX).rstrip("/"), _INFO)
    if parts[0] == "apis" and len(parts) == 2:
        return _group(parts[1])
    if parts[0] == "apis" and len(parts) == 3:
        return _resources(parts[1], parts[2])
    if parts[0] == "api" and len(parts) == 2:
        return _resources("", parts[1])
    return None


def _versions() -> port.Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _groups() -> port.Object:
    names = sorted({resource.group for resource in _RESOURCES if resource.group})
    groups = []
    for name in names:
        described = _group(name)
        if described is not None:
            groups.append({key: described[key] for key in ("name", "versions", "preferredVersion")})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(name: str) -> port.Object | None:
    versions = sorted({resource.version for resource in _RESOURCES if resource.group == name})
    if not name or not versions:
        return None
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": entries,
        "preferredVersion": entries[0],
    }


def _resources(group: str, version: str) -> port.Object | None:
    chosen = [
        kind
        for kind in kinds.KINDS.values()
        if kind.resource.group == group and kind.resource.version == version
    ]
    rows: list[port.Object] = []
    for kind in chosen:
        rows.append(_row(kind))
        rows.extend(_subresource_row(kind, name) for name in kind.all_subresources)
    asked = [item for item in reviews.RESOURCES if (item.group, item.version) == (group, version)]
    rows.extend(_review_row(resource) for resource in asked)
    if not rows:
        return None
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}


def _row(kind: kinds.Kind) -> port.Object:
    resource = kind.resource
    row: port.Object = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _READ_VERBS if kind.read_only else _VERBS,
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    return row


def _subresource_row(kind: kinds.Kind, name: str) -> port.Object:
    body = _BODIES.get(name, kind.resource)
    foreign = {"group": body.group, "version": body.version} if body.group != kind.resource.group else {}
    return {
        "name": f"{kind.resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": body.kind,
        "verbs": _SUBRESOURCE_VERBS[name],
        **foreign,
    }


def _review_row(resource: port.Resource) -> port.Object:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["create"],
    }


_FIXED: dict[str, Callable[[], port.Object]] = {
    "/api": _versions,
    "/apis": _groups,
    "/version": lambda: dict(VERSION),
    "/openapi/v2": lambda: openapi.version_2(_INFO),
    "/openapi/v3": openapi.index,
}
