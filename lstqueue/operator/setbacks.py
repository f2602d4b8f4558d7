"""What did not go through for a job, and when it is tried again: later after each failure in a row.

The API may have refused, or not answered; or an error of ours kept the job from its next step (`guard`). That
one is told to its user, who may be able to put right what it trips over, and nothing begins for the job until
it is tried again. Everybody else's jobs go on.
"""

from __future__ import annotations

from lstqueue.kube import port
from lstqueue.operator import clocks, guard, records
from lstqueue.operator import settings as all_settings


def put_off(
    record: records.Record, settings: all_settings.Settings, now: int, *, at_least: float = 0.0
) -> None:
    """Put the next write for a job off at `now` (ms), for `at_least` so many seconds."""
    record.failures += 1
    wait = settings.retry_first * 2 ** min(record.failures - 1, 16)
    wait = min(max(wait, at_least), settings.retry_most)
    record.retry_at, record.engine_job = now + int(wait * 1000), None


def put_off_time(record: records.Record, settings: all_settings.Settings, now: int, words: str) -> None:
    """Have nothing of a job brought about by time alone for a while from `now` (ms) on; the rest goes on."""
    wait = min(settings.retry_first * 2 ** min(record.untimely_tries, 16), settings.retry_most)
    record.untimely, record.untimely_until = words, now + int(wait * 1000)
    record.untimely_tries += 1


def untimely(record: records.Record, now: int) -> str:
    """Say why time alone may end nothing of a job at `now` (ms), "" where it may, or that is tried again."""
    return record.untimely if record.untimely_until > now else ""


def timely(record: records.Record) -> None:
    """Forget that the time was not believed."""
    record.untimely, record.untimely_until, record.untimely_tries = "", 0, 0


def clock_moved(record: records.Record) -> None:
    """Forget times that our clock has named before it was set back: they would be long to come."""
    record.retry_at = record.ask_at = record.told_at = record.unready_since = 0
    record.engine_job = None
    timely(record)


def lifted_by_now(record: records.Record, now: int) -> None:
    """Have gates that a clock of ours lifted in the future count as lifted at `now` (ms).

    That they were lifted under its admission must not be forgotten, so the time of that is put right first.
    """
    admission = record.ledger.status.admission
    at = admission.at if admission is not None else 0
    if clocks.beyond(record.ungated_at, now) and not clocks.beyond(at, now):
        record.ungated_at = max(now, at)


def leave_aside(record: records.Record, problem: str) -> None:
    """Note what kept us from a step for a job, and have its user told what is new of that."""
    odd = guard.words(problem)
    if odd != record.odd:
        record.told_at = 0
    record.odd, record.engine_job = odd, None


def try_again(record: records.Record) -> None:
    """Forget what kept us from a step: the next one shows whether it still does."""
    if record.odd:
        record.odd, record.engine_job = "", None


def known_outcome(error: port.ApiError) -> bool:
    """Whether a write that failed has changed nothing for certain, whoever else wrote."""
    return isinstance(error, port.ForbiddenError | port.InvalidError)


def hopeless(error: port.ApiError) -> bool:
    """Whether the same write would fail again at once: what cannot do without it had better give up."""
    return known_outcome(error) or isinstance(error, guard.DefectError)


def may_tell(record: records.Record, now: int) -> bool:
    """Whether words may be written at `now` (ms): what is odd is said at once, though only once."""
    return record.retry_at <= now or (bool(record.odd) and not record.told_at)
