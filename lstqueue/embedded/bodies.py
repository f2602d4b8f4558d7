"""From the body of a request to the object that is stored: the registry's part of every write.

The order is a real server's: decode and default, admission, system fields, validation. `prepare_creation` and
`prepare_update` run it; the rest checks what a request says against what it is about.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
        if kind.custom and not body.get(key):
            raise failures.bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): {key} is missing"
            )
    new: port.Object = {"apiVersion": resource.api_version, "kind": resource.kind}
    new.update(patches.copy_json({key: value for key, value in body.items() if value is not None}))
    meta = new.setdefault("metadata", {})
    _check_types(new)
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
    with _readable(kind):
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
    new = _writable(kind, new, old, subresource)
    # A caller in process may go on using the lists in its patch.
    meta: dict[str, Any] = patches.copy_json(new["metadata"])
    new["metadata"] = meta
    found = metadata.carry_over(meta, old["metadata"], kind.resource)
    changed = {key for key in new.keys() | old.keys() if key != "metadata" and new.get(key) != old.get(key)}
    with _readable(kind):
        if changed:
            # Defaults are filled in in place; what a merge patch left alone is shared with the old object.
            part = {key: patches.copy_json(new[key]) for key in changed if key in new}
            kind.rules.default(part, old)
            new.update(part)
        metadata.drop_empty(meta)
        found += metadata.check_change(new, old, kind.rules.name)
        if changed and (subresource != "status" or kind.rules.checks_status):
            found += kind.rules.check(new, old)
    if found:
        raise failures.invalid(kind.resource, old["metadata"]["name"], found)
    if kind.generation and any(new.get(key) != old.get(key) for key in changed - {"status"}):
        meta["generation"] = old["metadata"].get("generation", 0) + 1
    return new


@contextlib.contextmanager
def _readable(kind: kinds.Kind) -> Iterator[None]:
    """Refuse a body in which a field has another JSON type than its kind says.

    A real server fails to decode such a body. Here nothing decodes it: the rules read raw JSON and stumble.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        message = f"the object cannot be decoded as {kind.resource.kind}: {type(error).__name__}: {error}"
        raise failures.bad_request(message) from error


def _writable(kind: kinds.Kind, new: port.Object, old: port.Object, subresource: str) -> port.Object:
    """The new object, with the old one's value of everything that this endpoint does not write."""
    if subresource == "status" and kind.status:
        new = dict(new)
        _keep_all_but_status(kind, new, old)
        return new
    if subresource == "finalize" and subresource in kind.subresources:
        return {**old, "spec": new.get("spec", {})}
    if subresource:
        raise failures.no_such_path()
    new = dict(new)
    for key in kind.ignored:
        _keep(new, old, key)
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


def check_identity(kind: kinds.Kind, new: object, old: port.Object) -> None:
    """Refuse a patch that turns an object into another kind or gives it another name.

    Raises:
        port.InvalidError: 400 or 422.
    """
    if not isinstance(new, dict):
        raise failures.unprocessable("the patch leaves no object")
    _check_types(new)
    meta: dict[str, Any] = new["metadata"]
    for key in ("apiVersion", "kind"):
        if new.get(key) != old[key]:
            raise failures.unprocessable(
                f"patch: Invalid value: {key} changes from {old[key]} to {new.get(key)}"
            )
    for key in ("name", "namespace"):
        there = old["metadata"].get(key)
        if meta.get(key) and meta[key] != there:
            raise failures.bad_request(
                f"the {key} of the object ({meta[key]}) does not match the {key} on the URL ({there})"
            )


def _check_types(new: port.Object) -> None:
    metadata.check_types(new.get("metadata"))
    for key in ("spec", "status"):
        if not isinstance(new.get(key, {}), dict):
            raise failures.bad_request(f"{key} must be an object")


def check_preconditions(
    resource: port.Resource, old: port.Object, *, uid: str = "", resource_version: str = ""
) -> None:
    """Refuse a write whose preconditions do not hold.

    Raises:
        port.ConflictError: 409.
    """
    meta = old["metadata"]
    for label, wanted, actual in (
        ("UID", uid, meta["uid"]),
        ("ResourceVersion", resource_version, meta["resourceVersion"]),
    ):
        if wanted and wanted != actual:
            why = (
                f"the {label} in the precondition ({wanted}) does not match the {label} in record ({actual})"
            )
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
