"""Nodes and queues as the operator keeps them, whatever stands in them."""

import json

import pytest

from cases import objects, raw
from lstqueue.engine import model
from lstqueue.operator import nodes, queues
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
    )
    assert (view.bind_timeout, view.ready_timeout) == (90_000, 30 * raw.MINUTE)
    assert (view.default_estimate, view.problem) == (raw.HOUR, "")
    assert view.pool_tolerations("a100") == (toleration,)
    assert view.pool_tolerations("nobody") == ()


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
