"""What keeps a gang from ever starting is told by its true cause and by name: in WHY and in the verdict."""

from __future__ import annotations

import dataclasses

import pytest

from lstqueue.api import annotations, names
from lstqueue.engine import decide, explain, model, words
from lstqueue.topology.model import Node, PodShape, resources

PLAIN = model.Config(promising=False)  # what a forecast says, without a promise
GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
HOUR = model.HOUR
CLOSED: dict[str, bool] = {"unschedulable": True}
LOST: dict[str, bool] = {"ready": False}


def job(uid: str, count: int = 1, **more: object) -> model.Job:
    shape = PodShape(resources({GPU: 8, "pods": 1}))
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW, "deadline": NOW + 99 * HOUR,
        "groups": (model.Group("g", count, shape),), "estimate": model.Estimate(HOUR, HOUR, HOUR),
    }  # fmt: skip
    return model.Job(**(base | more))


def running(uid: str, node: str, **more: object) -> model.Job:
    parts = (model.Assigned(0, "p", node, 0, 1),)
    return job(uid, **({"state": model.State.RUNNING, "since": NOW, "assigned": parts} | more))


def foreign(*names_: str) -> tuple[model.Foreign, ...]:
    gpus = resources({GPU: 8, "pods": 1})
    return tuple(model.Foreign("lab", name, gpus) for name in names_)


def world(
    *jobs: model.Job,
    gpus: int = 64,
    pods: dict[str, tuple[model.Foreign, ...]] | None = None,
    order: model.Order = model.Order.LST,
    **closed: dict[str, bool],
) -> model.Snapshot:
    """Two nodes of eight GPUs; `pods` are foreign ones by node, `closed` what is wrong with a node."""
    there = pods or {}
    nodes = []
    for name in ("n0", "n1"):
        used = resources({GPU: 8 * len(there.get(name, ())), "pods": len(there.get(name, ()))})
        nodes.append(Node(name, resources({GPU: 8, "pods": 9}), used=used, **closed.get(name, {})))
    queue = model.Queue("q", order, pools=(model.Pool("p", nominal=((GPU, gpus),)),), shedding=False)
    return model.Snapshot(tuple(nodes), (queue,), jobs, foreign=there)


def told(snapshot: model.Snapshot, uid: str = "a") -> model.Update:
    plan = decide.decide(snapshot, NOW, PLAIN)
    return next(update for update in plan.updates if update.uid == uid)


def verdict(snapshot: model.Snapshot) -> str:
    found = told(snapshot).verdict
    assert found is not None
    assert found.level is model.Level.UNLIKELY
    return found.reason


@pytest.mark.parametrize(("closed", "how"), [(CLOSED, "cordoned"), (LOST, "not ready")])
def test_a_closed_node_is_the_cause_and_is_named(closed: dict[str, bool], how: str) -> None:
    assert verdict(world(job("a", 2), n1=closed)) == f"No start can be foreseen: n1 is {how}."


def test_a_job_without_an_estimate_is_named() -> None:
    assert verdict(world(running("r", "n1", estimate=None), job("a", 2))) == (
        "No start can be foreseen: ns/r, which has no estimate, holds its room."
    )
    several = [running("r", "n0", estimate=None), running("s", "n1", estimate=None)]
    assert verdict(world(*several, job("a", 2))) == (
        "No start can be foreseen: ns/r and ns/s, which have no estimate, hold its room."
    )


def test_a_foreign_pod_is_named_with_its_node() -> None:
    assert verdict(world(job("a", 2), pods={"n1": foreign("notebook")})) == (
        "No start can be foreseen: foreign pod lab/notebook on n1 holds its room."
    )


def test_who_is_expected_to_end_is_no_cause() -> None:
    snapshot = world(running("r", "n0"), running("s", "n1", estimate=None), job("a", 2))
    assert "ns/r" not in verdict(snapshot)
    assert "ns/s" in verdict(snapshot)


def test_several_causes_are_all_told() -> None:
    snapshot = world(job("a", 2), pods={"n0": foreign("notebook")}, n1=CLOSED)
    assert "foreign pod lab/notebook on n0 holds its room" in verdict(snapshot)


def test_who_holds_the_quota_without_an_estimate_is_named() -> None:
    assert verdict(world(running("r", "n0", estimate=None), job("a"), gpus=8)) == (
        "No start can be foreseen: ns/r, which has no estimate, holds its quota."
    )


def test_behind_the_head_of_a_strict_queue_the_head_is_named() -> None:
    head = job("head", 2, submit=NOW - 9)
    held = running("r", "n0", estimate=None)
    assert verdict(world(held, head, job("a"), order=model.Order.FIFO)) == (
        "No start can be foreseen: it waits behind ns/head, which is at the head of its queue."
    )


def test_of_many_only_the_first_few_are_named() -> None:
    there = {"n0": foreign(*"abcde")}
    assert verdict(world(job("a", 2), pods=there)).endswith(
        "foreign pods lab/a on n0, lab/b on n0, lab/c on n0 and 2 more hold its room."
    )


def test_why_names_the_cordon_beside_a_quota_that_is_used_up() -> None:
    snapshot = world(running("r", "n0"), job("a", 2), gpus=16, n1=CLOSED)
    assert told(snapshot).message == (
        'It needs 16 nvidia.com/gpu, and 8 of the 16 of pool "p" in queue "q" are free, and n1 is cordoned;'
        " it starts when others leave and it is uncordoned."
    )
    # Where the open nodes would do once others have left, the cordon keeps nobody from it.
    enough = world(running("r", "n0"), job("a"), gpus=8, n1=CLOSED)
    assert told(enough).message.endswith("are free; it starts when others leave.")


def test_why_and_the_blockers_name_foreign_pods() -> None:
    snapshot = world(job("a", 2), pods={"n1": foreign("notebook", "other")})
    assert told(snapshot).message == (
        'Group "g" is 2 pods of 8 nvidia.com/gpu, and 1 of them fit now on 2 matching nodes, where foreign'
        " pods lab/notebook on n1 and lab/other on n1 take room; it starts when others leave."
    )
    found = explain.explain(snapshot, decide.decide(snapshot, NOW, PLAIN), "a").blockers
    assert found == (
        model.Blocker("", "lab", "notebook", "holding", "n1"),
        model.Blocker("", "lab", "other", "holding", "n1"),
    )


@pytest.mark.parametrize(
    ("taken", "named", "said"),
    [
        ("n1", (), "foreign pods on n1 {} room"),
        ("n0 n1", (), "foreign pods on n0 and n1 {} room"),
        ("n0 n1", ("n0",), "foreign pods lab/notebook on n0 and others on n1 {} room"),
    ],
)
def test_foreign_pods_whose_names_are_not_known_are_told_by_their_nodes(
    taken: str, named: tuple[str, ...], said: str
) -> None:
    snapshot = world(job("a", 2), pods={node: foreign("notebook") for node in taken.split()})
    pods = {node: one for node, one in snapshot.foreign.items() if node in named}
    snapshot = dataclasses.replace(snapshot, foreign=pods)
    assert f": {said.format('hold its')}." in verdict(snapshot)
    assert f"where {said.format('take')};" in told(snapshot).message


def test_foreign_pods_that_take_nothing_it_needs_are_not_spoken_of() -> None:
    small = (model.Foreign("kube-system", "proxy", resources({"cpu": 100, "pods": 1})),)
    snapshot = world(running("r", "n0"), job("a", 2), pods={"n1": ()})
    there = dataclasses.replace(snapshot, foreign={"n0": small, "n1": small})
    assert "foreign" not in told(there).message
    assert told(there).message.endswith("; it starts when others leave.")


LABELLED: dict[str, object] = {"labelled": True}


def test_a_labelled_job_is_told_of_labels_and_annotations() -> None:
    no_queue = told(world(job("a", queue="none", **LABELLED)))
    assert no_queue.message == (
        'There is no queue "none"; create that GPUQueue or name one that exists in label'
        " lstqueue.dev/queue of the Job."
    )
    found = told(world(job("a", estimate=None, **LABELLED))).verdict
    assert found is not None
    assert found.reason == ("It has no estimate; set annotation lstqueue.dev/estimated-duration of the Job.")


@pytest.mark.parametrize("field", ["spec.queue", "spec.value", "spec.onMissed", "spec.maxRunTime"])
def test_the_names_of_labels_and_annotations_are_those_that_are_read(field: str) -> None:
    assert words.field(field, labelled=False) == field
    kind, name = words.field(field, labelled=True).split()[:2]
    if kind == "label":
        assert name == names.LABEL_QUEUE
    else:
        said = {name: "1h" if "time" in name else "1" if "value" in name else "Cancel"}
        read = annotations.read({}, said)
        assert (read.problems, read.unread) == ((), ())


@pytest.mark.parametrize("more", [{}, {"estimate": None}, {"state": model.State.RUNNING, "since": NOW}])
def test_a_deadline_past_from_the_first_is_asked_about(more: dict[str, object]) -> None:
    assigned = {"assigned": (model.Assigned(0, "p", "n0", 0, 1),)} if "state" in more else {}
    found = told(world(job("a", deadline=NOW - 9 * HOUR, expired=True, **more, **assigned))).verdict
    assert found is not None
    assert found.reason == "Its deadline was past already when it was submitted; is the year right?"
