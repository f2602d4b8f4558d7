"""GPUQueues that the CRD accepts or refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cases import crd_case, objects


def specs() -> Iterable[crd_case.Case]:
    yield crd_case.Case(
        "the least that a queue needs", objects.queue(pools=[objects.pool(resources=objects.ABSENT)])
    )
    yield crd_case.Case(
        "everything a queue can say",
        objects.queue(
            pools=[
                objects.pool(
                    nodeSelector={"gpu": "a100"},
                    tolerations=[
                        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
                        {"key": "team", "value": "research"},
                        {"operator": "Exists"},
                    ],
                ),
                objects.pool(
                    "cpu",
                    spot=True,
                    resources=[{"name": "cpu", "nominal": "500m"}, {"name": "memory", "nominal": "2Ti"}],
                ),
            ],
            order="edf",
            defaults={"estimatedDuration": "8h", "checkpoint": {"interval": "1h"}},
            maxImportance=10,
            bindTimeout="90s",
            gangReadyTimeout="1h",
            namespaceSelector={
                "matchLabels": {"team": "research"},
                "matchExpressions": [
                    {"key": "stage", "operator": "NotIn", "values": ["test"]},
                    {"key": "gpu", "operator": "Exists"},
                    {"key": "legacy", "operator": "DoesNotExist", "values": []},
                ],
            },
            priorityClasses=["batch"],
            preemption={"withinQueue": "Tier", "minRunTime": "0s", "maxPerJobPerDay": 0},
            overload={"shedding": False, "bestEffortShare": "2.5%", "promiseBudget": "30%"},
            windows=[
                {"name": "day", "schedule": "0 8 * * MON-FRI", "zone": "Europe/Berlin", "duration": "12h"},
                {
                    "name": "night",
                    "schedule": "*/30 0-5 1,15 * *",
                    "zone": "UTC",
                    "duration": "1m",
                    "keepFree": "0.5%",
                },
            ],
            stopPolicy="HoldAndDrain",
            mode="Observe",
        ),
    )
    for nominal in (0, "0", "1e3", "0.5", ".5", "5.", "+5", "100m", "1E"):
        yield crd_case.Case(
            f"a quota of {nominal!r}", objects.quota(nominal, "cpu" if nominal != "1E" else "memory")
        )
    for nominal in (
        -1,
        "-1",
        "-0.5Gi",
        "",
        "m",
        "Ki",
        "1.2.3",
        "ten",
        "1 Gi",
        "1KB",
        "2E",
        "9Ei",
        "1e19",
        "٣",
    ):
        yield crd_case.refused(
            f"a quota of {nominal!r}", objects.quota(nominal), "resources[0].nominal", "not a quantity"
        )
    for nominal in ("0.5", "500m"):
        yield crd_case.refused(
            f"{nominal} GPUs", objects.quota(nominal), "resources[0].nominal", "in whole pieces"
        )
    yield crd_case.refused(
        "a quota of half a piece", objects.quota(0.5), "resources[0].nominal", "of type integer"
    )
    yield crd_case.refused("an endless quota", objects.quota("1" * 33), "resources[0].nominal", "Too long")
    yield crd_case.refused(
        "no quota",
        objects.queue(pools=[objects.pool(resources=[{"name": "cpu"}])]),
        "resources[0].nominal",
        "Required",
    )
    yield crd_case.refused(
        "a resource twice",
        objects.queue(pools=[objects.pool(resources=[{"name": "cpu", "nominal": 1}] * 2)]),
        "spec.pools[0].resources[1]",
        "Duplicate",
    )
    yield crd_case.refused(
        "a resource with a blank", objects.quota(1, "nvidia gpu"), "resources[0].name", "should match"
    )
    yield from _cohorts()
    yield crd_case.refused("no pools", objects.queue(pools=objects.ABSENT), "spec.pools", "Required")
    yield crd_case.refused(
        "an empty list of pools", objects.queue(pools=[]), "spec.pools", "at least 1 items"
    )
    yield crd_case.refused(
        "a pool twice", objects.queue(pools=[objects.pool(), objects.pool()]), "spec.pools[1]", "Duplicate"
    )
    yield crd_case.refused(
        "seventeen pools",
        objects.queue(pools=[objects.pool(f"p{index}") for index in range(17)]),
        "spec.pools",
        "Too many",
    )
    labels = {f"label-{index}": "x" for index in range(17)}
    yield crd_case.refused(
        "seventeen labels",
        objects.queue(pools=[objects.pool(nodeSelector=labels)]),
        "nodeSelector",
        "Too many",
    )
    yield crd_case.refused(
        "a label that is a number",
        objects.queue(pools=[objects.pool(nodeSelector={"gpu": 1})]),
        "spec.pools[0].nodeSelector.gpu",
        "must be of type string",
    )
    yield crd_case.refused("an unknown order", objects.queue(order="lifo"), "spec.order", '"fifo"')
    yield crd_case.refused(
        "an impatient queue", objects.queue(bindTimeout="0s"), "spec.bindTimeout", "more than zero"
    )
    yield crd_case.refused(
        "a timeout without a unit",
        objects.queue(gangReadyTimeout="30"),
        "spec.gangReadyTimeout",
        "not a duration",
    )
    yield crd_case.refused(
        "a default without a unit",
        objects.queue(defaults={"estimatedDuration": "8"}),
        "spec.defaults.estimatedDuration",
        "not a duration",
    )
    yield crd_case.refused("no key to equal", objects.toleration(value="x"), "tolerations[0]", "set key")
    yield crd_case.refused(
        "an empty key to equal", objects.toleration(key="", operator="Equal"), "tolerations[0]", "set key"
    )
    yield crd_case.refused(
        "a value that merely exists",
        objects.toleration(key="gpu", operator="Exists", value="x"),
        "tolerations[0]",
        "remove value",
    )
    yield crd_case.refused(
        "an unknown operator", objects.toleration(key="gpu", operator="In"), "operator", '"Exists"'
    )
    yield crd_case.refused(
        "an unknown effect", objects.toleration(key="gpu", effect="NoWay"), "effect", '"NoExecute"'
    )
    yield crd_case.refused(
        "a queue's name that is too long", objects.queue("q" * 64), "metadata.name", "more than 63"
    )
    yield crd_case.Case(
        "a queue's pools may change", objects.queue(pools=[objects.pool("h100")]), old=objects.queue()
    )


def _cohorts() -> Iterator[crd_case.Case]:
    def borrower(limit: Any, name: str = "nvidia.com/gpu", **more: Any) -> objects.Object:
        resource = {"name": name, "nominal": 1, "borrowingLimit": limit}
        return objects.queue(pools=[objects.pool(resources=[resource])], **{"cohort": "ml", **more})

    yield crd_case.Case("a cohort", objects.queue(cohort="ml"))
    for limit in (0, "0", 8, "1e3"):
        yield crd_case.Case(f"a borrowing limit of {limit!r}", borrower(limit))
    yield crd_case.Case("half a core to borrow", borrower("500m", "cpu"))
    yield crd_case.refused("a debt", borrower(-1), "resources[0].borrowingLimit", "not a quantity")
    yield crd_case.refused(
        "half a GPU to borrow", borrower("500m"), "resources[0].borrowingLimit", "in whole pieces"
    )
    yield crd_case.refused(
        "a borrower without a cohort", borrower(1, cohort=objects.ABSENT), "spec.cohort", "is in none"
    )
    yield crd_case.refused(
        "a cohort with a blank", objects.queue(cohort="m l"), "spec.cohort", "should match"
    )
