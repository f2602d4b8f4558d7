"""What the demo tells of a run, from lives that are written down here."""

import pytest

from lstqueue.api import durations
from lstqueue.demo import meter, mix, story, trace, trouble
from lstqueue.embedded import clock

HOUR = durations.HOUR
NOON = clock.DEFAULT_EPOCH_MS + 12 * HOUR


def ask(number: int, *, deadline: int | None = None) -> mix.Ask:
    return mix.Ask(trace.TraceJob(number, 0, 16, HOUR, 0), mix.Kind.INLINE, deadline, None)


def life(number: int, *changes: tuple[int, str], made_for: str = "") -> meter.Life:
    """A job with UID `u<number>`; times of changes are seconds after noon."""
    found = meter.Life(f"u{number}", f"trace-{number:03}", NOON)
    for seconds, phase in changes:
        whom = made_for if phase == "Suspending" else ""
        found.changes.append(meter.Change(NOON + seconds * 1000, phase, made_for=whom))
    return found


def told(
    *lives: meter.Life, loss: trouble.Loss | None = None, crash: trouble.Crash | None = None
) -> list[str]:
    asks = [ask(0, deadline=NOON + 26 * HOUR), ask(1), ask(2), ask(3)]
    return list(story.tell(asks, {one.uid: one for one in lives}, loss, crash))


def test_the_claim_with_the_most_victims_is_told() -> None:
    urgent = life(0, (0, "Pending"), (60, "Claiming"), (90, "Admitted"), (95, "Running"))
    victims = [
        life(number, (0, "Running"), (61, "Suspending"), (70, "Pending"), (7200, "Running"), made_for="u0")
        for number in (1, 2)
    ]
    single = life(3, (0, "Running"), (10, "Suspending"), made_for="u1")
    assert told(urgent, *victims, single) == [
        "day 1 12:01  trace-000 (16 GPUs, due day 2 14:00) takes the room of trace-001 and trace-002 and "
        "runs 35 s later; they run again by day 1 14:00"
    ]


def test_a_lost_node_and_what_became_of_those_on_it() -> None:
    loss = trouble.Loss("node-0007", NOON, ("u1",), back=NOON + 6 * HOUR)
    hit = life(1, (-60, "Running"), (50, "Suspending"), (51, "Pending"), (300, "Admitted"), (301, "Running"))
    assert told(hit, loss=loss) == [
        "day 1 12:00  node-0007 falls silent under trace-001 (16 GPUs): suspended 50 s later, running again "
        "4 min after that",
        "day 1 18:00  node-0007 is back",
    ]


def test_a_killed_operator_and_how_its_successor_goes_on() -> None:
    crash = trouble.Crash(NOON, (("u0", "Claiming"), ("u1", "Suspending")), back=NOON + 20_000)
    claimer = life(0, (-1, "Claiming"), (24, "Admitted"))
    victim = life(1, (-1, "Suspending"), (23, "Pending"))
    assert told(claimer, victim, crash=crash) == [
        "day 1 12:00  the operator is killed between two writes, 2 jobs half-way (1 taking the room of "
        "others, 1 leaving it); the next one comes after 20 s and has carried them on within 4 s"
    ]


def test_what_did_not_happen_is_not_told() -> None:
    assert told(life(1, (0, "Running"))) == []


@pytest.mark.parametrize(
    ("ms", "words"),
    [(1, "1 s"), (50_000, "50 s"), (240_000, "4 min"), (7_800_000, "2 h 10 min"), (3 * 24 * HOUR, "3 days")],
)
def test_durations_read_as_people_say_them(ms: int, words: str) -> None:
    assert story.span(ms) == words
