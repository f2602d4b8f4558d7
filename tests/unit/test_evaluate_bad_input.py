"""Whatever file or option somebody gives `lstqueue evaluate`, it says what is wrong, and destroys nothing."""

from __future__ import annotations

import pathlib

import pytest
from click import testing

from cases import bad_files
from lstqueue import cli

TRACE = "key,submit_ms,duration_ms,gpus\na,0,3600000,8\n"


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def run(trace: pathlib.Path, *arguments: str, command: str = "run") -> testing.Result:
    given = ["evaluate", command, "--trace", f"lstqueue:{trace}", "--deadlines", "none", *arguments]
    result = testing.CliRunner().invoke(cli.main, given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def refused(result: testing.Result, words: str) -> None:
    assert result.exit_code in (1, 2)
    assert words in " ".join(result.output.split()), result.output


@pytest.mark.parametrize(("name", "content", "words"), bad_files.NODES)
def test_broken_nodes_are_refused_in_words(
    trace: pathlib.Path, name: str, content: bytes, words: str
) -> None:
    path = trace.parent / name
    path.write_bytes(content)
    result = run(trace, "--inventory", str(path))
    refused(result, words)
    assert name in result.output


@pytest.mark.parametrize(("name", "content", "words"), bad_files.QUEUES)
def test_broken_queues_are_refused_in_words(
    trace: pathlib.Path, name: str, content: bytes, words: str
) -> None:
    path = trace.parent / name
    path.write_bytes(content)
    refused(run(trace, "--nodes", "1", "--queues", str(path)), words)


@pytest.mark.parametrize(("option", "name", "content"), bad_files.FINE)
def test_how_a_file_is_written_makes_no_difference(
    trace: pathlib.Path, option: str, name: str, content: bytes
) -> None:
    path = trace.parent / name
    path.write_bytes(content)
    nodes = () if option == "--inventory" else ("--nodes", "1")
    result = run(trace, option, str(path), *nodes)
    assert result.exit_code == 0, result.output
    assert "1 of 1" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "{trace}"), "is read, and would be written over; name another file"),
        (("--log", "{trace}"), "is read, and would be written over"),
        (
            ("--json", "{folder}/x", "--log", "{folder}/../{name}/x"),
            "is what --json writes; name",
        ),
        (("--report", "{folder}"), "is a directory"),
        (("--json", ""), "is a folder; name a file in it"),
        (("--json", "{trace}/x"), "does not exist; create it, or name another file"),
        (("--json", "a" * 300 + "/x"), "does not exist; create it"),
        (("--maintenance", "2ms:1ms"), "it must be 60000 ms (1 min) or more"),
        (("--best-effort", "nan"), "'nan' is not a number that can be"),
        (("--drains", "1e999"), "is not a number that can be"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_lost(
    trace: pathlib.Path, arguments: tuple[str, ...], words: str
) -> None:
    places = {"trace": trace, "folder": trace.parent, "name": trace.parent.name}
    refused(run(trace, "--nodes", "1", *[one.format(**places) for one in arguments]), words)
    assert trace.read_text() == TRACE


@pytest.mark.parametrize("option", ["--json", "--log", "--report"])
def test_a_full_disk_is_said_by_the_name_of_the_file(trace: pathlib.Path, option: str) -> None:
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    refused(run(trace, "--nodes", "1", option, "/dev/full"), "/dev/full: cannot be written: No space left")


def test_a_window_that_never_lets_anybody_in_ends_the_replay(trace: pathlib.Path) -> None:
    path = trace.parent / "q.yaml"
    window = '{name: d, schedule: "0 8 * * *", zone: Etc/UTC, duration: 23h30m}'
    path.write_text(f"queues: [{{name: a, gpus: 8, windows: [{window}]}}]")
    result = run(trace, "--nodes", "1", "--queues", str(path))
    assert result.exit_code == 0, result.output
    assert "1 job was left that never ended" in " ".join(result.output.split())


def test_a_bound_with_bins_too_short_is_refused(trace: pathlib.Path) -> None:
    refused(
        run(trace, "--nodes", "1", "--bin", "1ms", command="bound"), "'1ms' is too short; write 1m or more"
    )
