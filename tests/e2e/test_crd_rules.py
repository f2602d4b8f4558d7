"""The CRDs on a real API server: it accepts them, and refuses what their Python twins refuse."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from cases import crd_rules
from lstqueue.api import kinds
from lstqueue.kube import port

Object = dict[str, Any]

RESOURCES = {
    "DeadlineJob": port.DEADLINE_JOBS,
    "GPUQueue": port.GPU_QUEUES,
    "Interconnect": port.INTERCONNECTS,
}


async def write(api: port.KubeApi, case: crd_rules.Case) -> Object:
    """Do what the case says, in its order; return what the server stored."""
    resource, name = RESOURCES[case.kind], case.new["metadata"]["name"]
    namespace = case.new["metadata"].get("namespace")
    if case.old is None:
        return await api.create(resource, namespace, case.new)
    stored = await api.create(resource, namespace, case.old)
    if case.old.get("status"):
        body = {"status": case.old["status"]}
        stored = await api.patch_status(resource, namespace, name, body)
    metadata = {**case.new["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
    if case.subresource == "status":
        return await api.patch_status(resource, namespace, name, {**case.new, "metadata": metadata})
    return await api.replace(resource, namespace, name, {**case.new, "metadata": metadata})


@pytest.mark.parametrize("case", crd_rules.CASES, ids=lambda case: case.name)
async def test_the_server_judges_as_the_table_says(api: port.KubeApi, case: crd_rules.Case) -> None:
    name, namespace = case.new["metadata"]["name"], case.new["metadata"].get("namespace")
    try:
        if case.accepted:
            await write(api, case)
            return
        with pytest.raises(port.InvalidError) as refusal:
            await write(api, case)
        assert refusal.value.status == 422
        assert case.message in refusal.value.message
        assert case.field in refusal.value.message
    finally:
        with contextlib.suppress(port.NotFoundError):
            await api.delete(RESOURCES[case.kind], namespace, name)


def test_every_rule_of_the_crds_has_a_refused_case() -> None:
    for kind in RESOURCES:
        refused = [case.message for case in crd_rules.CASES if case.kind == kind and not case.accepted]
        for rule in kinds.KINDS[kind].rules:
            assert any(part in rule.message for part in refused), f"no case breaks: {rule.message}"
