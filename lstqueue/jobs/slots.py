"""Which pod of an existing Job has which place of its admission, and which places are still needed.

The places of an Indexed gang are its completion indexes. Pods of bags and of gangs without indexes have no
rank of their own: they take the free slots in the order of their creation, a finished pod's slot serves the
next, and as fewer completions remain than there are slots, the highest free ones are needed no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lstqueue.jobs import existing, views


@dataclass(frozen=True, slots=True)
class Book:
    """Who has which of `places` places.

    `taken` are the pods that were let go and have not ended, by place, those that leave included. `done` are
    places that need no pod any more. `waiting` are the gated pods that stay, in order of creation. `lacking`
    is how many needed places have neither.
    """

    places: int
    taken: dict[int, views.PodView]
    done: frozenset[int]
    waiting: tuple[views.PodView, ...]
    lacking: int

    @property
    def free(self) -> list[int]:
        """Places that are needed and that nobody has, ascending."""
        return [place for place in range(self.places) if place not in self.taken and place not in self.done]


def book(view: existing.UnitView, pods: Iterable[views.PodView], places: int, *, attempt: int) -> Book:
    """Return how the pods of one Job stand to the `places` of its admission, or to those it would need.

    Pods that were let go in another attempt than this have none of them. A Job may ask for more pods than
    there can be; that many places are booked, and no more than an admission could have.
    """
    places = min(places, views.RANKS)
    ours = [pod for pod in pods if pod.owner == view.uid and (pod.gated or pod.attempt == attempt)]
    present = [pod for pod in ours if not pod.gone]
    taken = {pod.index: pod for pod in present if not pod.gated and 0 <= pod.index < places}
    waiting = tuple(sorted((pod for pod in present if pod.gated and not pod.deleting), key=_creation))
    if view.ranked:
        through = {pod.index for pod in ours if view.by_pods and pod.succeeded}
        done = frozenset(place for place in (view.done | through) if 0 <= place < places)
        ranks = {pod.index for pod in waiting} | taken.keys() | done
        return Book(places, taken, done, waiting, lacking=places - sum(0 <= rank < places for rank in ranks))
    needed = min(_wanted(view, present), places)
    free = [place for place in range(places) if place not in taken]
    open_ = max(0, needed - len(taken))
    return Book(places, taken, frozenset(free[open_:]), waiting, lacking=max(0, open_ - len(waiting)))


class Books:
    """The book of one Job, made anew only when what it is made of has changed.

    It costs a look at all pods, and is asked for several times for each of their events.
    """

    def __init__(self) -> None:
        self._of: tuple[existing.UnitView, tuple[views.PodView, ...], int, int] | None = None
        self._book: Book | None = None

    def book(
        self, view: existing.UnitView, pods: Iterable[views.PodView], places: int, *, attempt: int
    ) -> Book:
        """Return what `book` does."""
        of = (view, tuple(pods), places, attempt)
        # Tuples compare by identity first: projections that are the same are the same objects.
        if self._book is None or of != self._of:
            self._of, self._book = of, book(view, of[1], places, attempt=attempt)
        return self._book


def next_in(view: existing.UnitView, booked: Book) -> list[tuple[int, views.PodView]]:
    """Return the gated pods to let go now, with their places, in the order of the places.

    A gang goes as a whole: not before every place that is needed has its pod. Pods beyond the places, and
    those of ranks that are through, stay gated.
    """
    if view.gang and booked.lacking:
        return []
    if view.ranked:
        open_ = set(booked.free)
        return sorted(((pod.index, pod) for pod in booked.waiting if pod.index in open_), key=_place)
    return list(zip(booked.free, booked.waiting, strict=False))


def movable(view: existing.UnitView, done: frozenset[int]) -> bool:
    """Whether a job may be suspended for others: its pods can come back as they were.

    Not so a gang in which a rank is through (of those `done`), for its others would wait for it for ever;
    unless all of them come back, until that success is the whole gang's. And not a Job without completions of
    which a pod has succeeded: its controller calls it complete when no pod is left.
    """
    if view.by_pods:
        return not view.deciding <= done
    return not view.finished if view.gang or view.total is None else True


def _wanted(view: existing.UnitView, present: list[views.PodView]) -> int:
    """Return how many pods a Job wants at once; one without completions replaces none after a success."""
    if view.total is None and view.succeeded:
        return sum(not pod.deleting for pod in present)
    return view.wanted


def _creation(pod: views.PodView) -> tuple[int, str]:
    return pod.created, pod.name


def _place(pair: tuple[int, views.PodView]) -> int:
    return pair[0]
