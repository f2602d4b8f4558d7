"""`lstqueue demo --serve`: a cluster to play with, until Ctrl-C."""

import asyncio
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import click
import pytest
from click import testing

from lstqueue import cli
from lstqueue.api import names
from lstqueue.demo import kubeconfig, run_times
from lstqueue.embedded import store
from lstqueue.kube import client, port

# A shell that runs the tests in the background lets them, and so the demo, ignore SIGINT.
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
PROGRAM += "from lstqueue import cli; cli.main()"


def gang(name: str, **spec: Any) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": 8}}
    template = {"spec": {"containers": [{"name": "main", "image": "example/train", "resources": limits}]}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queue": "research",
            "groups": [{"name": "worker", "replicas": 2, "template": template}],
            **spec,
        },
    }


@contextlib.asynccontextmanager
async def closing(api: port.KubeApi) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await api.close()


async def until_finished(api: port.KubeApi, name: str) -> dict[str, Any]:
    """The status of a job once it is over."""
    page = await api.list_page(port.DEADLINE_JOBS, namespace="default")
    watch = api.watch(
        port.DEADLINE_JOBS,
        namespace="default",
        resource_version=page.resource_version,
        timeout_seconds=100_000,
    )
    async with contextlib.aclosing(watch) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                continue
            status: dict[str, Any] = event.object.get("status") or {}
            conditions = {item["type"] for item in status.get("conditions", ()) if item["status"] == "True"}
            if event.object["metadata"]["name"] == name and "Finished" in conditions:
                return status
    raise AssertionError("the watch ended")


async def test_a_newcomers_job_gets_a_verdict_and_runs_to_its_end(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "kubeconfig"
    arguments = ["demo", "--serve", "--speed", "600", "--nodes", "2", "--kubeconfig", str(config)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-u", "-c", PROGRAM, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(100):
            said = ""
            while "Ctrl-C" not in said:
                line = (await process.stdout.readline()).decode()
                assert line, said
                said += line
            assert f"export KUBECONFIG={config}" in said
            api = await client.connect(kubeconfig=str(config))
            async with closing(api):
                job = gang("one", deadlineIn="3h", estimatedDuration="30m")
                await api.create(port.DEADLINE_JOBS, "default", job)
                status = await until_finished(api, "one")
                bad = gang("bad", backoffLimit=0, estimatedDuration="30m")
                failing = {"sim/fail-after": "10m", "sim/exit-code": "3"}
                bad["spec"]["groups"][0]["template"]["metadata"] = {"annotations": failing}
                await api.create(port.DEADLINE_JOBS, "default", bad)
                await until_finished(api, "bad")
            (url,) = re.findall(r"curl (http://\S+)/why/default/finetune", said)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{url}/why/default/one") as answer:
                    assert answer.status in (200, 404), "a job that is over is known no more"
                async with session.get(f"{url}/metrics") as answer:
                    assert 'lstqueue_finished_total{deadline="met"' in await answer.text()
            assert status["phase"] == "Succeeded"
            assert status["verdict"]["level"] == "LIKELY"
            process.send_signal(signal.SIGINT)
            rest = (await process.stdout.read()).decode()
            assert await process.wait() == 0, rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert "default/one: created" in rest
    assert "default/one: Succeeded" in rest
    stopped = r"default/bad: Suspending: GangFailed, pod bad-worker-0-\S+ failed on node node-000\d: Error"
    assert re.search(stopped, rest)
    assert re.search(r"default/bad: Failed: BackoffLimitExceeded, pod bad-worker-0-.* exit code 3", rest)
    assert "0 violated" in rest
    assert "Traceback" not in rest
    assert not config.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--serve", "--jobs", "3"], "--jobs does not go with --serve; leave one of them out"),
        (["--serve", "--json", "x"], "--json does not go with --serve; leave one of them out"),
        (["--speed", "3"], "--speed is for --serve; leave it out, or add that"),
        (["--kubeconfig", "x"], "--kubeconfig is for --serve; leave it out, or add that"),
        (["--probe-port", "3"], "--probe-port is for --serve; leave it out, or add that"),
        (["--serve", "--speed", "0"], "--speed"),
    ],
)
def test_options_that_would_be_ignored_are_refused(arguments: list[str], words: str) -> None:
    result = testing.CliRunner().invoke(cli.main, ["demo", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_a_kubeconfig_of_somebody_else_is_left_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\n")
    for where, words in ((path, "is not ours"), (tmp_path / "no" / "config", "does not exist; create it")):
        result = testing.CliRunner().invoke(cli.main, ["demo", "--serve", "--kubeconfig", str(where)])
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())
    assert path.read_text() == "apiVersion: v1\n"


def test_a_kubeconfig_left_by_a_killed_demo_is_replaced(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig.text("http://127.0.0.1:1"))
    kubeconfig.check(path)
    with kubeconfig.written("http://127.0.0.1:2", path):
        assert "http://127.0.0.1:2" in path.read_text()
    assert not path.exists()


def test_the_kubeconfig_of_a_demo_that_runs_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        path.write_text(kubeconfig.text(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        with pytest.raises(click.BadParameter, match="a demo that runs"):
            kubeconfig.check(path)
    kubeconfig.check(path)


def test_a_kubeconfig_that_was_replaced_meanwhile_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    with kubeconfig.written("http://127.0.0.1:1", path):
        path.write_text("apiVersion: v1\n")
    assert path.read_text() == "apiVersion: v1\n"


def test_checking_a_path_leaves_nothing_there(tmp_path: pathlib.Path) -> None:
    kubeconfig.check(tmp_path / "config")
    assert list(tmp_path.iterdir()) == []


def test_without_a_path_the_kubeconfig_is_temporary() -> None:
    with kubeconfig.written("http://127.0.0.1:1", None) as path:
        assert path.exists()
    assert not path.parent.exists()


@pytest.fixture
async def objects() -> AsyncIterator[store.Store]:
    found = store.Store(now=lambda: 0)
    times = run_times.RunTimes(found)
    yield found
    times.close()


def run_for(objects: store.Store, uid: str, **annotations: str) -> str | None:
    """What a new pod of a job is told about its run time."""
    body = {
        "metadata": {"generateName": "pod-", "labels": {names.LABEL_JOB: uid}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example/train"}]},
    }
    name = objects.create(port.PODS, "default", body)["metadata"]["name"]
    found = objects.get(port.PODS, "default", name)["metadata"].get("annotations") or {}
    told: str | None = found.get("sim/run-for")
    return told


async def test_pods_take_the_estimate_of_their_job(objects: store.Store) -> None:
    uid = objects.create(port.DEADLINE_JOBS, "default", gang("one", estimatedDuration="1h30m"))["metadata"][
        "uid"
    ]
    assert run_for(objects, uid) == "5400s"


async def test_pods_of_a_bag_share_its_estimate(objects: store.Store) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/eval"}]}}
    bag = {"suspend": True, "parallelism": 4, "completions": 16, "template": template}
    objects.create(port.JOBS, "default", {"metadata": {"name": "bag"}, "spec": bag})
    ref = {"apiVersion": "batch/v1", "kind": "Job", "name": "bag"}
    body = gang("one", estimatedDuration="2h")
    body["spec"] = {"queue": "research", "estimatedDuration": "2h", "jobRef": ref}
    uid = objects.create(port.DEADLINE_JOBS, "default", body)["metadata"]["uid"]
    assert run_for(objects, uid) == "1800s"


async def test_pods_without_an_estimate_run_an_hour(objects: store.Store) -> None:
    uid = objects.create(port.DEADLINE_JOBS, "default", gang("one"))["metadata"]["uid"]
    assert run_for(objects, uid) == "3600s"


async def test_pods_that_say_how_long_they_run_are_left_alone(objects: store.Store) -> None:
    uid = objects.create(port.DEADLINE_JOBS, "default", gang("one", estimatedDuration="1h"))["metadata"][
        "uid"
    ]
    assert run_for(objects, uid, **{"sim/run-for": "5s"}) == "5s"
    assert run_for(objects, uid, **{"sim/fail-after": "5s"}) is None


async def test_pods_of_nobody_are_left_alone(objects: store.Store) -> None:
    assert run_for(objects, "") is None
