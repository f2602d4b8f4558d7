"""The admission policies of this repository in a control plane, and users with no more rights than needed."""

from __future__ import annotations

import contextlib
import http
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import plain_jobs
import pytorch_jobs
import stack
import stack_access
import stack_process

from lstqueue.api import names
from lstqueue.kube import client, port

Object = dict[str, Any]

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "charts" / "lstqueue" / "policies"
ENFORCED = {f"{names.GROUP}/enforce": "true"}

EDITS = ["get", "list", "watch", "create", "update", "patch", "delete"]
EDITOR: list[Object] = [
    {"apiGroups": [""], "resources": ["pods", "pods/binding"], "verbs": EDITS},
    {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": EDITS},
    {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs", "pytorchjobs/scale"], "verbs": EDITS},
    {"apiGroups": ["lstqueue.dev"], "resources": ["deadlinejobs"], "verbs": EDITS},
]
"""What somebody may do who works in a namespace: as much as the role `edit` gives, where it is about jobs."""
RELEASES: Object = {"apiGroups": ["lstqueue.dev"], "resources": ["deadlinejobs"], "verbs": ["release"]}

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_WITHIN_S = 20
_PROBED = "policies-in-force"


def install(plane: stack.ControlPlane) -> None:
    """Apply the policies as an administrator would, and wait until they are in force."""
    plane.kubectl("apply", f"--filename={FOLDER}")
    name = _PROBED
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": ENFORCED}})
    body = plain_jobs.job("probe", 1)
    body["metadata"]["labels"] = {names.LABEL_QUEUE: ""}
    path = f"/apis/batch/v1/namespaces/{name}/jobs?dryRun=All"
    stack_process.wait_until(
        lambda: plane.request("POST", path, body)["spec"]["suspend"],
        what="the policies to be in force",
        within_s=_WITHIN_S,
    )


def await_pytorch_jobs(plane: stack.ControlPlane) -> None:
    """Wait until the policies know the kind, whose definition is as new as the plane.

    Until the server has read its schema, for half a minute, it refuses what a policy would change (503).
    """
    path = f"/apis/kubeflow.org/v1/namespaces/{_PROBED}/pytorchjobs?dryRun=All"
    body = pytorch_jobs.body("probe", 1, queue="")

    def known() -> bool:
        try:
            plane.request("POST", path, body)
        except stack_access.RequestError as error:
            if error.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return False
        return True

    stack_process.wait_until(known, what="the policies to know PyTorchJobs", within_s=60)


@contextlib.asynccontextmanager
async def user(
    plane: stack.ControlPlane, namespace: str, rules: list[Object], *, name: str = "user"
) -> AsyncIterator[plain_jobs.Namespace]:
    """Somebody who may do in the namespace what the rules say, and nothing else."""
    roles = f"{_RBAC}/namespaces/{namespace}"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    account = {"metadata": {"name": name}}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    plane.request("POST", f"{roles}/roles", {"metadata": {"name": name}, "rules": rules})
    plane.request("POST", f"{roles}/rolebindings", binding)
    api = await client.connect(kubeconfig=str(plane.kubeconfig_for(namespace, name)))
    made = plain_jobs.Namespace(api, namespace)
    try:
        # The authorizer learns of a new binding a moment after it was written.
        await made.until(lambda: _granted(made, rules[-1]), "the role to be granted")
        yield made
    finally:
        await api.close()


async def _granted(here: plain_jobs.Namespace, rule: Object) -> bool:
    review = port.Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
    )
    asked = {
        "namespace": here.name,
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
        "verb": rule["verbs"][-1],
    }
    answer = await here.api.create(review, None, {"spec": {"resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])
