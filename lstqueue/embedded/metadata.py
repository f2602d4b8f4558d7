"""Rules of `metadata` that hold for every kind: names, labels, what a client may set, what never changes."""

from __future__ import annotations

import random
import re
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from lstqueue.embedded import failures, selectors
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

ANNOTATIONS_MAX_BYTES = 256 * 1024
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMES = {
    "subdomain": (
        re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
        253,
    ),
    "label": (re.compile(_LABEL), 63),
}
_MUTABLE = ("labels", "annotations", "ownerReferences", "finalizers")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_BASE = 58
_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(ms: int) -> str:
    """RFC 3339 in UTC with whole seconds, as metadata has it."""
    return _timestamp_of(ms // 1000)


@lru_cache(maxsize=256)
def _timestamp_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 time."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def generated_name(base: str, rng: random.Random) -> str:
    """A name from generateName: the prefix, shortened if need be, and five random characters."""
    return base[:_GENERATED_BASE] + "".join(rng.choices(_ALPHABET, k=5))


def new_uid(rng: random.Random) -> str:
    """A version 4 UUID from the store's own generator, so that a run can be repeated."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def check(new: port.Object, name_form: str) -> list[Violation]:
    """Problems of a new object's metadata."""
    meta: dict[str, Any] = new["metadata"]
    found = _check_name(meta["name"], name_form)
    found += _check_labels(meta.get("labels"))
    found += _check_annotations(meta.get("annotations"))
    found += _check_owners(meta.get("ownerReferences"))
    found += _check_finalizers(meta.get("finalizers"))
    return found


def check_change(new: port.Object, old: port.Object, name_form: str) -> list[Violation]:
    """Problems of an updated object's metadata; what did not change is not looked at again."""
    meta, before = new["metadata"], old["metadata"]
    if all(meta.get(key) == before.get(key) for key in _MUTABLE):
        return []
    check_types(meta)
    return check(new, name_form)


def _check_name(name: object, form: str) -> list[Violation]:
    pattern, longest = _NAMES[form]
    if not isinstance(name, str) or pattern.fullmatch(name) is None:
        detail = (
            "must consist of lower case alphanumeric characters, '-'"
            + (" or '.'" if form == "subdomain" else "")
            + f", start and end with an alphanumeric character, and be at most {longest} characters"
        )
        return [failures.bad("metadata.name", name, detail)]
    return []


def _check_labels(labels: object) -> list[Violation]:
    found = []
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if selectors.LABEL_KEY.fullmatch(key) is None:
            found.append(failures.bad("metadata.labels", key, "must be a qualified name: [prefix/]name"))
        if not isinstance(value, str) or selectors.LABEL_VALUE.fullmatch(value) is None:
            detail = (
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
                "'.', start and end with an alphanumeric character, and be at most 63 characters"
            )
            found.append(failures.bad("metadata.labels", value, detail))
    return found


def _check_annotations(annotations: object) -> list[Violation]:
    if not isinstance(annotations, dict):
        return []
    found = []
    size = 0
    for key, value in annotations.items():
        if selectors.LABEL_KEY.fullmatch(key.lower()) is None:
            found.append(failures.bad("metadata.annotations", key, "must be a qualified name: [prefix/]name"))
        size += len(key.encode()) + len(str(value).encode())
    if size > ANNOTATIONS_MAX_BYTES:
        found.append(
            Violation(
                "metadata.annotations", "Too long", f"may not be more than {ANNOTATIONS_MAX_BYTES} bytes"
            )
        )
    return found


def _check_owners(owners: object) -> list[Violation]:
    found = []
    controllers = 0
    for index, owner in enumerate(owners if isinstance(owners, list) else ()):
        path = f"metadata.ownerReferences[{index}]"
        found += [
            failures.required(f"{path}.{key}", "must not be empty")
            for key in ("apiVersion", "kind", "name", "uid")
            if not owner.get(key)
        ]
        controllers += owner.get("controller") is True
    if controllers > 1:
        detail = "Only one reference can have Controller set to true"
        found.append(failures.bad("metadata.ownerReferences", controllers, detail))
    return found


def _check_finalizers(finalizers: object) -> list[Violation]:
    return [
        failures.bad("metadata.finalizers", item, "must be a qualified name: [prefix/]name")
        for item in (finalizers if isinstance(finalizers, list) else ())
        if not isinstance(item, str) or selectors.LABEL_KEY.fullmatch(item) is None
    ]


def check_types(meta: object) -> None:
    """Refuse metadata whose fields have the wrong JSON type, which a real server cannot even decode.

    Raises:
        port.InvalidError: 400.
    """
    if not isinstance(meta, dict):
        raise failures.bad_request("metadata must be an object")
    for key in _TEXTS:
        if not isinstance(meta.get(key, ""), str | None):
            raise failures.bad_request(f"metadata.{key} has the wrong type: {type(meta[key]).__name__}")
    for key, kind in (
        ("labels", dict),
        ("annotations", dict),
        ("finalizers", list),
        ("ownerReferences", list),
    ):
        value = meta.get(key)
        if value is not None and not isinstance(value, kind):
            raise failures.bad_request(f"metadata.{key} has the wrong type: {type(value).__name__}")
        if isinstance(value, dict) and not all(isinstance(item, str) for item in value.values()):
            raise failures.bad_request(f"metadata.{key} maps strings to strings")
    if not all(isinstance(owner, dict) for owner in meta.get("ownerReferences") or ()):
        raise failures.bad_request("metadata.ownerReferences is a list of objects")


def carry_over(meta: dict[str, Any], old: dict[str, Any], resource: port.Resource) -> list[Violation]:
    """Fill in what a client may leave out of an update, and refuse changes of what the server owns.

    Args:
        meta: metadata of the new object; belongs to the write and is changed in place.
        old: metadata as stored.
        resource: the kind, for the wording of a refusal.

    Raises:
        port.ConflictError: the resourceVersion of the body is not that of the stored object.
    """
    if meta.get("resourceVersion") not in (None, "", old["resourceVersion"]):
        raise failures.conflict(resource, old["name"])
    found = []
    for key in _IMMUTABLE:
        if meta.get(key) in (None, "") or (key.startswith("deletion") and key in old):
            _put(meta, key, old.get(key))
        elif meta[key] != old.get(key):
            found.append(failures.bad(f"metadata.{key}", meta[key], "field is immutable"))
    for key in ("creationTimestamp", "generation", "resourceVersion", "generateName"):
        _put(meta, key, old.get(key))
    if "deletionTimestamp" in old:
        added = set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added:
            detail = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"{sorted(added)}"
            )
            found.append(failures.forbidden_field("metadata.finalizers", detail))
    return found


def _put(meta: dict[str, Any], key: str, value: object) -> None:
    if value is None:
        meta.pop(key, None)
    else:
        meta[key] = value


def drop_empty(meta: dict[str, Any]) -> None:
    """Leave out empty maps and lists, as the server's encoding does."""
    for key in _MUTABLE:
        if key in meta and not meta[key]:
            del meta[key]
