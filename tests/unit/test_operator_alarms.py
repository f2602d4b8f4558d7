"""One alarm for each gang, the earliest; what was replaced, or is gone, does not pile up."""

from lstqueue.operator import alarms


def test_a_gang_is_looked_at_at_the_earliest_of_its_times_and_once():
    made = alarms.Alarms()
    for at in (30, 10, 20):
        made.wake("a", at, {"a"})
    made.wake("b", 15, {"a", "b"})
    assert made.first == 10
    assert made.take(9) == set()
    assert made.take(15) == {"a", "b"}
    assert made.take(1000) == set()
    assert made.first is None


def test_alarms_of_gangs_that_are_gone_are_dropped_before_they_are_many():
    made = alarms.Alarms()
    for number in range(20_000):
        made.wake(f"gone-{number}", 10_000_000 - number, {"here"})
        made.wake("here", 10_000_000 - number, {"here"})
    assert len(made._heap) < 2_500
    assert made.take(10_000_000) >= {"here"}
