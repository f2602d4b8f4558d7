"""Who is admitted where, and on which machine of a name."""

from typing import Any

from lstqueue.operator import ledger, occupancy


def node(uid: str) -> dict[str, Any]:
    meta = {"name": "x", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}}
    return {"metadata": meta, "status": {}, "spec": {}}


def admitted(at: int = 1) -> ledger.Admission:
    group = ledger.GroupAdmission("worker", "p", (("x", (0, 1)), ("y", (2,))))
    return ledger.Admission(at=at, queue="q", shape="s", groups=(group,))


def on_a_node_made_anew() -> occupancy.Occupancy:
    there = occupancy.Occupancy()
    there.apply("ADDED", node("1"))
    there.place("g", None, admitted())
    there.apply("MODIFIED", node("2"))
    return there


def test_who_was_admitted_on_a_node_is_not_on_one_made_anew_under_its_name() -> None:
    there = on_a_node_made_anew()
    assert there.left("g", "x")
    assert not there.left("g", "y")


def test_a_node_stays_left_for_the_ranks_that_do_not_move() -> None:
    there, before = on_a_node_made_anew(), admitted()
    there.place("g", before, before.moved(0, "z"))
    assert there.left("g", "x")
    there.place("g", before.moved(0, "z"), before.moved(0, "z").moved(1, "z"))
    assert not there.left("g", "x")


def test_another_admission_is_on_the_machine_that_is_there_now() -> None:
    there = on_a_node_made_anew()
    there.place("g", admitted(), admitted(at=2))
    assert not there.left("g", "x")
