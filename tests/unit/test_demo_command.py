"""`lstqueue demo` at the terminal: what it refuses before it runs, and how it ends when it cannot go on."""

import json
import multiprocessing
import pathlib
import signal
import subprocess
import sys

import pytest
from click import testing

from lstqueue import cli
from lstqueue.demo import play, processes


def _demo(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["demo", *arguments])


def test_figures_in_a_missing_folder_are_refused_before_the_run(tmp_path: pathlib.Path) -> None:
    result = _demo("--json", str(tmp_path / "nö" / "figures.json"))
    assert result.exit_code == 2
    assert "--json" in result.output
    assert f"folder '{tmp_path / 'nö'}' does not exist; create it" in result.output
    assert "virtual nodes" not in result.output


@pytest.mark.parametrize("name", ["", "x" * 300, "file/figures.json"])
def test_figures_that_cannot_be_written_are_refused_before_the_run(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    result = _demo("--json", f"{tmp_path}/{name}")
    assert result.exit_code == 2
    assert "--json" in result.output
    assert "virtual nodes" not in result.output
    assert (tmp_path / "file").read_text() == "kept"


def test_jobs_that_are_all_too_wide_are_refused() -> None:
    result = _demo("--jobs", "1", "--nodes", "1")
    assert result.exit_code == 2
    assert "needs 16 GPUs, and --nodes 1 makes 8; use --nodes 2 or more" in result.output


def test_a_small_demo_tells_what_it_leaves_out_and_writes_its_figures(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "figures.json"
    result = _demo("--jobs", "3", "--nodes", "1", "--json", str(path))
    assert result.exit_code == 0, result.output
    assert "1 job wider than 8 GPUs is left out" in result.output
    assert "deadlines met" in result.output
    figures = json.loads(path.read_text())
    assert (figures["jobs"], figures["violations"], figures["restarts"]) == (2, 0, 1)
    assert multiprocessing.active_children() == []


def test_ctrl_c_ends_with_130_and_one_line() -> None:
    # A shell that runs the tests in the background lets them, and so the demo, ignore SIGINT.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from lstqueue import cli; cli.main()"
    command = [sys.executable, "-c", program, "demo", "--jobs", "40"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as demo:
        assert demo.stdout is not None
        assert "40 jobs" in demo.stdout.readline()
        demo.send_signal(signal.SIGINT)
        # Its children are killed, but on a busy machine some of them still start.
        _, errors = demo.communicate(timeout=180)
    assert demo.returncode == 130
    assert errors == "interrupted\n"


@pytest.mark.slow
def test_an_interrupt_leaves_no_process() -> None:
    def told(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.play_all([play.Plan("lst", 3, 1, 1), play.Plan("fifo", 40, 8, 1)], told)
    assert multiprocessing.active_children() == []


def test_a_run_that_dies_is_one_clear_error() -> None:
    def told(*_: object) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(processes.RunError, match='the run "lst" died: it was killed'):
        processes.play_all([play.Plan("lst", 40, 8, 1)], told)
    assert multiprocessing.active_children() == []


def test_a_run_that_fails_is_one_clear_error() -> None:
    with pytest.raises(processes.RunError, match=r'the run "bogus" failed: .*order'):
        processes.play_all([play.Plan("bogus", 3, 1, 1)], lambda *_: None)
    assert multiprocessing.active_children() == []


def test_the_list_of_commands_says_all_of_each() -> None:
    _, _, commands = testing.CliRunner().invoke(cli.main, ["--help"]).output.partition("Commands:")
    assert "demo" in commands
    assert "..." not in commands
