"""The labels of namespaces, and the DeadlineJobs in each: an edit of one concerns those in it alone.

A label names the default queue of what names none, and queues choose namespaces by them. Never calls the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lstqueue.api import names


class Namespaces:
    """Labels by name of a namespace, and the UIDs of its DeadlineJobs."""

    def __init__(self) -> None:
        self._labels: dict[str, dict[str, str]] = {}
        self._jobs: dict[str, dict[str, None]] = {}

    def apply(self, event: str, raw: Mapping[str, Any]) -> bool:
        """Take in a namespace; return whether its labels have changed."""
        name = raw["metadata"]["name"]
        known = self._labels.get(name)
        if event == "DELETED":
            self._labels.pop(name, None)
        else:
            self._labels[name] = dict(raw["metadata"].get("labels") or {})
        return self._labels.get(name) != known

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace, none where it is not known."""
        return self._labels.get(name, {})

    def default_queue(self, name: str) -> str:
        """Return the queue of what names none there, "" for none."""
        return self.labels(name).get(names.LABEL_DEFAULT_QUEUE, "")

    def enter(self, name: str, uid: str) -> None:
        """Note that a DeadlineJob is in a namespace."""
        self._jobs.setdefault(name, {})[uid] = None

    def leave(self, name: str, uid: str) -> None:
        """Note that a DeadlineJob is gone."""
        there = self._jobs.get(name, {})
        there.pop(uid, None)
        if not there:
            self._jobs.pop(name, None)

    def jobs(self, name: str) -> Iterable[str]:
        """Return the UIDs of the DeadlineJobs in a namespace."""
        return self._jobs.get(name, ())
