"""How much of their work simulated pods have saved, so that the next pod at the same place goes on from it.

Stands in for checkpoints on a shared disk, one file for each Job and completion index; the Jobs that a gang
of ours gets one after the other read each other's. A pod saves what it has done every `sim/checkpoint-every`
and, with `sim/checkpoint-on-term: "true"`, once more when it is asked to leave; not when its node is down. A
pod that follows another spends `sim/restore-for` on loading first. Pods with neither annotation, and those
without Job or index, begin anew each time. The pods of a gang save in step because they start together;
nobody sees to that.
"""

from __future__ import annotations

from lstqueue.api import names
from lstqueue.embedded.controllers import jobpods, pods
from lstqueue.kube import port

_Place = tuple[str, int]


class Progress:
    """Seconds of work saved at each place; an entry is made when the first pod there ends."""

    def __init__(self) -> None:
        self._saved: dict[_Place, float] = {}

    def left(self, pod: port.Object, run_for: float) -> float:
        """Return for how many seconds a pod that starts now will run if all of its work takes `run_for`."""
        place = _place(pod)
        if place not in self._saved:
            return run_for
        return _restore(pod) + max(0.0, run_for - self._saved[place])

    def ended(self, pod: port.Object, ran: float, *, asked: bool) -> None:
        """Note that a pod ends after `ran` seconds; `asked` says that it could save before that."""
        place = _place(pod)
        if place is None:
            return
        useful = max(0.0, ran - _restore(pod)) if place in self._saved else ran
        if not (asked and _on_term(pod)):
            every = pods.seconds(pod, pods.CHECKPOINT_EVERY)
            useful = useful // every * every if every else 0.0
        self._saved[place] = self._saved.get(place, 0.0) + useful


def _on_term(pod: port.Object) -> bool:
    return pods.annotation(pod, pods.CHECKPOINT_ON_TERM) == "true"


def _restore(pod: port.Object) -> float:
    return pods.seconds(pod, pods.RESTORE_FOR) or 0.0


def _place(pod: port.Object) -> _Place | None:
    """Return where a pod saves; None when it saves nothing."""
    if not _on_term(pod) and pods.annotation(pod, pods.CHECKPOINT_EVERY) is None:
        return None
    job, index = pods.controller_of(pod, "Job"), jobpods.index_of(pod)
    if job is None or index is None:
        return None
    labels = pod["metadata"].get("labels") or {}
    gang, group = labels.get(names.LABEL_JOB), labels.get(names.LABEL_GROUP)
    return (f"{gang}/{group}" if gang and group else job["uid"], index)
