"""`lstqueue record` on an embedded API server: once, followed, refused; and the demo, recorded."""

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import click
import pytest
from click import testing

from cases import objects
from lstqueue import cli
from lstqueue.demo import mix, play, scenario, trace
from lstqueue.embedded import clock, faults, memory, server, store
from lstqueue.evaluate import traces
from lstqueue.kube import port
from lstqueue.record import book, command, reading, rows

MINUTE = 60_000


@contextlib.asynccontextmanager
async def _serving() -> AsyncIterator[server.ApiServer]:
    virtual = clock.VirtualClock(asyncio.get_running_loop())
    async with server.ApiServer(store.Store(now=virtual.now)) as embedded:
        yield embedded


async def _submit(api: port.KubeApi, name: str) -> None:
    await api.create(port.DEADLINE_JOBS, "default", objects.job(name))


async def _end(api: port.KubeApi, name: str, phase: str = "Succeeded") -> None:
    run = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T01:00:00Z"}
    status = {"phase": phase, "runs": [run], "completionTime": run["end"], "attempt": 1}
    await api.patch_status(port.DEADLINE_JOBS, "default", name, {"status": status})


def _names(path: pathlib.Path) -> list[str]:
    return [json.loads(line)["key"].split("/")[1] for line in path.read_text().splitlines()]


def test_a_cluster_is_recorded_once_whatever_is_run_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trace.jsonl"

    async def main() -> None:
        async with _serving() as embedded:
            api = memory.MemoryApi(embedded.backend)
            for name in ("good", "bad", "waits"):
                await _submit(api, name)
            await _end(api, "good")
            await _end(api, "bad", "Failed")
            options = command.Options(path, url=embedded.url)
            await command.record(options, since=0)
            await _end(api, "waits")
            await command.record(options, since=0)

    clock.run(main(), horizon=1e6)
    assert _names(path) == ["good", "waits"]


def test_who_follows_writes_jobs_as_they_end_and_counts_who_was_deleted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.jsonl"

    async def main() -> reading.Reader:
        async with _serving() as embedded:
            api = memory.MemoryApi(embedded.backend)
            for name in ("first", "second", "gone", "late"):
                await _submit(api, name)
            with book.Book(path) as into:
                reader = reading.Reader(api, into, rows.Asked({}))
                source = reader.following()
                following = asyncio.create_task(source.run())
                outages = asyncio.create_task(command.say_outages(source))
                await asyncio.sleep(1)
                await _end(api, "first")
                await api.delete(port.DEADLINE_JOBS, "default", "gone")
                await asyncio.sleep(1)
                embedded.faults.fail(503, "ServiceUnavailable", times=6)
                embedded.faults.compact()
                embedded.faults.cut_watches()
                await asyncio.sleep(120)
                await _end(api, "second")
                await api.delete(port.DEADLINE_JOBS, "default", "second")
                await asyncio.sleep(1)
                outages.cancel()
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following
            return reader

    reader = clock.run(main(), horizon=1e6)
    assert _names(path) == ["first", "second"]
    told = capsys.readouterr().err
    assert "cannot be read, and it is tried again: 503 ServiceUnavailable" in told
    assert "can be read again" in told
    assert dict(reader.left_out) == {reading.DELETED: 1}
    assert len(reader.waiting) == 1


def test_a_list_that_takes_too_long_is_begun_anew(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "PAGE", 1)

    async def main() -> None:
        async with _serving() as embedded:
            api = memory.MemoryApi(embedded.backend)
            for name in ("a", "b", "c"):
                await _submit(api, name)
                await _end(api, name)
            with book.Book(tmp_path / "trace.jsonl") as into:
                reader = reading.Reader(api, into, rows.Asked({}))
                told: list[str] = []

                def tell(key: str) -> None:
                    told.append(key)
                    if len(told) == 2:
                        embedded.faults.compact()

                reader.told = tell
                await reader.once()

    clock.run(main(), horizon=1e6)
    assert _names(tmp_path / "trace.jsonl") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (403, "Forbidden", "grant list and watch on deadlinejobs.lstqueue.dev"),
        (404, "NotFound", "is lstqueue installed there"),
        (503, "ServiceUnavailable", "try again, the file goes on where it is"),
    ],
)
def test_what_the_server_refuses_is_said_with_the_remedy(
    tmp_path: pathlib.Path, status: int, reason: str, words: str
) -> None:
    async def main() -> None:
        async with _serving() as embedded:
            lists = faults.calls(verb="list", resource=port.DEADLINE_JOBS)
            embedded.faults.fail(status, reason, when=lists, times=None)
            await command.record(command.Options(tmp_path / "trace.jsonl", url=embedded.url), since=0)

    with pytest.raises(click.ClickException, match=words):
        clock.run(main(), horizon=1e6)


def test_who_may_not_read_queues_is_told_and_records_all_the_same(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with _serving() as embedded:
            api = memory.MemoryApi(embedded.backend)
            await _submit(api, "good")
            await _end(api, "good")
            embedded.faults.fail(403, "Forbidden", when=faults.calls(resource=port.GPU_QUEUES), times=None)
            await command.record(command.Options(tmp_path / "trace.jsonl", url=embedded.url), since=0)

    clock.run(main(), horizon=1e6)
    assert _names(tmp_path / "trace.jsonl") == ["good"]
    assert "GPUQueues may not be read" in capsys.readouterr().err


def _record(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["record", *arguments])


def test_bad_options_are_refused_with_what_to_write(tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "trace.jsonl")
    result = _record("--out", out, "--url", "http://127.0.0.1:9", "--since", "yesterday")
    assert result.exit_code == 2
    assert "'yesterday' is neither a duration such as 7d nor a time" in result.output
    result = _record("--out", out, "--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "the API server cannot be read" in result.output
    result = _record("--out", out, "--kubeconfig", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "does not exist" in result.output


def test_since_is_a_time_or_a_duration_until_now() -> None:
    assert command.since_ms(None, now=5) == 0
    assert command.since_ms("1m", now=100 * MINUTE) == 99 * MINUTE
    assert command.since_ms("1970-01-01T00:01:00Z", now=0) == MINUTE


def test_the_demo_recorded_is_the_trace_that_it_played(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "demo.jsonl"
    plan = play.Plan("lst", jobs=3, nodes=2, seed=1, record=path)
    play.play(plan, lambda *_: None)
    asked = mix.ask(scenario.fitting(trace.load(seed=1, jobs=3), nodes=2), seed=1)
    found = traces.read(f"lstqueue:{path}").works
    assert len(found) == len(asked)
    for ask, work in zip(asked, found, strict=True):
        assert ask.name in work.key
        assert abs(work.submit - mix.EPOCH - ask.job.submit) < 1000
        assert abs(work.duration - ask.job.duration) < 3000
        assert work.deadline == ask.deadline
        if ask.kind is not mix.Kind.BAG:
            assert work.gpus == ask.job.gpus
    result = testing.CliRunner().invoke(
        cli.main, ["evaluate", "run", "--trace", f"lstqueue:{path}", "--nodes", "2"]
    )
    assert result.exit_code == 0, result.output
    assert f"{len(asked)} jobs of lstqueue:demo" in result.output
    assert "never started" not in result.output
