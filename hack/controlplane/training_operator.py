"""The PyTorchJob controller of Kubeflow's training operator beside a control plane, as a process of its own.

Its CRD (``crd()``) is named when the plane is started: garbage collection notices kinds that come later only
after half a minute.  It does not build the program; ``build.py`` does.
"""

import contextlib
import pathlib
from collections.abc import Iterator

import build
import stack
import stack_process

READY = "Starting workers"
READY_WITHIN_S = 60.0
ACCOUNT = "training-operator"

# Of what the stock role has, the part that this controller uses.
RULES = (
    {"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["pods", "services", "events", "configmaps"], "verbs": ["*"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["*"]},
)
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def is_built() -> bool:
    """Say whether program and CRD are in the cache."""
    kit = build.TRAINING_OPERATOR
    return build.is_complete(build.directory(kit=kit), kit=kit)


def crd() -> pathlib.Path:
    """Return the manifest of the kind, once it is built."""
    return build.directory(kit=build.TRAINING_OPERATOR) / build.PYTORCH_CRD


@contextlib.contextmanager
def running(plane: stack.ControlPlane) -> Iterator[stack_process.Process]:
    """Run it in a plane that has its CRD, with an account and a role of its own, until the block ends."""
    _grant(plane)
    kubeconfig = plane.kubeconfig_for(ACCOUNT, ACCOUNT)
    program = build.directory(kit=build.TRAINING_OPERATOR) / "training-operator"
    log = plane.directory / "training-operator.log"
    process = stack_process.spawn(
        "training-operator", (str(program), f"--kubeconfig={kubeconfig}"), log=log, environ={}
    )
    try:
        stack_process.wait_until(
            lambda: _works(process, log), what="the training operator", within_s=READY_WITHIN_S
        )
        yield process
    finally:
        process.end()


def _grant(plane: stack.ControlPlane) -> None:
    metadata = {"name": ACCOUNT}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ACCOUNT}
    for path, body in (
        ("/api/v1/namespaces", {}),
        (f"/api/v1/namespaces/{ACCOUNT}/serviceaccounts", {}),
        (f"{_RBAC}/clusterroles", {"rules": RULES}),
        (f"{_RBAC}/clusterrolebindings", {"roleRef": role, "subjects": [subject]}),
    ):
        plane.request("POST", path, {"metadata": metadata, **body})


def _works(process: stack_process.Process, log: pathlib.Path) -> bool:
    if not process.is_alive():
        raise stack_process.ControlPlaneError(f"the training operator ended; {stack_process.log_tail(log)}")
    return READY in log.read_text(encoding="utf-8")
