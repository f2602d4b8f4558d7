"""Kinds that shape users' pods, and that lstqueue itself neither reads nor writes.

They are apart from `kinds` because the rules of other kinds look at them.
"""

from __future__ import annotations

from lstqueue.kube import port

LIMIT_RANGES = port.Resource("", "v1", "limitranges", "LimitRange")
RUNTIME_CLASSES = port.Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
