"""The election on a real API server, with the permissions of its documentation and no more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import stack

from lstqueue.kube import client, lease, port
from lstqueue.operator import command

NAME = "lstqueue-operator"
VERBS = ["get", "create", "update"]


def allow(plane: stack.ControlPlane, namespace: str, verbs: list[str]) -> str:
    """Give a new service account these verbs on leases; return its kubeconfig."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    plane.request("POST", path, {"metadata": {"name": "elected"}})
    rules = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    plane.request("POST", f"{rules}/roles", {"metadata": {"name": "elected"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "elected"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elected"},
        "subjects": [{"kind": "ServiceAccount", "name": "elected", "namespace": namespace}],
    }
    plane.request("POST", f"{rules}/rolebindings", binding)
    return str(plane.kubeconfig_for(namespace, "elected"))


def elector(api: port.KubeApi, namespace: str, identity: str, **times: Any) -> lease.Elector:
    terms = lease.Terms(namespace, NAME, identity, **({"duration": 4, "deadline": 2.0, "retry": 0.5} | times))
    return lease.Elector(api, terms, now=command.now_ms)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_lease_is_held_mended_and_handed_over(
    control_plane: stack.ControlPlane, namespace: str
) -> None:
    api = await client.connect(kubeconfig=allow(control_plane, namespace, VERBS))
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}"
    try:
        first, second = elector(api, namespace, "first"), elector(api, namespace, "second")
        await asyncio.wait_for(first.acquire(), 10)
        holding = asyncio.create_task(first.hold(forever))
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(1)
        control_plane.request("DELETE", path)
        await asyncio.sleep(2)
        assert (first.leading, second.leading) == (True, False)
        edited = control_plane.request("GET", path)
        edited["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 2_000_000_000, "renewTime": None}
        control_plane.request("PUT", path, edited)
        await asyncio.sleep(2)
        assert (first.leading, second.leading) == (True, False)
        assert control_plane.request("GET", path)["spec"]["leaseDurationSeconds"] == 4
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await asyncio.wait_for(waiting, 2)
        spec = control_plane.request("GET", path)["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("second", 4)
        await second.release()
        assert not control_plane.request("GET", path)["spec"].get("holderIdentity")
    finally:
        await api.close()


@pytest.mark.parametrize("missing", VERBS)
async def test_each_verb_is_needed_and_named(
    control_plane: stack.ControlPlane, namespace: str, missing: str
) -> None:
    granted = [verb for verb in VERBS if verb != missing]
    api = await client.connect(kubeconfig=allow(control_plane, namespace, granted))
    try:
        alone = elector(api, namespace, "alone")

        async def lead() -> None:
            await alone.acquire()
            await alone.hold(forever)

        with pytest.raises(lease.LeaseError, match=f"cannot {missing} resource"):
            await asyncio.wait_for(lead(), 15)
    finally:
        await api.close()
