"""Who takes part in an election, and for which Lease, by options and surroundings."""

from __future__ import annotations

import pathlib

import pytest
from click import testing

from lstqueue import cli
from lstqueue.kube import login
from lstqueue.operator import command, shell


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(login, "pod_namespace", lambda: "lstqueue-system")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.mark.usefixtures("pod")
def test_a_pod_is_elected_in_its_own_namespace():
    terms = command.election(command.Options())
    assert terms is not None
    assert str(terms) == "Lease lstqueue-system/lstqueue-operator"
    other = command.election(command.Options())
    assert other is not None
    assert other.identity != terms.identity


@pytest.mark.usefixtures("pod")
def test_a_pod_can_be_told_otherwise():
    assert command.election(command.Options(leader_elect=False)) is None
    terms = command.election(command.Options(lease_namespace="elsewhere", lease_name="mine"))
    assert str(terms) == "Lease elsewhere/mine"
    # With a kubeconfig it is the operator of another cluster.
    assert command.election(command.Options(kubeconfig="/somewhere")) is None


@pytest.mark.usefixtures("desk")
def test_outside_of_a_cluster_nobody_is_elected_unless_asked_for():
    assert command.election(command.Options()) is None
    terms = command.election(command.Options(leader_elect=True, lease_namespace="default"))
    assert str(terms) == "Lease default/lstqueue-operator"


@pytest.mark.usefixtures("desk")
def test_outside_of_a_cluster_the_namespace_has_to_be_named():
    with pytest.raises(shell.StartError, match="--lease-namespace"):
        command.election(command.Options(leader_elect=True))
    told = testing.CliRunner().invoke(cli.main, ["operator", "--leader-elect", "--url", "http://127.0.0.1:1"])
    assert told.exit_code == 1
    assert "name that of the other replicas with --lease-namespace" in told.output


def test_the_pods_namespace_is_read_from_its_account(tmp_path: pathlib.Path):
    path = tmp_path / "namespace"
    assert login.pod_namespace(path) is None
    path.write_text("lstqueue-system\n")
    assert login.pod_namespace(path) == "lstqueue-system"
