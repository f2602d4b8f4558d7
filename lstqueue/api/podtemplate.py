"""How the CRD describes a pod template: everything is kept, containers are required, all of it is compared.

A pod template is not validated here: inlining the schema of pods would cost hundreds of kilobytes and age
with every Kubernetes release, and the API server judges the pods themselves. Two things are wanted at once,
though. A template without containers should be refused when it is written, so `containers` is declared. And
"templates never change" compares `self == oldSelf`, where CEL looks at a field it was not told of only if
both sides have it: replacing nodeSelector by affinity would pass. So the fields of a pod's spec are declared
by name, with anything inside, which makes the comparison exact for all of them. What is left is replacing one
field that Kubernetes does not know by another one.
"""

from __future__ import annotations

from typing import Any

_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}

POD_FIELDS = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "workloadRef",
)
"""Fields of a pod's spec beside `containers`, up to Kubernetes 1.36. A newer one is kept all the same."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "required": ["spec"],
    "properties": {
        "metadata": _ANYTHING,
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["containers"],
            "properties": {
                "containers": {"type": "array", "minItems": 1, "items": _ANYTHING},
                **{name: _ANYTHING for name in POD_FIELDS},
            },
        },
    },
}
"""OpenAPI schema of `spec.groups[].template`."""
