"""The real kubectl against `lstqueue demo --serve`: what a newcomer types, with the operator answering."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import build
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
PROGRAM += "from lstqueue import cli; cli.main()"

GANG = """
apiVersion: lstqueue.dev/v1alpha1
kind: DeadlineJob
metadata: {{name: {name}, labels: {{test: {name}}}}}
spec:
  queue: research
  deadlineIn: {deadline}
  estimatedDuration: {estimate}
  groups:
  - name: worker
    replicas: 2
    template:
      spec:
        containers:
        - {{name: main, image: example/train, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  parallelism: {parallelism}
  completions: 3
  suspend: {suspend}
  template:
    metadata: {{annotations: {{sim/run-for: 10m}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: example/app, env: [{{name: A, value: "1"}}]}}]
"""


@dataclasses.dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig; calling it returns what it printed."""

    program: pathlib.Path
    kubeconfig: pathlib.Path

    def run(
        self, *arguments: str, stdin: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            env=os.environ | environment,
        )

    def command(self, *arguments: str) -> list[str]:
        own = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.kubeconfig.parent / 'cache'}")
        return [str(self.program), *own, *arguments]

    def __call__(self, *arguments: str, stdin: str | None = None, **environment: str) -> str:
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return done.stderr


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = build.directory() / "kubectl"
    if not os.access(program, os.X_OK):
        pytest.skip("kubectl is not built: run `make e2e`, which needs Go")
    config = tmp_path_factory.mktemp("kubectl") / "kubeconfig"
    command = [sys.executable, "-u", "-c", PROGRAM, "demo", "--serve", "--nodes", "4", "--kubeconfig", config]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        said = ""
        while "Ctrl-C" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        yield Kubectl(program, config)
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
    assert demo.returncode == 0, rest
    assert "Traceback" not in rest
    assert not config.exists()


def apply(kubectl: Kubectl, name: str, *, deadline: str = "5h", estimate: str = "30m") -> str:
    text = GANG.format(name=name, deadline=deadline, estimate=estimate)
    return kubectl("apply", "-f", "-", stdin=text)


def lines(table: str) -> list[list[str]]:
    """The cells of a printed table, header first; for columns without spaces in them."""
    return [line.split() for line in table.splitlines()]


def test_a_gang_is_applied_told_its_verdict_and_runs_to_its_end(kubectl: Kubectl) -> None:
    assert apply(kubectl, "first", estimate="10m") == "deadlinejob.lstqueue.dev/first created\n"
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "dj/first", "--timeout=60s")
    header, row = lines(kubectl("get", "dj", "first"))
    assert header == ["NAME", "QUEUE", "PHASE", "GANG", "DEADLINE", "SLACK", "VERDICT", "FORECAST", "AGE"]
    assert row[:3] == ["first", "research", "Running"]
    assert "LIKELY" in row
    pods = lines(kubectl("get", "pods", "-l", "lstqueue.dev/group=worker", "--sort-by=.spec.nodeName"))
    assert pods[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert {tuple(pod[1:3]) for pod in pods[1:]} == {("1/1", "Running")}
    assert (
        apply(kubectl, "first", deadline="6h", estimate="10m")
        == "deadlinejob.lstqueue.dev/first configured\n"
    )
    kubectl("wait", "--for=condition=Finished", "dj/first", "--timeout=80s")
    assert "Succeeded" in kubectl("get", "dj", "first", "-o", "wide")
    assert (
        kubectl("delete", "dj", "first")
        == 'deadlinejob.lstqueue.dev "first" deleted from default namespace\n'
    )
    assert "NotFound" in kubectl.refused("get", "dj", "first")


def test_the_formats_of_get(kubectl: Kubectl) -> None:
    apply(kubectl, "formats", estimate="4h")
    assert kubectl("get", "dj", "-l", "test=formats", "-o", "name") == "deadlinejob.lstqueue.dev/formats\n"
    assert json.loads(kubectl("get", "dj", "formats", "-o", "json"))["spec"]["deadlineIn"] == "5h"
    assert "deadlineIn: 5h" in kubectl("get", "dj", "formats", "-o", "yaml")
    every = lines(kubectl("get", "dj", "-A", "--no-headers", "-L", "test"))
    assert ["default", "formats"] in [row[:2] for row in every]
    wide = kubectl("get", "nodes", "-o", "wide").splitlines()
    assert "INTERNAL-IP" in wide[0]
    assert len(wide) == 5
    kubectl("get", "ns,svc,events,leases,priorityclasses,jobs,gq,crds", "-A")
    kubectl("delete", "dj", "formats", "--wait=false")
    kubectl("wait", "--for=delete", "dj/formats", "--timeout=60s")


def test_a_watch_prints_what_changes(kubectl: Kubectl) -> None:
    command = kubectl.command("get", "dj", "-l", "test=watched", "--watch", "-L", "seen")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watch:
        assert watch.stdout is not None
        apply(kubectl, "watched", estimate="4h")
        kubectl("label", "dj", "watched", "seen=yes")
        said = ""
        while "yes" not in said:
            line = watch.stdout.readline()
            assert line, said
            said += line
        watch.terminate()
    assert said.count("NAME") == 1
    assert "watched" in said
    kubectl("delete", "dj", "watched")


def test_describe_shows_objects_with_their_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=JOB.format(name="told", parallelism=1, suspend="false"))
    kubectl("wait", "--for=jsonpath={.status.active}=1", "job/told", "--timeout=60s")
    found = json.loads(kubectl("get", "job", "told", "-o", "json"))
    about = {"apiVersion": "batch/v1", "kind": "Job", "name": "told", "namespace": "default"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "told.1", "namespace": "default"},
        "involvedObject": about | {"uid": found["metadata"]["uid"]},
        "type": "Normal",
        "reason": "Tested",
        "message": "somebody tested it",
    }
    kubectl("create", "-f", "-", stdin=json.dumps(event))
    assert "somebody tested it" in kubectl("describe", "job", "told")
    assert "somebody tested it" in kubectl("events", "--for", "job/told")
    assert "Tested" in kubectl("get", "events")
    pod = kubectl("describe", "pod", "told")
    assert "Controlled By:" in pod
    assert "nvidia.com/gpu" in kubectl("describe", "node", "node-0000")
    assert "Pools:" in kubectl("describe", "gq", "research")
    kubectl("delete", "job", "told")
    kubectl("wait", "--for=delete", "pod", "-l", "job-name=told", "--timeout=60s")


def test_a_job_is_applied_again(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=JOB.format(name="again", parallelism=1, suspend="true"))
    text = JOB.format(name="again", parallelism=2, suspend="true")
    assert kubectl("apply", "-f", "-", stdin=text) == "job.batch/again configured\n"
    assert kubectl("apply", "-f", "-", stdin=text) == "job.batch/again unchanged\n"
    row = lines(kubectl("get", "job", "again"))[1]
    assert row[:3] == ["again", "Suspended", "0/3"]
    assert kubectl("get", "job", "again", "-o", "jsonpath={.spec.parallelism}") == "2"
    kubectl("delete", "job", "again")


def test_patches_labels_annotations_and_edits(kubectl: Kubectl) -> None:
    apply(kubectl, "changed", estimate="4h")
    kubectl("patch", "dj", "changed", "--type", "merge", "-p", '{"spec": {"deadlineIn": "7h"}}')
    kubectl(
        *("patch", "dj", "changed", "--type", "json"),
        *("-p", '[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'),
    )
    words = kubectl.refused("patch", "dj", "changed", "-p", '{"spec": {}}')
    assert "application/merge-patch+json" in words
    kubectl("label", "dj", "changed", "a=c", "--overwrite")
    kubectl("annotate", "dj", "changed", "note=this")
    kubectl("edit", "dj", "changed", KUBE_EDITOR="sed -i s/7h/8h/")
    found = json.loads(kubectl("get", "dj", "changed", "-o", "json"))
    assert found["spec"]["deadlineIn"] == "8h"
    assert found["metadata"]["labels"]["a"] == "c"
    assert found["metadata"]["annotations"]["note"] == "this"
    kubectl("delete", "dj", "-l", "a=c")


def test_what_is_wrong_is_said_before_it_is_stored(kubectl: Kubectl) -> None:
    text = GANG.format(name="wrong", deadline="soon", estimate="30m")
    assert "spec.deadlineIn" in kubectl.refused("apply", "-f", "-", stdin=text)
    text = GANG.format(name="wrong", deadline="5h", estimate="30m").replace("queue:", "qeue:")
    assert 'unknown field "spec.qeue"' in kubectl.refused("create", "-f", "-", stdin=text)
    text = GANG.format(name="wrong", deadline="5h", estimate="30m")
    assert "without --server-side" in kubectl.refused("apply", "--server-side", "-f", "-", stdin=text)
    assert "--dry-run=client" in kubectl.refused("create", "namespace", "one")
    assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=text).endswith("created (server dry run)\n")
    assert "NotFound" in kubectl.refused("get", "dj", "wrong")


def test_what_the_server_says_about_itself(kubectl: Kubectl) -> None:
    found = kubectl("explain", "deadlinejob.spec.deadline")
    assert "FIELD: deadline <string>" in found
    assert "When it has to be finished" in found
    assert "groups" in kubectl("explain", "dj.spec", "--recursive")
    assert "labels" in kubectl("explain", "pod.metadata")
    rows = lines(kubectl("api-resources", "--no-headers", "--api-group=lstqueue.dev"))
    assert rows == [
        ["deadlinejobs", "dj", "lstqueue.dev/v1alpha1", "true", "DeadlineJob"],
        ["gpuqueues", "gq", "lstqueue.dev/v1alpha1", "false", "GPUQueue"],
        ["interconnects", "ic", "lstqueue.dev/v1alpha1", "false", "Interconnect"],
    ]
    assert "Server Version: v1." in kubectl("version")
    assert kubectl("auth", "can-i", "create", "dj") == "yes\n"
    assert "system:masters" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_a_node_is_drained(kubectl: Kubectl) -> None:
    text = JOB.format(name="drained", parallelism=1, suspend="false")
    kubectl("create", "-f", "-", stdin=text)
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "job-name=drained", "--timeout=60s")
    node = kubectl("get", "pod", "-l", "job-name=drained", "-o", "jsonpath={.items[0].spec.nodeName}")
    name = kubectl("get", "pod", "-l", "job-name=drained", "-o", "jsonpath={.items[0].metadata.name}")
    assert "evicted" in kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=80s")
    assert "NotFound" in kubectl.refused("get", "pod", name)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("uncordon", node)
    assert lines(kubectl("get", "node", node))[1][1] == "Ready"
    kubectl("delete", "job", "drained")


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.yaml")))
def test_examples_are_accepted(kubectl: Kubectl, name: str) -> None:
    assert "dry run" in kubectl("apply", "--dry-run=server", "-f", str(ROOT / "examples" / name))
