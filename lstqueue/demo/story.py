"""What is worth telling of a run, in a few lines: a preemption, the lost node, the killed operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from lstqueue.api import durations
from lstqueue.demo import meter as meters
from lstqueue.demo import mix, trouble
from lstqueue.embedded import clock

_DOING = {"Claiming": "taking the room of others", "Suspending": "leaving it", "Admitted": "starting"}

Lives = Mapping[str, meters.Life]
Line = tuple[int, str]


def tell(
    asks: Iterable[mix.Ask], lives: Lives, loss: trouble.Loss | None, crash: trouble.Crash | None
) -> tuple[str, ...]:
    """Return the lines in the order of time; what did not happen has none."""
    by_name = {ask.name: ask for ask in asks}
    lines = [*_preemption(by_name, lives)]
    if loss is not None:
        lines += _loss(loss, by_name, lives)
    if crash is not None:
        lines.append(_crash(crash, lives))
    return tuple(f"{day(at)}  {text}" for at, text in sorted(lines))


def day(at: int) -> str:
    """Return a moment as a day of the run, counted from 1, and a time (UTC)."""
    days, rest = divmod(at - clock.DEFAULT_EPOCH_MS, durations.DAY)
    return f"day {days + 1} {_clock(rest)}"


def span(ms: int) -> str:
    """Return a duration as people say it: "12 s", "4 min", "2 h 10 min", "3 days"."""
    if ms < 2 * durations.MINUTE:
        return f"{max(1, round(ms / durations.SECOND))} s"
    if ms >= 2 * durations.DAY:
        return f"{round(ms / durations.DAY)} days"
    hours, minutes = divmod(round(ms / durations.MINUTE), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _clock(ms: int) -> str:
    hours, minutes = divmod(ms // durations.MINUTE % (24 * 60), 60)
    return f"{hours:02}:{minutes:02}"


def _named(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _last(moments: Iterable[int | None]) -> int | None:
    """Return the latest, None if one of them never came."""
    found = list(moments)
    return None if not found or None in found else max(moment for moment in found if moment is not None)


def _preemption(asks: Mapping[str, mix.Ask], lives: Lives) -> list[Line]:
    """The claim that the most jobs had to leave for, the first of several."""
    left: dict[tuple[str, int], list[tuple[int, meters.Life]]] = {}
    for life in lives.values():
        for change in life.changes:
            if change.made_for in lives:
                claimed = lives[change.made_for].last(change.at, "Claiming")
                left.setdefault((change.made_for, claimed), []).append((change.at, life))
    if not left:
        return []
    (uid, at), victims = min(left.items(), key=lambda item: (-len(item[1]), item[0][1]))
    claimer = lives[uid]
    ask = asks[claimer.name]
    due = "" if ask.deadline is None else f", due {day(ask.deadline)}"
    names = _named([life.name for _, life in sorted(victims, key=_moment)])
    text = f"{claimer.name} ({ask.job.gpus} GPUs{due}) takes the room of {names}"
    ran = claimer.since(at, "Running")
    if ran is not None:
        text += f" and runs {span(ran - at)} later"
    back = _last(life.since(when, "Running") for when, life in victims)
    if back is not None:
        text += f"; they run again by {day(back)}" if len(victims) > 1 else f"; it runs again at {day(back)}"
    return [(at, text)]


def _moment(item: tuple[int, meters.Life]) -> int:
    return item[0]


def _loss(loss: trouble.Loss, asks: Mapping[str, mix.Ask], lives: Lives) -> list[Line]:
    hit = [lives[uid] for uid in loss.hit if uid in lives]
    names = _named([f"{life.name} ({asks[life.name].job.gpus} GPUs)" for life in hit])
    text = f"{loss.node} falls silent under {names}"
    stopped = [(life, life.since(loss.at, "Suspending")) for life in hit]
    moments = [at for _, at in stopped if at is not None]
    if moments:
        text += f": suspended {span(max(moments) - loss.at)} later"
        again = _last(life.since(at, "Running") for life, at in stopped if at is not None)
        if again is not None:
            text += f", running again {span(again - max(moments))} after that"
    lines = [(loss.at, text)]
    if loss.back is not None:
        lines.append((loss.back, f"{loss.node} is back"))
    return lines


def _crash(crash: trouble.Crash, lives: Lives) -> Line:
    counted = Counter(phase for _, phase in crash.half_way)
    doing = ", ".join(f"{counted[phase]} {words}" for phase, words in _DOING.items() if phase in counted)
    jobs = "1 job" if len(crash.half_way) == 1 else f"{len(crash.half_way)} jobs"
    text = f"the operator is killed between two writes, {jobs} half-way ({doing})"
    moved = _last(_moved(lives[uid], phase, crash.at) for uid, phase in crash.half_way)
    if crash.back is not None and moved is not None:
        text += (
            f"; the next one comes after {span(crash.back - crash.at)} and has carried them on within "
            f"{span(moved - crash.back)}"
        )
    return crash.at, text


def _moved(life: meters.Life, phase: str, at: int) -> int | None:
    """When a job first left a phase in which it was at a moment."""
    return next((change.at for change in life.changes if change.at >= at and change.phase != phase), None)
