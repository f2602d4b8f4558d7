"""The operator's permissions as docs/operations.md lists them, given to a service account, and no more."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import stack
import stack_process
import yaml

Object = dict[str, Any]

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "operations.md"
NAMESPACE = "lstqueue-system"
ACCOUNT = "lstqueue"

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GRANTED_WITHIN_S = 20
_made: dict[pathlib.Path, pathlib.Path] = {}


def roles() -> list[Object]:
    """The Roles and the ClusterRole of the page."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = [yaml.safe_load(block) for block in blocks]
    return [item for item in found if item.get("kind") in ("Role", "ClusterRole")]


def kubeconfig(plane: stack.ControlPlane) -> str:
    """Return a kubeconfig of the operator's own account, which is made when it is asked for first."""
    if plane.directory not in _made:
        _made[plane.directory] = _make(plane)
    return str(_made[plane.directory])


def _make(plane: stack.ControlPlane) -> pathlib.Path:
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = {"metadata": {"name": ACCOUNT}}
    plane.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
    for role in roles():
        kind = role["kind"]
        space = f"/namespaces/{role['metadata']['namespace']}" if kind == "Role" else ""
        plural = f"{kind.lower()}s"
        plane.request("POST", f"{_RBAC}{space}/{plural}", role)
        binding = {
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": kind,
                "name": role["metadata"]["name"],
            },
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
        plane.request("POST", f"{_RBAC}{space}/{plural[:-1]}bindings", binding)
    path = plane.kubeconfig_for(NAMESPACE, ACCOUNT)
    # The authorizer learns of a new binding a moment after it was written.
    stack_process.wait_until(
        lambda: _may_read(plane), what="the role to be granted", within_s=_GRANTED_WITHIN_S
    )
    return path


def _may_read(plane: stack.ControlPlane) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
            "resourceAttributes": {"verb": "list", "resource": "nodes"},
        },
    }
    answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])
