"""Every kind of trouble at every write of every scenario, reports and events included."""

from __future__ import annotations

import crash_scenarios
import pytest
import sweeps
import trouble

from lstqueue.embedded import faults

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", trouble.KINDS)
@pytest.mark.parametrize("name", crash_scenarios.SCENARIOS)
def test_trouble_at_each_write_changes_no_end(name: str, kind: str) -> None:
    assert sweeps.sweep(crash_scenarios.SCENARIOS[name], lambda _: kind, counts=faults.writes) == []


@pytest.mark.parametrize("kind", ["killed after", "in flight", "answer lost", "outrun"])
@pytest.mark.parametrize("name", crash_scenarios.SCENARIOS)
def test_it_changes_none_either_when_events_are_heard_of_late(name: str, kind: str) -> None:
    assert sweeps.sweep(crash_scenarios.SCENARIOS[name], lambda _: kind, lag=sweeps.LAG) == []
