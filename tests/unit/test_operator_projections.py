"""Nodes and queues as the operator keeps them, whatever stands in them."""

import json

import pytest

from cases import objects, raw
from lstqueue.engine import model
from lstqueue.operator import ledger, nodes, queues
from lstqueue.topology import model as topology


def test_a_node_is_read_without_its_heartbeats():
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    first, second = raw.node(taints=[taint, {"key": "x", "effect": "NoExecute"}]), raw.node(taints=[taint])
    view = nodes.read(first)
    assert view.taints == (topology.Taint("gpu", "yes", "NoSchedule"), topology.Taint("x", "", "NoExecute"))
    assert dict(view.allocatable) == {"cpu": 64_000, "pods": 110, raw.GPU: 8}
    assert view != nodes.read(second)
    assert nodes.read(raw.node()) == nodes.read(raw.node())


@pytest.mark.parametrize(
    ("node", "ready"),
    [
        (raw.node(), True),
        (raw.node(ready=False), False),
        (raw.leaving({**raw.node(), "metadata": {"name": "x", "resourceVersion": "1"}}), False),
        ({"metadata": {"name": "new"}}, False),
    ],
)
def test_only_a_node_that_says_so_is_ready(node, ready):
    assert nodes.read(node).ready is ready


def test_amounts_that_make_no_sense_count_as_none():
    node = raw.node()
    node["status"]["allocatable"] = {"cpu": "-1", "memory": "much", raw.GPU: "8", "zero": "0"}
    assert nodes.read(node).allocatable == ((raw.GPU, 8),)


def test_a_node_is_what_it_offers_less_what_is_used():
    node = nodes.read(raw.node()).engine_node({raw.GPU: 3, "cpu": 0})
    assert (node.used, node.ready, dict(node.labels)) == (((raw.GPU, 3),), True, {"pool": "a100"})


def test_a_queue_is_read_for_the_engine():
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    pool = objects.pool(nodeSelector={"pool": "a100"}, tolerations=[toleration])
    view = queues.read(
        raw.queue(
            pools=[pool],
            order="edf",
            maxImportance=2,
            bindTimeout="90s",
            defaults={"estimatedDuration": "1h"},
        )
    )
    assert view.engine == model.Queue(
        "research",
        model.Order.EDF,
        (
            model.Pool(
                "a100",
                (("pool", "a100"),),
                (topology.Toleration("gpu", "Exists", "", "NoSchedule"),),
                ((raw.GPU, 64),),
            ),
        ),
        2,
        promises=False,
    )
    assert (view.bind_timeout, view.ready_timeout) == (90_000, 30 * raw.MINUTE)
    assert (view.default_estimate, view.problem) == (raw.HOUR, "")
    assert view.pool_tolerations("a100") == (toleration,)
    assert view.pool_tolerations("nobody") == ()


def test_how_a_queue_preempts_sheds_and_stops_is_read_for_the_engine():
    usual = queues.read(raw.queue()).engine
    assert (usual.preemption, usual.min_run, usual.cap) == (model.Preemption.NO_HARM, 15 * raw.MINUTE, 4)
    assert (usual.shedding, usual.held, usual.drained, usual.observed) == (True, False, False, False)
    view = queues.read(
        raw.queue(
            preemption={"withinQueue": "Tier", "minRunTime": "0s", "maxPerJobPerDay": 0},
            overload={"shedding": False},
            stopPolicy="Hold",
            mode="Observe",
            priorityClasses=["batch"],
        )
    )
    engine = view.engine
    assert (engine.preemption, engine.min_run, engine.cap) == (model.Preemption.TIER, 0, 0)
    assert (engine.shedding, engine.held, engine.drained, engine.observed) == (False, True, False, True)
    assert view.priority_classes == ("batch",)
    drained = queues.read(raw.queue(stopPolicy="HoldAndDrain")).engine
    assert (drained.held, drained.drained) == (True, True)


A, B, GPU, BOTH = {"team": "a"}, {"team": "b"}, {"gpu": ""}, {"team": "a", "gpu": ""}


def demand(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (objects.ABSENT, [{}, A, B, GPU, BOTH]),
        ({}, [{}, A, B, GPU, BOTH]),
        ({"matchLabels": A}, [A, BOTH]),
        (demand("team", "In", "a", "b"), [A, B, BOTH]),
        (demand("team", "NotIn", "b"), [{}, A, GPU, BOTH]),
        (demand("gpu", "Exists"), [GPU, BOTH]),
        (demand("gpu", "DoesNotExist"), [{}, A, B]),
        ({"matchLabels": A, **demand("gpu", "DoesNotExist")}, [A]),
    ],
)
def test_a_queue_takes_namespaces_by_their_labels(selector, taken):
    view = queues.read(raw.queue(namespaceSelector=selector))
    assert [labels for labels in ({}, A, B, GPU, BOTH) if view.selects(labels)] == taken


def test_defaults_of_a_queue_are_for_jobs_that_say_nothing_of_checkpoints():
    checkpoint = {"interval": "1h", "onSuspend": True, "restartOverhead": "2m"}
    defaults = queues.read(raw.queue(defaults={"checkpoint": checkpoint})).defaults
    filled = defaults.fill(ledger.read(raw.deadline_job()).spec)
    assert (filled.checkpoint, filled.saves_on_suspend) == (raw.HOUR, True)
    assert filled.restart_overhead == 2 * raw.MINUTE
    own = ledger.read(raw.deadline_job(checkpoint={"interval": "5m"})).spec
    assert defaults.fill(own) == own
    assert queues.read(raw.queue()).defaults.fill(own) == own


def test_what_a_pool_tolerates_is_plain_json_for_the_pods():
    pool = objects.pool(tolerations=[{"key": "gpu", "value": "yes"}])
    (given,) = queues.read(raw.queue(pools=[pool])).pool_tolerations("a100")
    assert given == {"key": "gpu", "operator": "Equal", "value": "yes"}
    assert {type(value) for value in given.values()} == {str}
    assert json.loads(json.dumps(given)) == given


@pytest.mark.parametrize(
    "spec",
    [
        {"pools": []},
        {"pools": [objects.pool(resources=[{"name": raw.GPU, "nominal": "many"}])]},
        {"order": "random"},
        {"bindTimeout": "0s"},
    ],
)
def test_a_queue_that_cannot_be_read_admits_nothing_and_says_why(spec):
    view = queues.read(raw.queue(**spec))
    assert view.engine.pools == ()
    assert "spec." in view.problem


def test_only_the_status_of_a_queue_may_change_without_notice():
    queue = raw.queue()
    view = queues.read(queue)
    assert view.same_spec(queues.read(raw.touched(queue, status={"pending": 1})))
    assert not view.same_spec(queues.read(raw.touched(queue, spec={**queue["spec"], "order": "edf"})))
