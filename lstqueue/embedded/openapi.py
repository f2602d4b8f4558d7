"""OpenAPI: schemas of our own kinds for `kubectl explain`, and as much of the rest as kubectl looks for.

Version 3 has a document per group. Our kinds have the schema of their CustomResourceDefinition there;
built-in kinds have their metadata only, since their schemas would be larger than this server. Version 2 is an
empty document: kubectl asks for it in protobuf when version 3 leaves a question open, and goes on without.
"""

from __future__ import annotations

from functools import lru_cache

from lstqueue.api import schema
from lstqueue.embedded import kinds
from lstqueue.kube import port

PREFIX = "/openapi/v3/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}

_OBJECT_META = {
    "description": "What every object has: its names, labels and history.",
    "type": "object",
    "properties": {
        "name": {**_TEXT, "description": "Unique among the objects of a kind in a namespace. Never changes."},
        "generateName": {
            **_TEXT,
            "description": "Start of a name that the server completes when no name is given.",
        },
        "namespace": {**_TEXT, "description": "Where it is; empty for kinds without namespaces."},
        "labels": {**_TEXTS, "description": "What selectors choose by."},
        "annotations": {**_TEXTS, "description": "What tools note down; no selector reads them."},
        "finalizers": {
            "type": "array",
            "items": _TEXT,
            "description": "While there are any, a deleted object stays.",
        },
        "ownerReferences": {
            "type": "array",
            "items": {"type": "object"},
            "description": "It is removed when all of these are.",
        },
        "uid": {**_TEXT, "description": "Set by the server: tells objects of the same name apart."},
        "resourceVersion": {**_TEXT, "description": "Set by the server: changes with every write."},
        "generation": {"type": "integer", "description": "Set by the server: counts changes of the spec."},
        "creationTimestamp": {**_TEXT, "format": "date-time", "description": "Set by the server."},
        "deletionTimestamp": {
            **_TEXT,
            "format": "date-time",
            "description": "Set by the server once it was deleted and while something holds it.",
        },
    },
}


def version_2(info: port.Object) -> port.Object:
    """The document at /openapi/v2."""
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}


def index() -> port.Object:
    """The document at /openapi/v3: where each group's is."""
    paths = {_group_path(kind) for kind in kinds.KINDS.values()}
    return {"paths": {path: {"serverRelativeURL": PREFIX + path} for path in sorted(paths)}}


def version_3(group_path: str, info: port.Object) -> port.Object | None:
    """One group's document; None when there is no such group."""
    chosen = [kind for kind in kinds.KINDS.values() if _group_path(kind) == group_path]
    if not chosen:
        return None
    paths: port.Object = {}
    schemas: port.Object = {_META: _OBJECT_META}
    for kind in chosen:
        resource = kind.resource
        collection, one = resource.path("{namespace}"), resource.path("{namespace}", "{name}")
        paths[collection] = {verb: _operation(kind) for verb in ("get", "post")}
        paths[one] = {verb: _operation(kind) for verb in ("get", "put", "delete")} | {"patch": _patch(kind)}
        schemas[_name(kind)] = _schema(kind)
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _group_path(kind: kinds.Kind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _identity(kind: kinds.Kind) -> port.Object:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operation(kind: kinds.Kind) -> port.Object:
    return {"responses": {}, "x-kubernetes-group-version-kind": _identity(kind)}


def _patch(kind: kinds.Kind) -> port.Object:
    """PATCH, which kubectl asks two things: can the server validate, and which patches does it take.

    Without the parameter kubectl insists on validating by itself, in protobuf. Strategic merge patches are
    taken for built-in kinds but not announced: kubectl would then compute them from the schemas that are not
    here, and falls back to what it was built with otherwise.
    """
    parameter = {"name": "fieldValidation", "in": "query", "schema": _TEXT}
    formats = ("application/json-patch+json", "application/merge-patch+json")
    content = {media: {"schema": {"type": "object"}} for media in formats}
    return {**_operation(kind), "parameters": [parameter], "requestBody": {"content": content}}


def _name(kind: kinds.Kind) -> str:
    resource = kind.resource
    if kind.custom:
        domain = ".".join(reversed(resource.group.split(".")))
        return f"{domain}.{resource.version}.{resource.kind}"
    return f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{resource.version}.{resource.kind}"


@lru_cache(maxsize=64)
def _own_schema(kind: str) -> port.Object:
    return schema.openapi(kind)


def _schema(kind: kinds.Kind) -> port.Object:
    if kind.own:
        found: port.Object = dict(_own_schema(kind.resource.kind))
    else:
        found = {
            "type": "object",
            "description": "A kind of somebody else's. The embedded API describes its metadata only; its own "
            "reference has its fields.",
        }
    properties = {
        "apiVersion": {**_TEXT, "description": "Group and version of the kind."},
        "kind": {**_TEXT, "description": "Name of the kind."},
        "metadata": {
            "description": "What every object has: its names, labels and history.",
            "allOf": [{"$ref": f"#/components/schemas/{_META}"}],
            "default": {},
        },
    }
    found["properties"] = {**found.get("properties", {}), **properties}
    found["x-kubernetes-group-version-kind"] = [_identity(kind)]
    return found
