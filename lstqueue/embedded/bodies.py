"""From the body of a request to the object that is stored: the registry's part of every write.

The order is a real server's: decode and default, admission, system fields, validation. `prepare_creation` and
`prepare_update` run it; the rest checks what a request says against what it is about.
"""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import failures, kinds, metadata, patches, rules
from lstqueue.kube import port


def received(kind: kinds.Kind, namespace: str | None, body: object) -> port.Object:
    """Return a copy of a body whose type and namespace are those of the request.

    Raises:
        port.InvalidError: 400 when the body is of another kind, or of another namespace.
    """
    resource = kind.resource
    if not isinstance(body, dict):
        raise failures.bad_request("the body of the request is not a JSON object")
    for key, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(key, expected) != expected:
            raise failures.bad_request(
                f"the {key} of the provided object ({body[key]}) does not match the request ({expected})"
            )
    new: port.Object = {"apiVersion": resource.api_version, "kind": resource.kind}
    new.update(patches.copy_json({key: value for key, value in body.items() if value is not None}))
    meta = new.setdefault("metadata", {})
    metadata.check_types(meta)
    if resource.namespaced:
        if not namespace:
            raise failures.method("create across all namespaces")
        if meta.setdefault("namespace", namespace) != namespace:
            raise failures.bad_request(
                f"the namespace of the provided object ({meta['namespace']}) does not match the namespace "
                f"sent on the request ({namespace})"
            )
    else:
        meta.pop("namespace", None)
    return new


def check_namespace(kind: kinds.Kind, new: port.Object, reader: rules.Reader) -> None:
    """Refuse to create in a namespace that is missing (404) or going away (403)."""
    if not kind.resource.namespaced:
        return
    namespace = new["metadata"]["namespace"]
    found = reader.find(port.NAMESPACES, None, namespace)
    if found is None:
        raise failures.not_found(port.NAMESPACES, namespace)
    if "deletionTimestamp" in found["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise failures.forbidden(kind.resource, new["metadata"].get("name", ""), why)


def prepare_creation(kind: kinds.Kind, new: port.Object, reader: rules.Reader, *, uid: str) -> None:
    """Default, admit and validate a new object in place.

    Raises:
        port.ApiError: 403 by an admission rule, 422 by validation.
    """
    meta = new["metadata"]
    if not meta.get("name"):
        needed = failures.required("metadata.name", "name or generateName is required")
        raise failures.invalid(kind.resource, "", [needed])
    for key in (
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    ):
        meta.pop(key, None)
    meta["uid"] = uid
    meta["creationTimestamp"] = metadata.timestamp(reader.now_ms())
    if kind.generation:
        meta["generation"] = 1
    else:
        meta.pop("generation", None)
    if kind.status and not kind.keeps_status_on_create:
        new.pop("status", None)
    kind.rules.default(new, None)
    kind.rules.admit(new, reader)
    metadata.drop_empty(meta)
    found = metadata.check(new, kind.rules.name) + kind.rules.check(new, None)
    if found:
        raise failures.invalid(kind.resource, meta["name"], found)


def prepare_update(kind: kinds.Kind, new: port.Object, old: port.Object, *, subresource: str) -> port.Object:
    """Return what an update stores: the new object, with what this endpoint may not write taken from the old.

    Raises:
        port.ApiError: 404 for an unknown subresource, 409, or 422.
    """
    new = dict(new)
    if subresource == "status" and kind.status:
        _keep_all_but_status(kind, new, old)
    elif subresource == "finalize" and subresource in kind.subresources:
        new = {**old, "spec": new.get("spec", {})}
    elif subresource:
        raise failures.no_such_path()
    else:
        for key in kind.ignored:
            _keep(new, old, key)
    meta: dict[str, Any] = dict(new["metadata"])
    new["metadata"] = meta
    found = metadata.carry_over(meta, old["metadata"], kind.resource)
    changed = {key for key in new.keys() | old.keys() if key != "metadata" and new.get(key) != old.get(key)}
    if changed:
        # Defaulting works in place, and what a merge patch left alone is still shared with the stored object.
        part = {key: patches.copy_json(new[key]) for key in changed if key in new}
        kind.rules.default(part, old)
        new.update(part)
    metadata.drop_empty(meta)
    if any(
        meta.get(key) != old["metadata"].get(key)
        for key in ("labels", "annotations", "ownerReferences", "finalizers")
    ):
        metadata.check_types(meta)
        found += metadata.check(new, kind.rules.name)
    if changed and (subresource != "status" or kind.rules.checks_status):
        found += kind.rules.check(new, old)
    if found:
        raise failures.invalid(kind.resource, old["metadata"]["name"], found)
    if kind.generation and any(new.get(key) != old.get(key) for key in changed - {"status"}):
        meta["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def _keep_all_but_status(kind: kinds.Kind, new: port.Object, old: port.Object) -> None:
    meta = dict(old["metadata"])
    sent = new["metadata"]
    for key in ("uid", "resourceVersion"):
        if sent.get(key):
            meta[key] = sent[key]
    if kind.status_metadata:
        for key in ("labels", "annotations"):
            meta.pop(key, None)
            if sent.get(key):
                meta[key] = sent[key]
    for key in list(new):
        if key not in ("status", "metadata"):
            del new[key]
    for key, value in old.items():
        if key not in ("status", "metadata"):
            new[key] = value
    new["metadata"] = meta


def _keep(new: port.Object, old: port.Object, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def check_identity(kind: kinds.Kind, new: port.Object, old: port.Object) -> None:
    """Refuse a patch that turns an object into another kind or gives it another name.

    Raises:
        port.InvalidError: 400.
    """
    metadata.check_types(new.get("metadata"))
    meta: dict[str, Any] = new["metadata"]
    for key in ("apiVersion", "kind"):
        if new.get(key) != old[key]:
            raise failures.bad_request(f"a patch cannot change {key} from {old[key]} to {new.get(key)}")
    for key in ("name", "namespace"):
        there = old["metadata"].get(key)
        if meta.get(key) and meta[key] != there:
            raise failures.bad_request(
                f"the {key} of the object ({meta[key]}) does not match the {key} on the URL ({there})"
            )


def check_preconditions(
    resource: port.Resource, old: port.Object, *, uid: str, resource_version: str
) -> None:
    """Refuse a delete whose preconditions do not hold.

    Raises:
        port.ConflictError: 409.
    """
    meta = old["metadata"]
    for label, wanted, actual in (
        ("UID", uid, meta["uid"]),
        ("ResourceVersion", resource_version, meta["resourceVersion"]),
    ):
        if wanted and wanted != actual:
            why = f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}"
            raise failures.conflict(resource, meta["name"], why)


def bound(old: port.Object, node: str, *, uid: str, now_ms: int) -> port.Object:
    """Return the pod bound to a node.

    Raises:
        port.ConflictError: it is bound, gated, being deleted, or another pod of the same name.
    """
    meta, spec = old["metadata"], old["spec"]
    name = meta["name"]
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise failures.conflict(port.PODS, name, why)
    if "deletionTimestamp" in meta:
        raise failures.conflict(port.PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise failures.conflict(
            port.PODS, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        )
    if spec.get("schedulingGates"):
        raise failures.conflict(port.PODS, name, f"pod {name} has non-empty .spec.schedulingGates")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": metadata.timestamp(now_ms)}
    status = old.get("status", {})
    others = [item for item in status.get("conditions", ()) if item["type"] != "PodScheduled"]
    return {
        **old,
        "spec": {**spec, "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }
