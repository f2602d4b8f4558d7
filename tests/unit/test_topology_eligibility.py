from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from lstqueue.topology import eligibility, table
from lstqueue.topology.model import Node, PodShape, Requirement, Taint, Toleration

POD = PodShape(requests=(("pods", 1),))


def node(name: str = "n1", labels: dict[str, str] | None = None, **more: object) -> Node:
    return Node(name, (("pods", 10),), labels=tuple((labels or {}).items()), **more)


def fits(one: Node, shape: PodShape = POD, **more: object) -> bool:
    """Both ways of asking must agree."""
    answer = eligibility.eligible(one, shape, **more)
    assert table.NodeTable([one]).mask(shape, **more).tolist() == [answer]
    return answer


def wanting(*terms: tuple[Requirement, ...]) -> PodShape:
    return PodShape(requests=POD.requests, affinity=terms)


def test_unready_and_cordoned_nodes_take_nothing_now_but_could_in_better_times() -> None:
    for worse in (node(ready=False), node(unschedulable=True)):
        assert not fits(worse)
        assert fits(worse, lasting=True)


def test_selectors_of_pod_and_pool_must_both_match() -> None:
    one = node(labels={"gpu": "h100", "zone": "a"})
    shape = PodShape(requests=POD.requests, selector=(("zone", "a"),))
    assert fits(one, shape, selector=(("gpu", "h100"),))
    assert not fits(one, shape, selector=(("gpu", "a100"),))
    assert not fits(node(labels={"gpu": "h100"}), shape, selector=(("gpu", "h100"),))


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_pods_out_unless_pod_or_pool_tolerates_it(effect: str) -> None:
    tainted = node(taints=(Taint("dedicated", "ml", effect),))
    assert not fits(tainted)
    assert fits(tainted, tolerations=(Toleration("dedicated", "Equal", "ml"),))
    assert not fits(tainted, tolerations=(Toleration("dedicated", "Equal", "web"),))
    assert fits(
        tainted, PodShape(POD.requests, tolerations=(Toleration("dedicated", "Exists", effect=effect),))
    )
    assert not fits(tainted, tolerations=(Toleration("dedicated", "Exists", effect="PreferNoSchedule"),))
    assert fits(tainted, tolerations=(Toleration(operator="Exists"),))
    assert not fits(tainted, tolerations=(Toleration("dedicated", "Sometimes", "ml"),))


def test_a_preferred_taint_keeps_nobody_out() -> None:
    assert fits(node(taints=(Taint("spot", "", "PreferNoSchedule"),)))


def test_taints_of_passing_conditions_do_not_count_in_better_times() -> None:
    pressed = node(taints=(Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule"),))
    assert not fits(pressed)
    assert fits(pressed, lasting=True)
    assert not fits(node(taints=(Taint("dedicated", "", "NoSchedule"),)), lasting=True)


@pytest.mark.parametrize(
    ("operator", "values", "label", "expected"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), None, True),
        ("NotIn", ("a",), "a", False),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "x", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Lt", ("5",), "-7", True),
        ("Lt", ("5",), "four", False),
        ("Lt", ("5",), "٤", False),
        ("Gt", ("5",), "1_0", False),
        ("Gt", ("5", "6"), "9", False),
        ("Gt", ("5",), None, False),
        ("Gt", ("5",), "9" * 40, False),
        ("Near", ("a",), "a", False),
    ],
)
def test_affinity_operators(
    operator: str, values: tuple[str, ...], label: str | None, expected: bool
) -> None:
    one = node(labels={} if label is None else {"key": label})
    assert fits(one, wanting((Requirement("key", operator, values),))) is expected


def test_terms_are_alternatives_and_their_requirements_all_hold() -> None:
    shape = wanting(
        (Requirement("a", "Exists"), Requirement("b", "Exists")),
        (Requirement("metadata.name", "In", ("n7",), field=True),),
    )
    assert fits(node(labels={"a": "", "b": ""}), shape)
    assert not fits(node(labels={"a": ""}), shape)
    assert fits(node("n7"), shape)


def test_an_empty_term_matches_no_node_and_unknown_fields_neither() -> None:
    assert not fits(node(), wanting(()))
    assert fits(node(labels={"a": ""}), wanting((), (Requirement("a", "Exists"),)))
    assert not fits(node(), wanting((Requirement("metadata.uid", "In", ("n1",), field=True),)))
    assert not fits(node(), wanting((Requirement("metadata.name", "Exists", field=True),)))
    assert fits(node(), wanting((Requirement("metadata.name", "NotIn", ("n2",), field=True),)))


def test_two_nodes_of_one_name_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="n1 appears twice"):
        table.NodeTable([node("n1"), node("n2"), node("n1")])


def test_names_are_ordered_as_people_count() -> None:
    names = ["n10", "n2", "n01", "n1", "ü3", "n", "n2-b", "7"]
    assert [n.name for n in table.NodeTable([node(name) for name in names]).nodes] == [
        "7", "n", "n01", "n1", "n2", "n2-b", "n10", "ü3",
    ]  # fmt: skip


keys = st.sampled_from(["a", "b"])
texts = st.sampled_from(["", "1", "2", "x"])
requirements = st.builds(
    Requirement,
    st.sampled_from(["a", "b", "metadata.name"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "?"]),
    st.lists(texts, max_size=2).map(tuple),
    st.booleans(),
)
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", ""])
operators = st.sampled_from(["Equal", "Exists", "", "?"])
nodes = st.builds(
    Node,
    st.just("1"),
    st.just((("pods", 1),)),
    labels=st.dictionaries(keys, texts).map(lambda labels: tuple(labels.items())),
    taints=st.lists(st.builds(Taint, keys, texts, effects), max_size=2).map(tuple),
    ready=st.booleans(),
    unschedulable=st.booleans(),
)
tolerations = st.lists(
    st.builds(Toleration, st.sampled_from(["a", "b", ""]), operators, texts, effects), max_size=2
).map(tuple)
selectors = st.dictionaries(keys, texts, max_size=1).map(lambda labels: tuple(labels.items()))
shapes = st.builds(
    PodShape,
    st.just(POD.requests),
    selectors,
    st.lists(st.lists(requirements, max_size=2).map(tuple), max_size=2).map(tuple),
    tolerations,
)


@settings(max_examples=effort.examples(75), deadline=None)
@given(st.lists(nodes, max_size=4), shapes, selectors, tolerations, st.booleans())
def test_columns_and_plain_rules_agree(
    some: list[Node],
    shape: PodShape,
    selector: tuple[tuple[str, str], ...],
    tolerated: tuple[Toleration, ...],
    lasting: bool,
) -> None:
    named = [Node(f"{i}", *_rest(one)) for i, one in enumerate(some)]
    mask = table.NodeTable(named).mask(shape, selector=selector, tolerations=tolerated, lasting=lasting)
    plain = [
        eligibility.eligible(one, shape, selector=selector, tolerations=tolerated, lasting=lasting)
        for one in named
    ]
    assert mask.tolist() == plain


def _rest(one: Node) -> tuple[object, ...]:
    return (one.allocatable, one.used, one.labels, one.taints, one.ready, one.unschedulable)
