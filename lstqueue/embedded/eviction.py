"""The eviction subresource of pods, through which `kubectl drain` and the cluster's own tools empty a node.

The pod is marked as disrupted and then deleted with its grace period. There are no PodDisruptionBudgets here,
so that no eviction is ever put off (429).
"""

from __future__ import annotations

from lstqueue.embedded import failures, requests
from lstqueue.embedded.controllers import podstatus
from lstqueue.embedded.store import Store
from lstqueue.kube import port

RESOURCE = port.Resource("policy", "v1", "evictions", "Eviction")
"""What the body is; discovery tells it of the subresource, which is how kubectl knows that it may evict."""
_WHY = ("EvictionByEvictionAPI", "Eviction API: evicting")


def evict(store: Store, namespace: str, name: str, asked: requests.Eviction) -> None:
    """Mark a pod as disrupted and delete it.

    Raises:
        port.ApiError: 400 when the body names another pod, 404, or 409 when a precondition does not hold.
    """
    if asked.name and asked.name != name:
        raise failures.bad_request("name in URL does not match name in Eviction object")
    options = asked.options
    pod = store.get(port.PODS, namespace, name)
    uid, version = options.uid, options.resource_version
    if not options.dry_run:
        # The mark goes in under the same preconditions; it moves the version that the deletion is held to.
        store.delete(port.PODS, namespace, name, uid=uid, resource_version=version, dry_run=True)
        body = {"status": podstatus.disrupted(pod, store.now_ms(), _WHY)}
        pod = store.patch(port.PODS, namespace, name, body, subresource="status")
        version = pod["metadata"]["resourceVersion"] if version else ""
    store.delete(
        port.PODS,
        namespace,
        name,
        uid=uid,
        resource_version=version,
        grace_seconds=options.grace_seconds,
        propagation=options.propagation,
        dry_run=options.dry_run,
    )
