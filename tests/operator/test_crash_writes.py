"""Trouble at any one write of the operator, in every scenario: it ends as without, and breaks nothing.

Each write of each scenario gets one kind of trouble, the kinds in turn; `test_crash_matrix` has all of them.
"""

from __future__ import annotations

import crash_scenarios
import pytest
import sweeps
import trouble

KINDS = tuple(trouble.KINDS)


@pytest.mark.parametrize("name", crash_scenarios.SCENARIOS)
def test_trouble_at_each_write_changes_no_end(name: str) -> None:
    first = list(crash_scenarios.SCENARIOS).index(name)
    found = sweeps.sweep(
        crash_scenarios.SCENARIOS[name], lambda number: KINDS[(first + number) % len(KINDS)]
    )
    assert found == []
