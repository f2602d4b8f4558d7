"""The store: one order of events for all, objects that never change, deletion, binding, repeatability."""

import copy
from typing import Any

import pytest

from lstqueue.embedded import eventlog, kinds, store
from lstqueue.kube import port

NOW = 1_767_225_600_000
CONFIG_MAPS = kinds.CONFIG_MAPS


class Clock:
    def __init__(self) -> None:
        self.ms = NOW

    def now(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def objects(clock: Clock) -> store.Store:
    return store.Store(now=clock.now)


def config_map(name: str, **metadata: Any) -> port.Object:
    return {"metadata": {"name": name, **metadata}, "data": {"key": "value"}}


def pod(name: str = "pod", **spec: Any) -> port.Object:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_every_write_is_announced_once_and_in_order(objects: store.Store) -> None:
    seen: list[tuple[str, int]] = []
    stop = objects.subscribe(lambda event: seen.append((event.type, event.rv)))
    start = objects.revision
    objects.create(CONFIG_MAPS, "default", config_map("one"))
    objects.patch(CONFIG_MAPS, "default", "one", {"data": {"key": "newer"}})
    objects.patch(CONFIG_MAPS, "default", "one", {"data": {"key": "newer"}})
    objects.delete(CONFIG_MAPS, "default", "one")
    stop()
    objects.create(CONFIG_MAPS, "default", config_map("two"))
    assert seen == [("ADDED", start + 1), ("MODIFIED", start + 2), ("DELETED", start + 3)]


def test_a_subscriber_that_writes_does_not_disturb_the_order(objects: store.Store) -> None:
    first: list[str] = []
    second: list[str] = []

    def answer(event: eventlog.Event) -> None:
        name = event.object["metadata"]["name"]
        first.append(name)
        if name == "question":
            objects.create(CONFIG_MAPS, "default", config_map("answer"))

    objects.subscribe(answer)
    objects.subscribe(lambda event: second.append(event.object["metadata"]["name"]))
    objects.create(CONFIG_MAPS, "default", config_map("question"))
    assert first == second == ["question", "answer"]


def test_an_event_carries_the_object_before_and_after(objects: store.Store) -> None:
    seen: list[eventlog.Event] = []
    objects.create(CONFIG_MAPS, "default", config_map("one"))
    objects.subscribe(seen.append)
    objects.patch(CONFIG_MAPS, "default", "one", {"data": {"key": "newer"}})
    [event] = seen
    assert event.old is not None
    assert (event.old["data"], event.object["data"]) == ({"key": "value"}, {"key": "newer"})


def test_stored_objects_do_not_change_under_a_write(objects: store.Store) -> None:
    before = objects.create(CONFIG_MAPS, "default", config_map("one", labels={"a": "b"}))
    frozen = copy.deepcopy(before)
    objects.patch(
        CONFIG_MAPS, "default", "one", {"metadata": {"labels": {"a": "c"}}, "data": {"key": "newer"}}
    )
    objects.update(CONFIG_MAPS, "default", "one", lambda obj: obj["metadata"]["labels"].clear())
    assert before == frozen


def test_a_body_may_be_changed_after_it_was_given(objects: store.Store) -> None:
    body = config_map("one")
    objects.create(CONFIG_MAPS, "default", body)
    body["data"]["key"] = "later"
    assert objects.get(CONFIG_MAPS, "default", "one")["data"] == {"key": "value"}


def test_a_copy_of_a_stored_object_has_an_encoding_of_its_own(objects: store.Store) -> None:
    stored = objects.create(CONFIG_MAPS, "default", config_map("one"))
    stored.json()
    copied = copy.deepcopy(stored)
    copied["data"]["key"] = "other"
    assert b"other" not in stored.json()
    assert type(copied) is dict
    assert type(stored.copy()) is dict


def test_update_reads_and_writes_in_one_step(objects: store.Store) -> None:
    objects.create(port.NODES, None, {"metadata": {"name": "node"}})

    def cordon(node: port.Object) -> None:
        node.setdefault("spec", {})["unschedulable"] = True

    assert objects.update(port.NODES, None, "node", cordon)["spec"] == {"unschedulable": True}


def test_update_of_the_status_ignores_the_spec(objects: store.Store) -> None:
    objects.create(port.PODS, "default", pod())

    def run(target: port.Object) -> None:
        target["status"]["phase"] = "Running"
        target["spec"]["nodeName"] = "elsewhere"

    updated = objects.update(port.PODS, "default", "pod", run, subresource="status")
    assert updated["status"]["phase"] == "Running"
    assert "nodeName" not in updated["spec"]


def test_a_pod_is_bound_in_process(objects: store.Store) -> None:
    objects.create(port.PODS, "default", pod())
    bound = objects.bind("default", "pod", "node")
    assert bound["spec"]["nodeName"] == "node"
    with pytest.raises(port.ConflictError):
        objects.bind("default", "pod", "other")


def test_a_bound_pod_waits_for_its_kubelet(objects: store.Store, clock: Clock) -> None:
    objects.create(port.PODS, "default", pod(terminationGracePeriodSeconds=45))
    objects.bind("default", "pod", "node")
    marked = objects.delete(port.PODS, "default", "pod")
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:45Z"
    clock.ms += 10_000
    assert objects.delete(port.PODS, "default", "pod") == marked
    objects.delete(port.PODS, "default", "pod", grace_seconds=0)
    assert objects.find(port.PODS, "default", "pod") is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_goes_at_once(objects: store.Store, phase: str) -> None:
    objects.create(port.PODS, "default", pod())
    objects.bind("default", "pod", "node")
    objects.patch(port.PODS, "default", "pod", {"status": {"phase": phase}}, subresource="status")
    objects.delete(port.PODS, "default", "pod")
    assert objects.find(port.PODS, "default", "pod") is None


def test_a_pod_with_a_finalizer_outlives_its_kubelet(objects: store.Store) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    objects.create(port.PODS, "default", body)
    objects.bind("default", "pod", "node")
    objects.delete(port.PODS, "default", "pod")
    objects.patch(port.PODS, "default", "pod", {"metadata": {"finalizers": None}})
    # The finalizer is gone, but the grace period is still the kubelet's to end.
    assert objects.find(port.PODS, "default", "pod") is not None
    objects.delete(port.PODS, "default", "pod", grace_seconds=0)
    assert objects.find(port.PODS, "default", "pod") is None


@pytest.mark.parametrize(
    ("propagation", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])]
)
def test_propagation_leaves_work_for_the_garbage_collector(
    objects: store.Store, propagation: str, finalizers: list[str]
) -> None:
    objects.create(CONFIG_MAPS, "default", config_map("one"))
    marked = objects.delete(CONFIG_MAPS, "default", "one", propagation=propagation)
    assert marked["metadata"]["finalizers"] == finalizers
    objects.patch(CONFIG_MAPS, "default", "one", {"metadata": {"finalizers": None}})
    assert objects.find(CONFIG_MAPS, "default", "one") is None


def test_a_job_orphans_its_pods_unless_told_otherwise(objects: store.Store) -> None:
    template = {"spec": {**pod()["spec"], "restartPolicy": "Never"}}
    for name in ("one", "two"):
        objects.create(port.JOBS, "default", {"metadata": {"name": name}, "spec": {"template": template}})
    assert objects.delete(port.JOBS, "default", "one", propagation="")["metadata"]["finalizers"] == ["orphan"]
    objects.delete(port.JOBS, "default", "two")
    assert objects.find(port.JOBS, "default", "two") is None


def test_equal_seeds_give_equal_names_and_uids(clock: Clock) -> None:
    def run(seed: int) -> list[tuple[str, str]]:
        objects = store.Store(now=clock.now, random_seed=seed)
        made = [
            objects.create(CONFIG_MAPS, "default", {"metadata": {"generateName": "a-"}}) for _ in range(5)
        ]
        return [(item["metadata"]["name"], item["metadata"]["uid"]) for item in made]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_lists_are_in_order_and_per_namespace(objects: store.Store) -> None:
    for namespace in ("b", "a", "a-b"):
        objects.create(port.NAMESPACES, None, {"metadata": {"name": namespace}})
        for name in ("two", "one"):
            objects.create(CONFIG_MAPS, namespace, config_map(name))
    assert objects.keys(CONFIG_MAPS, "a") == ["one", "two"]
    assert [row["metadata"]["name"] for row in objects.list(CONFIG_MAPS, namespace="a")] == ["one", "two"]
    places = [row["metadata"]["namespace"] for row in objects.list(CONFIG_MAPS)]
    assert places == ["a", "a", "a-b", "a-b", "b", "b"]


def test_a_namespace_waits_for_what_is_held(objects: store.Store) -> None:
    objects.create(port.NAMESPACES, None, {"metadata": {"name": "ns"}})
    objects.create(CONFIG_MAPS, "ns", config_map("held", finalizers=["example.com/hold"]))
    objects.create(CONFIG_MAPS, "ns", config_map("free"))
    objects.create(port.PODS, "ns", pod())
    objects.bind("ns", "pod", "node")
    objects.delete(port.NAMESPACES, None, "ns")
    assert objects.keys(CONFIG_MAPS, "ns") == ["held"]
    objects.patch(CONFIG_MAPS, "ns", "held", {"metadata": {"finalizers": None}})
    assert objects.get(port.NAMESPACES, None, "ns")["status"]["phase"] == "Terminating"
    objects.delete(port.PODS, "ns", "pod", grace_seconds=0)
    assert objects.find(port.NAMESPACES, None, "ns") is None


def test_the_log_forgets_the_oldest(clock: Clock) -> None:
    objects = store.Store(now=clock.now, log_size=3)
    start = objects.revision
    for number in range(5):
        objects.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
    log = objects.log(CONFIG_MAPS)
    assert [event.rv for event in log.since(start + 2)] == [start + 3, start + 4, start + 5]
    assert log.since(start + 5) == []
    with pytest.raises(port.GoneError):
        log.since(start + 1)


def test_a_quiet_kind_keeps_its_log_while_another_is_busy(clock: Clock) -> None:
    objects = store.Store(now=clock.now, log_size=3)
    start = objects.revision
    objects.create(port.LEASES, "default", {"metadata": {"name": "lock"}, "spec": {}})
    for number in range(5):
        objects.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
    assert len(objects.log(port.LEASES).since(start)) == 1


def test_compaction_forgets_everything(objects: store.Store) -> None:
    start = objects.revision
    objects.create(CONFIG_MAPS, "default", config_map("one"))
    objects.compact()
    with pytest.raises(port.GoneError):
        objects.log(CONFIG_MAPS).since(start)
    assert objects.log(CONFIG_MAPS).since(objects.revision) == []


def test_the_default_class_gives_pods_their_priority(objects: store.Store) -> None:
    body = {"metadata": {"name": "usual"}, "value": 9, "globalDefault": True, "preemptionPolicy": "Never"}
    objects.create(port.PRIORITY_CLASSES, None, body)
    spec = objects.create(port.PODS, "default", pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]) == (9, "usual", "Never")
