"""What a gang that returns to the queue waits to have written, and what may happen to it before it is."""

import dataclasses

from cases import raw
from cases.lives import Life
from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.operator import returns, writer


class Written:
    """Stands for the writes of statuses: who was to be written, in which version."""

    def __init__(self):
        self.versions = []

    def step(self, record, step, update):
        self.versions.append(record.ledger.version)


def returning():
    """Return a gang whose pods have left, noted to return, and what is to write of it."""
    life = Life().suspending("Preempted", admission=None)
    life.pods = []
    cache, written = caches.Cache(lambda: None), Written()
    cache.apply_ledger("ADDED", life.job)
    record = cache.records[raw.UID]
    record.ledger = life.seen
    noted = returns.Returns(cache, written, writer.Writer(workers=1))
    assert noted.note(record, life.gang(), life.step())
    cache.take_touched()
    return cache, noted, written


def test_a_return_is_written_for_the_state_it_was_noted_for():
    cache, noted, written = returning()
    version = cache.records[raw.UID].ledger.version
    assert noted.write(model.Plan(raw.NOW), {}, lambda _, do: do()) == {raw.UID}
    assert written.versions == [version]


def test_a_return_that_was_noted_before_somebody_wrote_is_looked_at_anew():
    cache, noted, written = returning()
    record = cache.records[raw.UID]
    record.ledger = dataclasses.replace(record.ledger, version=record.ledger.version + 1)
    assert noted.write(model.Plan(raw.NOW), {}, lambda _, do: do()) == {raw.UID}
    assert written.versions == []
    assert raw.UID in cache.take_touched()
    assert record.returning is None
