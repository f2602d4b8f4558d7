"""What a snapshot must not contradict itself in, so that everything else may rely on it.

Refused with the name of the object and the field; nothing is put right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from lstqueue.engine import model

Thing = TypeVar("Thing")


def check(jobs: Iterable[model.Job]) -> None:
    """Refuse jobs that contradict themselves.

    Raises:
        ValueError: Names the object, the field and what it should be.
    """
    for job in jobs:
        if not job.groups:
            raise ValueError(f"jobs[{job.uid}].groups is empty; a gang has at least one group")
        for group in job.groups:
            if group.count < 1:
                raise ValueError(
                    f"jobs[{job.uid}].groups[{group.name}].count is {group.count}; give 1 or more"
                )
        for part in job.assigned:
            if not 0 <= part.group < len(job.groups):
                raise ValueError(
                    f"jobs[{job.uid}].assigned.group is {part.group}; it must be 0 to {len(job.groups) - 1}"
                )


def named(kind: str, things: Collection[Thing], key: Callable[[Thing], str]) -> dict[str, Thing]:
    """Things in the order of their names.

    Raises:
        ValueError: A name appears twice.
    """
    names = list(map(key, things))
    found = dict(zip(names, things, strict=True))
    if len(found) < len(things):
        raise ValueError(f"{kind}: {Counter(names).most_common(1)[0][0]} appears twice; give it once")
    ordered = sorted(names)
    return found if ordered == names else {name: found[name] for name in ordered}
