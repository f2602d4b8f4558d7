"""What each job is charged for, on which node, at every stage of its life."""

import dataclasses

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.engine import decide, memory, model
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, settings, snapshots

SETTINGS = settings.Settings()
SHAPE = snapshots.topology.PodShape(((raw.GPU, 8), ("pods", 1)))


def record(life, *, intake=True, **fields):
    """Return the record of a gang as the cache would have it."""
    made = caches.Record(life.seen, **fields)
    made.templates = {group["name"]: group["template"] for group in life.job["spec"]["groups"]}
    made.pods = {item["metadata"]["uid"]: snapshots.views.pod(item) for item in life.pods}
    made.children = {item["metadata"]["uid"]: snapshots.views.child(item) for item in life.children.values()}
    if intake:
        made.shapes = tuple(model.Group(name, count, SHAPE) for name, count in life.groups.items())
    return made


def seen(life, **fields):
    return snapshots.engine_job(record(life, **fields), caches.Cache(lambda: None), SETTINGS)


def charged(job):
    """Return (bound, held) by node."""
    return {part.node: (part.bound, part.held) for part in job.assigned}


def test_from_the_commit_on_every_rank_is_held_where_it_will_go():
    job = seen(Life().admitted())
    assert charged(job) == {"gpu-0": (0, 1), "gpu-1": (0, 1)}
    assert (job.state, job.since, job.queue) == (model.State.ADMITTED, raw.NOW, "research")
    assert {part.pool for part in job.assigned} == {"a100"}


def test_an_admission_on_its_way_is_charged_before_it_is_confirmed():
    life = Life()
    placed = Life().admitted().status.admission
    job = seen(life, assumed=placed)
    assert charged(job) == {"gpu-0": (0, 1), "gpu-1": (0, 1)}
    assert job.state is model.State.ADMITTED


def test_a_rank_is_counted_once_its_hold_becomes_its_pod():
    life = Life().started(ready=False)
    life.replace_pod(0, life.gated(0))
    assert charged(seen(life)) == {"gpu-0": (0, 1), "gpu-1": (1, 0)}
    life.replace_pod(0, life.let_go(0, bound=False))
    assert charged(seen(life)) == {"gpu-0": (0, 1), "gpu-1": (1, 0)}
    life.replace_pod(0, life.let_go(0))
    assert charged(seen(life)) == {"gpu-0": (1, 0), "gpu-1": (1, 0)}


@pytest.mark.parametrize("cleared", [False, True])
def test_a_member_that_is_through_holds_nothing_even_when_its_pod_is_cleared_away(cleared):
    life = Life().running()
    life.replace_pod(0, life.let_go(0, phase="Succeeded"))
    assert charged(seen(life)) == {"gpu-0": (0, 1), "gpu-1": (1, 0)}
    life.children["worker", 0] = raw.touched(life.children["worker", 0], status={"completedIndexes": "0"})
    if cleared:
        del life.pods[0]
    assert charged(seen(life)) == {"gpu-1": (1, 0)}


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.SUSPENDING])
@pytest.mark.parametrize("left", ["failed", "lost", "told to leave"])
def test_the_place_of_a_member_that_will_come_back_is_held_without_a_gap(phase, left):
    life = Life().running()
    life.set(phase=phase, suspension="GangFailed" if phase is Phase.SUSPENDING else "")
    if left == "lost":
        del life.pods[0]
    elif left == "failed":
        life.replace_pod(0, life.let_go(0, phase="Failed"))
    else:
        life.replace_pod(0, raw.leaving(life.let_go(0, phase="Succeeded")))
    assert charged(seen(life)) == {"gpu-0": (0, 1), "gpu-1": (1, 0)}


def test_pods_that_leave_are_charged_where_they_are_until_they_are_gone():
    life = Life().suspending(ledger.FAILED_START, admission=None)
    life.pods = [raw.leaving(life.pods[0]), life.let_go(1, phase="Failed")]
    life.seen = dataclasses.replace(life.seen, spec=dataclasses.replace(life.seen.spec, queue="elsewhere"))
    job = seen(life)
    assert charged(job) == {"gpu-0": (1, 0)}
    assert (job.state, job.queue) == (model.State.ENDING, "research")


def test_a_pod_that_was_let_go_may_be_bound_at_any_moment_and_is_charged_whatever_became_of_its_start():
    life = Life().suspending(ledger.FAILED_START, admission=None)
    life.pods = [life.let_go(0, bound=False), life.gated(1)]
    job = seen(life)
    assert charged(job) == {"gpu-0": (0, 1)}
    assert (job.state, job.queue) == (model.State.ENDING, "research")
    (orphan,) = build(known(pods=life.pods)).jobs
    assert charged(orphan) == {"gpu-0": (0, 1)}


def test_pods_of_a_job_that_was_deleted_hold_their_own_places_and_no_others():
    life = Life().running()
    life.children.clear()
    assert charged(seen(life)) == {"gpu-0": (1, 0), "gpu-1": (1, 0)}


def test_a_pod_that_only_wears_our_labels_takes_no_members_hold():
    life = Life().admitted()
    life.make()
    life.pods = [raw.ungated(life.gated(0), attempt=7, node="gpu-0")]
    life.pods[0]["metadata"]["ownerReferences"] = []
    assert charged(seen(life)) == {"gpu-0": (1, 1), "gpu-1": (0, 1)}


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.SUCCEEDED, Phase.FAILED, Phase.REJECTED])
def test_outside_its_phases_an_admission_holds_nothing(phase):
    life = Life().admitted(phase=phase)
    assert charged(seen(life)) == {}


def test_a_pod_that_lost_its_stamp_is_charged_to_the_pool_it_was_placed_in():
    life = Life().running()
    for pod in life.pods:
        del pod["metadata"]["annotations"]["lstqueue.dev/charge"]
    assert {part.pool for part in seen(life).assigned} == {"a100"}


def test_groups_on_one_node_are_charged_apart():
    life = Life({"leader": 1, "worker": 2})
    placed = raw.admission(life.seen.gang(), life.seen.spec.shape, {"gpu-0": 3})
    life.set(phase=Phase.ADMITTED, attempt=1, admission=placed)
    assert [(part.group, part.held) for part in seen(life).assigned] == [(0, 1), (1, 2)]


def test_a_waiting_job_may_be_tried_once_everything_about_it_is_known():
    life = Life()
    assert seen(life).state is model.State.WAITING
    assert seen(life, intake=False).held_back
    assert seen(life, held_back="quota").held_back == "quota"
    life.make()
    life.pods = [raw.leaving(life.gated(0))]
    assert "pods of its last run" in seen(life).held_back
    life.pods = [life.let_go(0, phase="Succeeded")]
    assert seen(life).state is model.State.WAITING


def test_before_intake_has_answered_an_admitted_gang_is_charged_by_its_pods_or_templates():
    life = Life({"leader": 1, "worker": 2}).admitted()
    life.make()
    asked = [dict(group.shape.requests) for group in seen(life, intake=False).groups]
    assert asked == [{raw.GPU: 8, "pods": 1}] * 2
    pod = life.gated(1)
    pod["spec"]["containers"][0]["resources"] = {"requests": {raw.GPU: 2}}
    life.pods = [pod]
    assert dict(seen(life, intake=False).groups[1].shape.requests) == {raw.GPU: 2, "pods": 1}


def test_a_template_that_nobody_has_vouched_for_is_not_looked_at():
    life = Life()
    life.job["spec"]["groups"][0]["template"]["spec"]["containers"] = [{"resources": "lots"}]
    assert dict(seen(life, intake=False).groups[0].shape.requests) == {}


def known(*lives, pods=()):
    cache = caches.Cache(lambda: None)
    for life in lives:
        cache.records[life.seen.uid] = record(life)
    for pod in pods:
        cache.apply_pod("ADDED", pod)
    return cache


def build(cache):
    built = snapshots.build(cache, SETTINGS, now=0, forecast_at=0, changed=True)
    memory.Memory().recall(built, SETTINGS.engine)
    return built


def test_pods_without_their_deadline_job_still_hold_room_and_quota():
    life = Life().running()
    others = [raw.leaving(life.pods[0]), life.let_go(1, phase="Failed"), life.gated(0, suffix="x")]
    (job,) = build(known(pods=others)).jobs
    assert charged(job) == {"gpu-0": (1, 0)}
    assert (job.queue, job.state) == ("research", model.State.ENDING)
    assert {part.pool for part in job.assigned} == {"a100"}
    assert build(known(pods=others[1:])).jobs == ()


def test_jobs_that_are_over_and_hold_nothing_concern_nobody():
    life = Life().running()
    life.set(phase=Phase.SUCCEEDED, admission=None)
    assert [job.state for job in build(known(life)).jobs] == [model.State.ENDING]
    life.pods = []
    assert build(known(life)).jobs == ()


def test_a_job_whose_spec_cannot_be_read_is_held_back_and_harms_no_pass():
    life = Life()
    life.seen = ledger.read(raw.deadline_job(queue="NOT A QUEUE"))
    cache = known(life)
    cache.records[raw.UID].held_back = life.seen.problem
    (job,) = build(cache).jobs
    assert (job.state, job.held_back) == (model.State.HELD_BACK, life.seen.problem)


def test_a_job_is_built_again_only_when_something_about_it_changed():
    cache = known(Life())
    first = build(cache).jobs[0]
    assert build(cache).jobs[0] is first


@pytest.mark.parametrize(
    ("own", "default", "mid"), [("2h", "1h", 2 * raw.HOUR), (None, "1h", raw.HOUR), (None, None, None)]
)
def test_an_estimate_is_the_users_or_else_the_queues(own, default, mid):
    life = Life(**({"estimatedDuration": own} if own else {}))
    cache = caches.Cache(lambda: None)
    cache.apply_queue("ADDED", raw.queue(defaults={"estimatedDuration": default} if default else {}))
    job = snapshots.engine_job(record(life), cache, SETTINGS)
    assert (job.estimate.mid if job.estimate else None) == mid
    if mid:
        assert job.estimate.lo <= mid <= job.estimate.hi


@pytest.mark.parametrize("ranks", ["?", "", "0", "3-1", 7, None])
def test_whatever_an_admission_says_what_stands_for_an_unreadable_job_ends_no_pass(ranks):
    cache = caches.Cache(lambda: None)
    placed = {"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "ranks": ranks}]}
    admission = {"at": "2026-03-01T18:00:00Z", "queue": "research", "shapeHash": "x", "groups": [placed]}
    status = {"phase": "Admitted", "observedGeneration": 1, "attempt": 1, "admission": admission}
    cache.apply_queue("ADDED", raw.queue())
    cache.apply_node("ADDED", raw.node())
    cache.apply_ledger("ADDED", raw.deadline_job(status=status))
    cache.records[raw.UID].unreadable = "something is wrong with it"
    snapshot = snapshots.build(cache, SETTINGS, now=raw.NOW, forecast_at=0, changed=True)
    plan = decide.decide(snapshot, raw.NOW, SETTINGS.engine)
    assert (plan.admit, plan.suspend) == ((), ())
    (job,) = snapshot.jobs
    assert charged(job) == ({"gpu-1": (0, 1)} if ranks == "0" else {})


def stands(made, now=raw.NOW):
    """Return what stands for a job that cannot be read any more, among others that want its room."""
    cache = caches.Cache(lambda: None)
    cache.apply_queue("ADDED", raw.queue())
    for number in range(2):
        cache.apply_node("ADDED", raw.node(f"gpu-{number}"))
    made.unreadable = "something is wrong with it"
    cache.records[raw.UID] = made
    snapshot = snapshots.build(cache, SETTINGS, now=now, forecast_at=0, changed=True)
    plan = decide.decide(snapshot, now, SETTINGS.engine)
    assert (plan.admit, plan.suspend, plan.drop) == ((), (), ())
    return snapshot.jobs[0]


def test_one_that_cannot_be_read_any_more_keeps_the_places_its_pods_are_still_to_take():
    life = Life().started(ready=False)
    life.replace_pod(1, life.gated(1))
    job = stands(record(life))
    assert charged(job) == {"gpu-0": (1, 0), "gpu-1": (0, 1)}
    assert job.queue == "research"
    assert [dict(group.shape.requests)[raw.GPU] for group in job.groups] == [8, 8]
    life.replace_pod(1, life.let_go(1))
    assert charged(stands(record(life))) == {"gpu-0": (1, 0), "gpu-1": (1, 0)}


def test_one_that_cannot_be_read_any_more_keeps_its_claim_until_that_expires():
    life = Life().claiming(claim_queue="research")
    job = stands(record(life))
    assert (job.state, job.queue, job.claim.committed) == (model.State.CLAIMING, "research", False)
    assert job.claim.groups == life.status.claim.groups
    made = record(life)
    stands(made)
    late = stands(made, life.status.claim.expires)
    assert (late.state, late.claim) == (model.State.HELD_BACK, None)
