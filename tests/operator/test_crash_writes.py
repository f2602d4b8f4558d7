"""Trouble at any one write of the operator, in every scenario: it ends as without, and breaks nothing.

Every fifth write of each scenario gets one kind of trouble, the kinds in turn; `test_crash_matrix` has all
writes with all kinds.
"""

from __future__ import annotations

import crash_scenarios
import pytest
import sweeps
import trouble

KINDS = tuple(trouble.KINDS)


@pytest.mark.parametrize("name", crash_scenarios.SCENARIOS)
def test_trouble_at_each_write_changes_no_end(name: str) -> None:
    place = list(crash_scenarios.SCENARIOS).index(name)

    def kind_of(number: int) -> str:
        return KINDS[(place + number // 5) % len(KINDS)]

    lag = 0.0 if place % 2 else sweeps.LAG
    found = sweeps.sweep(crash_scenarios.SCENARIOS[name], kind_of, first=1 + place % 5, step=5, lag=lag)
    assert found == []
