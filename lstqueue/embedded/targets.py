"""From a URL path to what it addresses, without a routing table: the grammar of API paths is fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib import parse

from lstqueue.embedded import failures, kinds
from lstqueue.kube import port


@dataclass(frozen=True, slots=True)
class Target:
    """A collection, an object, or a subresource; the namespace is empty for all of them."""

    kind: kinds.Kind
    namespace: str
    name: str
    subresource: str


_OF_CONTAINERS = ("log", "exec", "attach", "portforward", "proxy")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@lru_cache(maxsize=4096)
def parse_path(path: str) -> Target:
    """Parse the path of a resource.

    Raises:
        port.NotFoundError: no such group, version, kind or subresource.
    """
    parts = [parse.unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise failures.no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_itself(rest):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.KINDS.get((group, rest[0]))
    if kind is None or kind.resource.version != version or len(rest) > 3 or not all(rest):
        raise failures.no_such_path()
    if namespace and not kind.resource.namespaced:
        raise failures.no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if kind.resource.namespaced and name and not namespace:
        raise failures.no_such_path()
    if subresource and subresource not in kind.all_subresources:
        if kind.resource is port.PODS and subresource in _OF_CONTAINERS:
            raise failures.no_containers()
        raise failures.no_such_path()
    return Target(kind, namespace, name, subresource)


def _is_namespace_itself(rest: list[str]) -> bool:
    # /namespaces/x/status is the status of a namespace; no kind is called status.
    return len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES
