"""What the operator knows, whatever the order in which it hears of it."""

import itertools

import pytest

from cases import raw, walks
from lstqueue.api import names
from lstqueue.operator import cache as caches


class Knows:
    """A cache, how often it rang, and short forms of what can happen to it."""

    def __init__(self):
        self.rings = 0
        self.cache = caches.Cache(self._ring)

    def _ring(self):
        self.rings += 1

    def rang(self, tell):
        before = self.rings
        tell()
        return self.rings > before

    def used(self, node="gpu-1"):
        self.cache.apply_node("ADDED", raw.node(node))
        return next(dict(seen.used) for seen in self.cache.engine_nodes() if seen.name == node)

    def record(self, uid=raw.UID):
        return self.cache.records[uid]


JOB = raw.deadline_job()
CHILD = raw.child(JOB)
GATED = raw.pod(CHILD)
BOUND = raw.ungated(GATED, node="gpu-1", phase="Running")


def told(knows, events):
    apply = {"DeadlineJob": "apply_ledger", "Job": "apply_child"}
    for event, item in events:
        getattr(knows.cache, apply.get(item.get("kind"), "apply_pod"))(event, item)


@pytest.mark.parametrize("order", list(itertools.permutations(["job", "child", "pod"])))
def test_a_gang_finds_its_children_and_pods_in_any_order(order):
    knows = Knows()
    told(knows, [("ADDED", {"job": JOB, "child": CHILD, "pod": BOUND}[name]) for name in order])
    record = knows.record()
    assert list(record.children) == [CHILD["metadata"]["uid"]]
    assert list(record.pods) == [BOUND["metadata"]["uid"]]
    assert knows.used() == {raw.GPU: 8, "pods": 1}
    assert list(knows.cache.orphan_pods()) == []


def test_a_late_event_undoes_nothing():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", CHILD), ("ADDED", BOUND)])
    newer = raw.deadline_job(status={"phase": "Running"})
    told(knows, [("MODIFIED", newer), ("MODIFIED", JOB), ("MODIFIED", GATED)])
    assert knows.record().ledger.status.phase.value == "Running"
    assert next(iter(knows.record().pods.values())).node == "gpu-1"


def test_an_object_that_is_gone_is_not_revived_by_the_reply_of_a_write():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", CHILD), ("ADDED", BOUND)])
    replies = [raw.touched(JOB), raw.touched(CHILD), raw.touched(BOUND)]
    told(knows, [("DELETED", raw.touched(item)) for item in (BOUND, CHILD, JOB)])
    told(knows, [("MODIFIED", reply) for reply in replies])
    assert knows.cache.records == {}
    assert knows.used() == {}
    again = raw.deadline_job()
    again["metadata"]["uid"] = "uid-again"
    told(knows, [("ADDED", again)])
    assert knows.record("uid-again").pods == {}


def test_what_a_list_found_missing_is_gone_whatever_version_was_last_seen():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", BOUND)])
    remains = {"metadata": {**BOUND["metadata"], "labels": None}}
    reply = raw.touched(BOUND)
    told(knows, [("DELETED", remains), ("MODIFIED", reply)])
    assert knows.record().pods == {}
    assert knows.used() == {}


def test_a_deadline_job_that_a_list_did_not_show_is_not_revived_by_what_a_late_reply_says():
    knows = Knows()
    told(knows, [("ADDED", JOB)])
    remains = {"kind": "DeadlineJob", "metadata": JOB["metadata"]}
    told(knows, [("DELETED", remains), ("MODIFIED", raw.touched(JOB))])
    assert knows.cache.records == {}


@pytest.mark.parametrize("first", ["enters", "leaves"])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_pod_that_loses_or_gets_our_label_still_counts(first, labelled):
    """Two watches tell of it, each with its own event, at one version and in any order."""
    bare = raw.touched(BOUND)
    del bare["metadata"]["labels"][names.LABEL_JOB]
    before, after = (BOUND, bare) if labelled else (bare, BOUND)
    after = raw.touched(after)
    left = {
        **before,
        "metadata": {**before["metadata"], "resourceVersion": after["metadata"]["resourceVersion"]},
    }
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", before)])
    events = [("ADDED", after), ("DELETED", left)]
    told(knows, events if first == "enters" else events[::-1])
    assert knows.used() == {raw.GPU: 8, "pods": 1}
    assert bool(knows.record().pods) is not labelled
    told(knows, [("DELETED", raw.touched(after))])
    assert knows.used() == {}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_node_is_used_until_its_pods_are_gone_and_not_a_moment_less(phase):
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", GATED)])
    assert knows.used() == {}
    told(knows, [("MODIFIED", raw.touched(BOUND))])
    assert knows.used() == {raw.GPU: 8, "pods": 1}
    told(knows, [("MODIFIED", raw.leaving(BOUND))])
    assert knows.used() == {raw.GPU: 8, "pods": 1}
    told(knows, [("MODIFIED", raw.touched(BOUND, status={"phase": phase}))])
    assert knows.used() == {}
    told(knows, [("DELETED", raw.touched(BOUND))])
    assert knows.used() == {}


def test_pods_outlive_their_deadline_job_and_hold_room_until_they_go():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", BOUND), ("DELETED", raw.touched(JOB))])
    assert [(uid, len(pods)) for uid, pods in knows.cache.orphan_pods()] == [(raw.UID, 1)]
    assert knows.used()
    told(knows, [("DELETED", raw.touched(BOUND))])
    assert list(knows.cache.orphan_pods()) == []


def test_a_pod_of_another_namespace_is_no_member_whatever_its_label_says():
    spoofed = raw.touched(BOUND)
    spoofed["metadata"] |= {"namespace": "elsewhere", "uid": "uid-spoofed"}
    child = raw.touched(CHILD)
    child["metadata"] |= {"namespace": "elsewhere", "uid": "uid-spoofed-job"}
    for events in ([JOB, spoofed, child], [spoofed, child, JOB]):
        knows = Knows()
        told(knows, [("ADDED", item) for item in events])
        assert knows.record().pods == {}
        assert knows.record().children == {}
        assert knows.used() == {raw.GPU: 8, "pods": 1}
        told(knows, [("DELETED", raw.touched(JOB)), ("DELETED", raw.touched(spoofed))])
        assert list(knows.cache.orphan_pods()) == []
        assert knows.used() == {}


def test_foreign_pods_matter_by_the_room_they_take():
    knows = Knows()
    pod = raw.foreign_pod()
    assert not knows.rang(lambda: knows.cache.apply_pod("ADDED", pod))
    bound = raw.touched(pod, spec={**pod["spec"], "nodeName": "gpu-1"})
    assert knows.rang(lambda: knows.cache.apply_pod("MODIFIED", bound))
    assert not knows.rang(
        lambda: knows.cache.apply_pod("MODIFIED", raw.touched(bound, status={"phase": "Running"}))
    )
    larger = raw.touched(bound)
    larger["spec"]["containers"][0]["resources"]["requests"][raw.GPU] = "2"
    assert knows.rang(lambda: knows.cache.apply_pod("MODIFIED", larger))
    assert knows.used() == {raw.GPU: 2, "pods": 1}
    assert knows.rang(lambda: knows.cache.apply_pod("DELETED", raw.touched(larger)))


def test_heartbeats_are_not_worth_a_pass_and_changes_of_a_node_are():
    knows = Knows()
    knows.cache.apply_node("ADDED", raw.node())
    assert not knows.rang(lambda: knows.cache.apply_node("MODIFIED", raw.node()))
    assert knows.rang(lambda: knows.cache.apply_node("MODIFIED", raw.node(unschedulable=True)))
    assert knows.rang(lambda: knows.cache.apply_node("DELETED", raw.node()))
    assert list(knows.cache.engine_nodes()) == []


def test_a_change_of_a_node_has_the_gangs_on_it_looked_at():
    knows = Knows()
    job = raw.deadline_job(status={**admitted("gpu-1"), "phase": "Running"})
    told(knows, [("ADDED", job), ("ADDED", raw.deadline_job("other"))])
    knows.cache.take_touched()
    knows.cache.apply_node("ADDED", raw.node("gpu-1"))
    assert knows.cache.take_touched() == [raw.UID]
    knows.cache.apply_node("ADDED", raw.node("gpu-2"))
    assert knows.cache.take_touched() == []


def test_a_change_of_a_node_is_nothing_to_a_gang_whose_pods_there_have_ended():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", CHILD), ("ADDED", BOUND)])
    told(knows, [("MODIFIED", raw.touched(BOUND, status={"phase": "Succeeded"}))])
    knows.cache.take_touched()
    knows.cache.apply_node("ADDED", raw.node("gpu-1"))
    assert knows.cache.take_touched() == []


def admitted(node):
    groups = [{"name": "worker", "pool": "a100", "nodes": [{"node": node, "ranks": "0-1"}]}]
    return {
        "admission": {"at": "2026-03-01T18:00:00Z", "queue": "research", "shapeHash": "x", "groups": groups}
    }


def test_a_queue_that_was_made_anew_is_not_taken_away_by_the_end_of_the_old_one():
    knows = Knows()
    old, new = raw.queue(), raw.queue()
    new["metadata"]["uid"] = "uid-new"
    knows.cache.apply_queue("ADDED", old)
    knows.cache.apply_queue("ADDED", new)
    knows.cache.apply_queue("DELETED", raw.touched(old))
    assert knows.cache.queues["research"].uid == "uid-new"
    knows.cache.apply_queue("DELETED", raw.touched(new))
    assert knows.cache.queues == {}


def test_a_queues_own_status_is_not_worth_a_pass():
    knows = Knows()
    queue = raw.queue()
    assert knows.rang(lambda: knows.cache.apply_queue("ADDED", queue))
    assert not knows.rang(
        lambda: knows.cache.apply_queue("MODIFIED", raw.touched(queue, status={"pending": 3}))
    )
    changed = raw.touched(queue, spec={**queue["spec"], "order": "fifo"})
    assert knows.rang(lambda: knows.cache.apply_queue("MODIFIED", changed))


def test_an_admission_is_assumed_until_the_api_shows_it():
    knows = Knows()
    told(knows, [("ADDED", JOB)])
    record = knows.record()
    record.assumed = raw.admission(record.ledger.gang(), "x", {"gpu-1": 2})
    told(knows, [("MODIFIED", raw.touched(JOB))])
    assert record.assumed is not None
    told(knows, [("MODIFIED", raw.deadline_job(status={**admitted("gpu-1"), "phase": "Admitted"}))])
    assert record.assumed is None


def test_templates_are_kept_while_they_may_be_needed():
    knows = Knows()
    told(knows, [("ADDED", JOB)])
    assert knows.record().templates == {"worker": JOB["spec"]["groups"][0]["template"]}
    told(knows, [("MODIFIED", raw.deadline_job(status={"phase": "Succeeded"}))])
    assert knows.record().templates == {}


def test_a_queue_that_is_gone_is_not_revived_by_the_reply_of_a_write():
    knows = Knows()
    queue = raw.queue()
    knows.cache.apply_queue("ADDED", queue)
    reply = raw.touched(queue, status={"pending": 3})
    knows.cache.apply_queue("DELETED", raw.touched(queue))
    knows.cache.apply_queue("MODIFIED", reply)
    assert knows.cache.queues == {}


def test_a_late_reply_about_a_queue_does_not_undo_its_successor():
    knows = Knows()
    old = raw.queue()
    new = raw.touched(old)
    new["metadata"]["uid"] = "uid-new"
    knows.cache.apply_queue("ADDED", new)
    knows.cache.apply_queue("MODIFIED", old)
    assert knows.cache.queues["research"].uid == "uid-new"


def test_a_job_that_loses_our_label_comes_back_with_it():
    knows = Knows()
    told(knows, [("ADDED", JOB), ("ADDED", CHILD), ("DELETED", raw.touched(CHILD))])
    assert knows.record().children == {}
    told(knows, [("ADDED", raw.touched(CHILD))])
    assert list(knows.record().children) == [CHILD["metadata"]["uid"]]


def test_an_edit_of_a_namespace_costs_a_look_at_its_own_jobs():
    knows = Knows()
    other = raw.deadline_job("other")
    other["metadata"]["namespace"] = "elsewhere"
    told(knows, [("ADDED", JOB), ("ADDED", other)])
    knows.cache.take_touched()
    knows.cache.records = walks.Counted(knows.cache.records)
    labelled = {"metadata": {"name": "elsewhere", "labels": {names.LABEL_DEFAULT_QUEUE: "research"}}}
    assert knows.rang(lambda: knows.cache.apply_namespace("MODIFIED", labelled))
    assert knows.cache.take_touched() == [other["metadata"]["uid"]]
    assert knows.cache.records.walks == 0
    told(knows, [("DELETED", raw.touched(other))])
    knows.cache.take_touched()
    knows.cache.apply_namespace("DELETED", labelled)
    assert knows.cache.take_touched() == []
