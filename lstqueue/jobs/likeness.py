"""What makes two jobs the same work, so that the run times of one say something about the other.

Alike are pods that run the same programs of the same image on the same resources. Left out is what changes
from night to night while the work does not: the tag of an image, every number in a command (dates, run
numbers, seeds, learning rates, ports), environment, volumes and names. Some of these matter, such as a number
of epochs; but nobody can tell which, and a key that is too fine has no history when it is needed, which cost
more in replays (docs/engine.md). Who knows better gives the work a name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.api import names

Object = Mapping[str, Any]

LONGEST = 20_000
"""Characters of commands that are looked at; inline scripts may be of any length."""

SHOWN = 40
"""Characters of a progress that are kept."""

_HASHES = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE)
"""Commits, digests and the like."""
_UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBERS = re.compile(r"[0-9]+(?:[-_.:/TZ]?[0-9]+)*(?:e[-+]?[0-9]+)?", re.IGNORECASE)
"""Numbers, dates, times and versions, with what joins their parts."""
_MONTHS = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?=#|\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is like: 16 hex digits over its pods, how many there are, and how its user tells it apart.

    `owner` is who runs it and `name` what they call it, by labels; a `name` that is empty but given (None is
    not given) says that it is like nothing else. `limit` (ms) is after how much time its own controller ends
    a run, None for never.
    """

    pods: str = ""
    size: str = ""
    owner: str = ""
    name: str | None = None
    limit: int | None = None


UNKNOWN = Work()


def of_groups(raw: Object) -> Work:
    """Return what the groups of a DeadlineJob are like; nobody has judged its spec yet."""
    groups = [_mapping(group) for group in _list(_mapping(raw.get("spec")).get("groups"))]
    if not groups:
        return UNKNOWN
    size = "+".join(str(group.get("replicas", 1)) for group in groups)
    return Work(digest(_mapping(group.get("template")) for group in groups), size)


def of_job(raw: Object) -> Work:
    """Return what a Job is like."""
    spec, seconds = raw["spec"], raw["spec"].get("activeDeadlineSeconds")
    work = Work(
        pods=digest([spec.get("template") or {}]),
        size=f"{spec.get('parallelism', 1)}/{spec.get('completions')}",
        limit=1000 * seconds if seconds else None,
    )
    return labelled(work, raw["metadata"])


def of_roles(
    templates: Mapping[str, Object], roles: Iterable[tuple[str, int]], policy: Object, meta: Object
) -> Work:
    """Return what a job is like whose pods play several roles; `policy` is how it is run."""
    seconds = policy.get("activeDeadlineSeconds")
    work = Work(
        pods=digest(templates.values()),
        size="+".join(str(count) for _, count in roles),
        limit=1000 * seconds if seconds else None,
    )
    return labelled(work, meta)


def labelled(work: Work, meta: Object) -> Work:
    """Return it with what the labels of its object say."""
    labels = meta.get("labels") or {}
    return replace(work, owner=labels.get(names.LABEL_USER, ""), name=labels.get(names.LABEL_HISTORY))


def progress(meta: Object) -> str:
    """Return what an object says of its progress, "" for nothing; not longer than it takes to show it."""
    return str((meta.get("annotations") or {}).get(names.ANNOTATION_PROGRESS, ""))[:SHOWN]


def digest(templates: Iterable[Object]) -> str:
    """Return 16 hex digits over pod templates, as far as run times depend on them; never raises."""
    text = json.dumps([_pod(template) for template in templates], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same(text: str) -> str:
    """Return a text with what changes from night to night left out."""
    text = _NUMBERS.sub("#", _HASHES.sub("#", _UUIDS.sub("#", text[:LONGEST])))
    return _MONTHS.sub("#", text)


def repository(image: str) -> str:
    """Return an image's name without tag and digest; a port of its registry is no tag."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _pod(template: object) -> list[Any]:
    spec = _mapping(_mapping(template).get("spec"))
    return [_container(item) for item in _list(spec.get("containers"))]


def _container(raw: object) -> list[Any]:
    container = _mapping(raw)
    resources = _mapping(container.get("resources"))
    words = [*_list(container.get("command")), "--", *_list(container.get("args"))]
    return [
        repository(str(container.get("image") or "")),
        [same(str(word)) for word in words],
        # A limit alone is a request too, and templates may come with or without the default filled in.
        {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))},
    ]


def _mapping(value: object) -> Object:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
