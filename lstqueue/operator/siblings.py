"""Labelled jobs below owners that nobody can read: alone each is a unit, together nobody can tell."""

from __future__ import annotations


class Siblings:
    """UIDs of labelled jobs by the UID of the owner at which the walk up from them ended."""

    def __init__(self) -> None:
        self._below: dict[str, set[str]] = {}

    def several(self, owner: str) -> bool:
        """Whether there is more than one below an owner."""
        return len(self._below.get(owner, ())) > 1

    def enter(self, owner: str, job: str) -> frozenset[str]:
        """Note a job below an owner; return whose position that has changed."""
        siblings = self._below.setdefault(owner, set())
        if job in siblings:
            return frozenset()
        siblings.add(job)
        # From the second on they all are in the same position: each later one is alone in having changed.
        return frozenset(siblings if len(siblings) == 2 else {job} if len(siblings) > 2 else ())

    def leave(self, owner: str, job: str) -> frozenset[str]:
        """Note that a job is there no more, or has no label; return whose position that has changed."""
        siblings = self._below.get(owner, set())
        if job not in siblings:
            return frozenset()
        siblings.remove(job)
        if not siblings:
            del self._below[owner]
        return frozenset(siblings if len(siblings) == 1 else ())
