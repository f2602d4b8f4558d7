"""Rules of PyTorchJobs: what their definition asks for, which is little; it fills in nothing."""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import failures, rules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_REPLICAS = "spec.pytorchReplicaSpecs"
_RESTART = ("Always", "ExitCode", "Never", "OnFailure")


def _check(new: port.Object, _old: port.Object | None) -> list[Violation]:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return [failures.required("spec")]
    replicas = spec.get("pytorchReplicaSpecs")
    if not isinstance(replicas, dict):
        return [failures.required(_REPLICAS)]
    found = []
    for role, given in replicas.items():
        found += _check_role(f"{_REPLICAS}.{role}", given)
    policy = spec.get("runPolicy")
    suspend = policy.get("suspend") if isinstance(policy, dict) else None
    if suspend is not None and not isinstance(suspend, bool):
        found.append(failures.bad("spec.runPolicy.suspend", suspend, "must be of type boolean"))
    return found


def _check_role(path: str, given: Any) -> list[Violation]:
    if not isinstance(given, dict):
        return [failures.bad(path, given, "must be of type object")]
    found = []
    count = given.get("replicas")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
        found.append(failures.bad(f"{path}.replicas", count, "must be of type integer"))
    restart = given.get("restartPolicy")
    if restart is not None and not isinstance(restart, str):
        found.append(failures.unsupported(f"{path}.restartPolicy", restart, _RESTART))
    template = given.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if pod is not None and (not isinstance(pod, dict) or not isinstance(pod.get("containers"), list)):
        found.append(failures.required(f"{path}.template.spec.containers"))
    return found


RULES = rules.Rules(check=_check)
