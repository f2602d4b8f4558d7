"""Percentages: what can be written, what comes of it, and that it reads back."""

from __future__ import annotations

import pytest

from lstqueue.api import errors, percents


@pytest.mark.parametrize(
    ("text", "ppm"),
    [("0%", 0), ("5%", 50_000), ("2.5%", 25_000), ("0.0001%", 1), ("99.9999%", 999_999), ("100%", 1_000_000)],
)
def test_a_percentage_is_read_exactly_and_written_as_it_was(text: str, ppm: int) -> None:
    assert percents.parse(text) == ppm
    assert percents.format(ppm) == text


@pytest.mark.parametrize(
    "text", ["", "5", "0.05", "101%", "100.01%", "-1%", "5 %", "5%\n", ".5%", "0.00001%"]
)
def test_what_is_no_percentage_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(errors.BadValueError, match="is not a percentage") as caught:
        percents.parse(text)
    assert '"5%"' in caught.value.remedy


def test_a_longer_form_reads_back_shorter() -> None:
    assert percents.format(percents.parse("05.50%")) == "5.5%"
