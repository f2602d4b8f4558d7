import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.api import durations, errors


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1d12h30m", 131_400_000),
        ("90s", 90_000),
        ("1.5h", 5_400_000),
        ("500ms", 500),
        ("0s", 0),
        ("30m1h", 5_400_000),
        ("1h1h", 7_200_000),
        ("0.001s", 1),
        ("0.0001s", 1),
        ("1.0000000001h", None),
        ("1.000000001h", 3_600_001),
        ("99999d", 99_999 * durations.DAY),
        ("100000d", None),
        ("9999999999s", 9_999_999_999_000),
        ("10000000000s", None),
    ],
)
def test_durations_are_read_exactly_and_rounded_up(text, ms):
    if ms is None:
        with pytest.raises(errors.BadValueError, match="too long or too large"):
            durations.parse(text)
    else:
        assert durations.parse(text) == ms


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("90", "no unit"),
        ("1.5", "no unit"),
        ("-1h", "negative"),
        ("1h 30m", "spaces"),
        (" 1h", "spaces"),
        ("1h\n", "spaces"),
        ("1w", "not a duration"),
        ("1H", "not a duration"),
        ("+1h", "not a duration"),
        ("1.h", "not a duration"),
        (".5h", "not a duration"),
        ("1e3s", "not a duration"),
        ("١h", "not a duration"),
        ("1us", "not a duration"),
        ("1h" * 20, "too long"),
        (None, "not a duration"),
        (90, "not a duration"),
        (True, "not a duration"),
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text, problem):
    with pytest.raises(errors.BadValueError, match=problem) as caught:
        durations.parse(text)
    assert "1d12h30m" in caught.value.remedy


def test_zero_is_refused_where_it_makes_no_sense():
    assert durations.parse("0h0.0s") == 0
    with pytest.raises(errors.BadValueError, match="is zero"):
        durations.parse("0h0.0s", positive=True)


def test_a_message_repeats_only_the_beginning_of_a_huge_value():
    with pytest.raises(errors.BadValueError) as caught:
        durations.parse("9" * 1_000_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (1, "1ms"), (1_500, "1s500ms"), (131_400_000, "1d12h30m"), (-5_400_000, "-1h30m")],
)
def test_durations_are_written_in_whole_units(ms, text):
    assert durations.format(ms) == text


@given(st.integers(0, 99_999 * durations.DAY))
def test_what_is_written_is_read_back(ms):
    assert durations.parse(durations.format(ms)) == ms


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from(["d", "h", "m", "s", "ms"])), min_size=1, max_size=6
    )
)
def test_parts_add_up_in_any_order(parts):
    units = {"d": durations.DAY, "h": durations.HOUR, "m": durations.MINUTE, "s": durations.SECOND, "ms": 1}
    text = "".join(f"{count}{unit}" for count, unit in parts)
    assert durations.parse(text) == sum(count * units[unit] for count, unit in parts)
