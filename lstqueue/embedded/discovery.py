"""What the server says about itself: groups, resources, version, and as much OpenAPI as clients need."""

from __future__ import annotations

from collections.abc import Callable

from lstqueue.embedded import kinds
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
_SUBRESOURCE_VERBS = {"status": ["get", "patch", "update"], "binding": ["create"], "finalize": ["update"]}
_BODY_KINDS = {"binding": "Binding"}


def answer(path: str) -> port.Object | None:
    """The document at a path, or None when the path is not part of discovery."""
    fixed = _FIXED.get(path.rstrip("/"))
    if fixed is not None:
        return fixed()
    parts = path.strip("/").split("/")
    if parts[:2] == ["openapi", "v3"]:
        return _openapi_v3("/".join(parts[2:]))
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
    return {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}


def _openapi_index() -> port.Object:
    paths = {_group_path(kind) for kind in kinds.KINDS.values()}
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted(paths)}}


def _openapi_v3(group_path: str) -> port.Object | None:
    """One group's document: no schemas, only that writes take `fieldValidation`.

    kubectl looks for that parameter; where it is missing it insists on validating by itself, in protobuf.
    """
    chosen = [kind for kind in kinds.KINDS.values() if _group_path(kind) == group_path]
    if not chosen:
        return None
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    paths = {}
    for kind in chosen:
        resource = kind.resource
        identity = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        operation = {
            "parameters": [parameter],
            "responses": {},
            "x-kubernetes-group-version-kind": identity,
        }
        paths[resource.path("{namespace}", "{name}")] = {"patch": operation, "put": operation}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths}


def _group_path(kind: kinds.Kind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


_FIXED: dict[str, Callable[[], port.Object]] = {
    "/api": _versions,
    "/apis": _groups,
    "/version": lambda: dict(VERSION),
    "/openapi/v2": _openapi_v2,
    "/openapi/v3": _openapi_index,
}
