"""What the server says about itself: groups, resources, version, and as much OpenAPI as clients need."""

from __future__ import annotations

from collections.abc import Callable

from lstqueue.embedded import kinds
from lstqueue.kube import port

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+lstqueue",
    "platform": "embedded/python",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_READ_VERBS = ["get", "list", "watch"]
_SUBRESOURCE_VERBS = {"status": ["get", "patch", "update"], "binding": ["create"], "finalize": ["update"]}
_BODY_KINDS = {"binding": "Binding"}


def answer(path: str) -> port.Object | None:
    """The document at a path, or None when the path is not part of discovery."""
    fixed = _FIXED.get(path)
    if fixed is not None:
        return fixed()
    parts = path.strip("/").split("/")
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
    names = sorted({kind.resource.group for kind in kinds.KINDS.values() if kind.resource.group})
    groups = []
    for name in names:
        described = _group(name)
        if described is not None:
            groups.append({key: described[key] for key in ("name", "versions", "preferredVersion")})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(name: str) -> port.Object | None:
    versions = sorted({kind.resource.version for kind in kinds.KINDS.values() if kind.resource.group == name})
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
    if not chosen:
        return None
    rows: list[port.Object] = []
    for kind in chosen:
        rows.append(_row(kind))
        rows.extend(_subresource_row(kind, name) for name in kind.all_subresources)
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
    return {
        "name": f"{kind.resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": _BODY_KINDS.get(name, kind.resource.kind),
        "verbs": _SUBRESOURCE_VERBS[name],
    }


def _openapi_v2() -> port.Object:
    info = {"title": "lstqueue embedded API", "version": VERSION["gitVersion"]}
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}


_FIXED: dict[str, Callable[[], port.Object]] = {
    "/api": _versions,
    "/apis": _groups,
    "/version": lambda: dict(VERSION),
    "/openapi/v2": _openapi_v2,
    "/openapi/v3": lambda: {"paths": {}},
}
