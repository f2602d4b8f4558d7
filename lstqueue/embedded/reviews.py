"""Questions about the caller: may I, what may I, who am I. This server lets everybody do everything.

These kinds are asked by POST and never stored. The answers are what they are on a cluster where the caller is
an administrator, so that `kubectl auth can-i` and tools that look before they write go on.
"""

from __future__ import annotations

from collections.abc import Callable

from lstqueue.embedded import failures, requests
from lstqueue.kube import port

_ALL = ["*"]
_USER = {"username": "embedded-admin", "groups": ["system:masters", "system:authenticated"]}

ACCESS = port.Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
RULES = port.Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
SUBJECT = port.Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


def _access() -> port.Object:
    return {"allowed": True, "reason": "the embedded API asks for no permissions"}


def _rules() -> port.Object:
    return {
        "resourceRules": [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}],
        "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
        "incomplete": False,
    }


def _subject() -> port.Object:
    return {"userInfo": _USER}


_STATUSES: dict[port.Resource, Callable[[], port.Object]] = {
    ACCESS: _access,
    RULES: _rules,
    SUBJECT: _subject,
}
RESOURCES = tuple(_STATUSES)
"""What discovery lists of them."""
_BY_PATH = {resource.path(): resource for resource in RESOURCES}


def answer(method: str, path: str, *, content_type: str, body: bytes) -> port.Object | None:
    """The answer to a review, or None when the path is not one's.

    Args:
        method: of the request.
        path: of the request.
        content_type: of the body. kubectl asks in protobuf; since the answer is always yes, the question
            need not be read, and is not repeated in the answer then.
        body: of the request.

    Raises:
        port.ApiError: 405 for another method than POST, 400 for a body that is no JSON object.
    """
    resource = _BY_PATH.get(path.rstrip("/"))
    if resource is None:
        return None
    if method != "POST":
        raise failures.method(method)
    asked = requests.decode(body) if requests.media(content_type) in ("", requests.JSON) else {}
    if not isinstance(asked, dict):
        raise failures.bad_request("the body of the request is not a JSON object")
    found = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
    return {**found, "spec": asked.get("spec", {}), "status": _STATUSES[resource]()}
