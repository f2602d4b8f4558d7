"""Who has no cables to read does not wait for networkx, which takes as long to import as all else."""

import subprocess
import sys

import pytest

LATE = "import sys, {what}; sys.exit('networkx' in sys.modules)"


@pytest.mark.parametrize(
    "what",
    [
        "lstqueue.cli",
        pytest.param("lstqueue.operator.app, lstqueue.topology.contract", marks=pytest.mark.slow),
    ],
)
def test_networkx_is_imported_by_readers_of_cables_alone(what: str) -> None:
    assert subprocess.run([sys.executable, "-c", LATE.format(what=what)], check=False).returncode == 0
