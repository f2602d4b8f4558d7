"""What a waiting job is told: sentences with the numbers and what to do, and when they are said anew."""

from __future__ import annotations

import dataclasses

from lstqueue.engine import decide, model, words
from lstqueue.topology.model import Node, PodShape, resources

PLAIN = model.Config(promising=False)  # what a forecast says, without a promise
GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR


def group(count: int = 1, **asked: int) -> model.Group:
    return model.Group("g", count, PodShape(resources({"pods": 1} | asked)))


def job(uid: str, *groups: model.Group, **more: object) -> model.Job:
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW,
        "groups": groups or (group(**{GPU: 8}),),
        "estimate": model.Estimate(HOUR, HOUR, HOUR), "deadline": NOW + 9 * HOUR,
    }  # fmt: skip
    return model.Job(**(base | more))


def running(uid: str = "r", **more: object) -> model.Job:
    parts = (model.Assigned(0, "p", "n0", 0, 1),)
    return job(uid, **({"state": model.State.RUNNING, "since": NOW, "assigned": parts} | more))


def queue(gpus: int = 64) -> model.Queue:
    return model.Queue("q", pools=(model.Pool("p", nominal=((GPU, gpus),)),))


def world(*jobs: model.Job, gpus: int = 64, pods: int = 9) -> model.Snapshot:
    return model.Snapshot((Node("n0", resources({GPU: 8, "cpu": 9000, "pods": pods})),), (queue(gpus),), jobs)


def said(plan: model.Plan, uid: str) -> model.Update:
    return next(update for update in plan.updates if update.uid == uid)


def settled(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """Everything published, nothing changed since."""
    updates = {update.uid: update for update in plan.updates}
    jobs: list[model.Job] = []
    for one in snapshot.jobs:
        if (update := updates.get(one.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            one = dataclasses.replace(one, published=told, words=update.message)
        jobs.append(one)
    return dataclasses.replace(snapshot, jobs=tuple(jobs), forecast_at=plan.now, changed=False)


def restating(snapshot: model.Snapshot, *uids: str, **more: object) -> model.Snapshot:
    return dataclasses.replace(snapshot, restate=frozenset(uids), **more)


def test_after_an_edit_of_the_quota_the_message_is_said_anew_for_whom_it_is_asked() -> None:
    wide = group(9, **{GPU: 1})
    first = world(job("a", wide), job("b", wide), gpus=8)
    known = settled(first, decide.decide(first, NOW, PLAIN))
    assert "more than the 8 of" in known.jobs[0].words
    edited = dataclasses.replace(known, queues=(queue(4),))
    assert decide.decide(edited, NOW, PLAIN).updates == ()
    plan = decide.decide(restating(edited, "a", "gone"), NOW, PLAIN)
    (update,) = plan.updates
    assert update.uid == "a"
    assert "more than the 4 of" in update.message
    assert update.verdict is not None
    assert update.verdict.reason == update.message
    assert decide.decide(settled(restating(edited, "a"), plan), NOW, PLAIN).updates == ()


def test_a_message_alone_is_said_anew_and_the_verdict_stays_as_published() -> None:
    first = world(running(), job("a"), gpus=12)
    known = settled(first, decide.decide(first, NOW, PLAIN))
    assert "4 of the 12" in known.jobs[1].words
    (update,) = decide.decide(
        restating(known, "a", "r", queues=(queue(10),)), NOW + MINUTE // 2, PLAIN
    ).updates
    assert update.uid == "a"
    assert "2 of the 10" in update.message
    assert update.verdict == known.jobs[1].published.verdict


def test_a_reason_in_other_words_comes_with_its_fresh_figures() -> None:
    first = world(running(), job("a"))
    known = settled(first, decide.decide(first, NOW, PLAIN))
    later = (dataclasses.replace(known.jobs[0], since=NOW + 2 * MINUTE), known.jobs[1])
    moved = dataclasses.replace(known, jobs=later, changed=True)
    assert decide.decide(moved, NOW + 2 * MINUTE, PLAIN).updates == ()
    update = said(decide.decide(restating(moved, "a"), NOW + 2 * MINUTE, PLAIN), "a")
    assert update.verdict is not None
    assert update.verdict.reason == "With pessimistic run times it ends 6h58m before its deadline."
    assert update.verdict.finish == (NOW + 2 * HOUR + 2 * MINUTE, NOW + 2 * HOUR + 2 * MINUTE)


def test_an_update_for_another_code_brings_a_reason_that_is_its_sentence() -> None:
    first = world(job("a", group(3, **{GPU: 4})), gpus=8)
    known = settled(first, decide.decide(first, NOW, PLAIN))
    update = said(decide.decide(dataclasses.replace(known, queues=(queue(64),)), NOW, PLAIN), "a")
    assert update.code is model.Code.NO_MATCHING_NODES
    assert update.verdict is not None
    assert update.verdict.reason == update.message


def test_a_pod_larger_than_any_node_is_told_how_large_it_may_be() -> None:
    plan = decide.decide(
        world(job("a", group(2, cpu=1000, **{GPU: 9})), job("b", group(cpu=9500))), NOW, PLAIN
    )
    assert said(plan, "a").message == (
        'One pod of group "g" asks for 9 nvidia.com/gpu, and the largest node of pool "p" has'
        " 8 nvidia.com/gpu; ask for at most that per pod."
    )
    assert 'asks for 9.5 cpu, and the largest node of pool "p" has 9 cpu' in said(plan, "b").message


def test_of_several_pools_the_one_with_the_largest_node_is_named() -> None:
    nodes = (
        Node("s", resources({GPU: 4, "pods": 9}), labels=(("size", "s"),)),
        Node("l", resources({GPU: 8, "pods": 9}), labels=(("size", "l"),)),
    )
    pools = tuple(model.Pool(size, (("size", size),), (), ((GPU, 64),)) for size in ("s", "l"))
    snapshot = model.Snapshot(nodes, (model.Queue("q", pools=pools),), (job("a", group(**{GPU: 9})),))
    assert (
        'largest node of pool "l" has 8 nvidia.com/gpu'
        in said(decide.decide(snapshot, NOW, PLAIN), "a").message
    )


def test_nodes_without_the_resource_or_never_with_all_of_it_together_are_told_apart() -> None:
    nodes = (
        Node("gpus", resources({GPU: 8, "cpu": 1000, "pods": 9})),
        Node("cpus", resources({"cpu": 9000, "pods": 9})),
    )
    both = model.Snapshot(nodes, (queue(),), (job("a", group(cpu=5000, **{GPU: 1})),))
    assert (
        "no matching node has all that one asks for together"
        in said(decide.decide(both, NOW, PLAIN), "a").message
    )
    none = dataclasses.replace(both, nodes=nodes[1:])
    assert (
        'no matching node of pool "p" has nvidia.com/gpu'
        in said(decide.decide(none, NOW, PLAIN), "a").message
    )


def test_pods_that_ask_for_nothing_are_told_that_pod_slots_bind() -> None:
    first = world(running(), job("a", group(3)), pods=3)
    assert said(decide.decide(first, NOW, PLAIN), "a").message == (
        'Group "g" is 3 pods without requests, so that pod slots bind, and 2 of them fit now on'
        " 1 matching node; it starts when others leave."
    )


def test_a_job_whose_deadline_is_past_saving_is_promised_no_more_than_a_start() -> None:
    plan = decide.decide(world(running(), job("a", deadline=NOW + HOUR // 2), job("b")), NOW, PLAIN)
    assert said(plan, "a").message.endswith("; it starts when others leave, but its deadline cannot hold.")
    assert said(plan, "b").message.endswith("; it starts when others leave.")


def test_the_time_to_ask_for_is_enough_to_be_likely() -> None:
    rushed = job("a", deadline=NOW + HOUR + 17_300)
    verdict = said(decide.decide(world(running(), rushed), NOW, PLAIN), "a").verdict
    assert verdict is not None
    assert verdict.reason == (
        "With expected run times it ends 59m42s after its deadline;"
        " ask for at least 59m43s more to be LIKELY."
    )
    extended = dataclasses.replace(rushed, deadline=NOW + HOUR + 17_300 + 59 * MINUTE + 43_000)
    verdict = said(decide.decide(world(running(), extended), NOW, PLAIN), "a").verdict
    assert verdict is not None
    assert verdict.level is model.Level.LIKELY


def closing(*jobs: model.Job, **closed: dict[str, bool]) -> str:
    """What "a" is told where four nodes of eight GPUs are as `closed` says."""
    nodes = tuple(Node(f"n{i}", resources({GPU: 8, "pods": 9}), **closed.get(f"n{i}", {})) for i in range(4))
    plan = decide.decide(model.Snapshot(nodes, (queue(),), jobs), NOW, PLAIN)
    return said(plan, "a").message


def test_a_gang_that_lacks_a_cordoned_node_is_told_to_uncordon_it() -> None:
    prefix = 'Group "g" is 4 pods of 8 nvidia.com/gpu, and 3 of them fit now on 4 matching nodes, of which '
    gang = job("a", group(4, **{GPU: 8}))
    cordoned, lost = {"unschedulable": True}, {"ready": False}
    assert closing(gang, n1=cordoned) == f"{prefix}n1 is cordoned; it starts when it is uncordoned."
    assert closing(gang, n1=lost) == f"{prefix}n1 is not ready; it starts when it is ready again."
    assert closing(gang, n1=cordoned, n3=lost) == (
        f"{prefix}n1 and n3 are cordoned or not ready; it starts when they are uncordoned or ready again."
    ).replace("and 3 of", "and 2 of")


def test_where_leaving_others_would_do_too_both_are_told() -> None:
    gang = job("a", group(3, **{GPU: 8}))
    told = closing(gang, running(), n1={"unschedulable": True})
    assert told.endswith("of which n1 is cordoned; it starts when others leave, or it is uncordoned.")


def test_closed_nodes_that_would_not_help_are_not_spoken_of() -> None:
    gang = job("a", group(2, **{GPU: 8}))
    others = [running(f"r{i}", assigned=(model.Assigned(0, "p", f"n{i}", 0, 1),)) for i in range(4)]
    assert "it starts when others leave." in closing(gang, *others, n1={"unschedulable": True})


def test_what_others_say_of_a_job_becomes_a_sentence_like_the_others() -> None:
    for text, sentence in (
        ("is paused; set it going", "It is paused; set it going."),
        ("its pods need more", "Its pods need more."),
        ("Job ns/a is gone", "Job ns/a is gone."),
        ("spec.parallelism of Job ns/a is 0", "spec.parallelism of Job ns/a is 0."),
        ("lstqueue cannot read it", "lstqueue cannot read it."),
    ):
        assert words.sentence(text) == sentence
    plan = decide.decide(world(job("a", state=model.State.HELD_BACK, held_back="is paused")), NOW, PLAIN)
    assert said(plan, "a").message == "It is paused."
