"""The audit's sums: nodes and quotas, and who is to blame when they are exceeded."""

import asyncio

from cases import worlds
from cases.gangs import Scene
from lstqueue.embedded import audit_accounts
from lstqueue.kube import port


@worlds.virtual
async def test_a_gang_that_lives_and_ends_well_breaks_nothing() -> None:
    scene = Scene(nodes=1)
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    await asyncio.sleep(86_400)
    gang.end("Succeeded", 0)
    await asyncio.sleep(86_400)
    gang.end("Succeeded", 1)
    gang.status("Succeeded")
    other = scene.gang("other")
    other.run({"n0": "0-1"})
    await asyncio.sleep(86_400)
    assert scene.found() == []
    assert scene.audit.foreign == []
    assert scene.audit.checks > 20


@worlds.virtual
async def test_an_admission_beyond_a_node_is_found_with_its_numbers() -> None:
    scene = Scene(nodes=1)
    gang = scene.gang(replicas=3)
    gang.admit({"n0": "0-2"})
    assert scene.found() == ["NODE"]
    violation = scene.audit.violations[0]
    assert violation.object == "default/job"
    assert violation.at == scene.store.now_ms()
    assert "node n0: 12 nvidia.com/gpu of 8 taken (12 of it reserved)" in violation.message


@worlds.virtual
async def test_two_admissions_of_the_same_room_are_found() -> None:
    scene = Scene(nodes=1)
    scene.gang("first").admit({"n0": "0-1"})
    scene.gang("second").admit({"n0": "0-1"})
    assert scene.found() == ["NODE"]
    assert scene.audit.violations[0].object == "default/second"


@worlds.virtual
async def test_room_is_not_free_while_pods_terminate() -> None:
    scene = Scene(nodes=1)
    first = scene.gang("first")
    first.run({"n0": "0-1"})
    first.suspend("FailedStart", admission=None)
    first.delete(0, 1)
    scene.gang("second").admit({"n0": "0-1"})
    assert scene.found() == ["NODE"]


@worlds.virtual
async def test_pods_of_an_earlier_attempt_do_not_stand_for_the_next() -> None:
    scene = Scene(nodes=1)
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    gang.suspend("FailedStart", admission=None)
    gang.delete(0, 1)
    gang.admit({"n0": "0-1"})
    assert "node n0: 16 nvidia.com/gpu of 8 taken (8 of it reserved)" in scene.words()


@worlds.virtual
async def test_an_over_commitment_is_reported_when_it_grows_and_not_at_each_write() -> None:
    scene = Scene(nodes=1)
    first, second = scene.gang("first"), scene.gang("second", replicas=1)
    first.run({"n0": "0-1"})
    second.run({"n0": "0"})
    assert scene.found() == ["NODE"]
    first.end("Succeeded", 0)
    assert scene.found() == ["NODE"]
    third = scene.gang("third", replicas=1)
    third.admit({"n0": "0"})
    assert scene.found() == ["NODE", "NODE"]


@worlds.virtual
async def test_room_is_free_once_pods_are_gone_or_have_ended() -> None:
    scene = Scene(nodes=1)
    first = scene.gang("first")
    first.run({"n0": "0-1"})
    first.delete(0)
    first.suspend("FailedStart", admission=None)
    first.remove(0)
    first.end("Failed", 1)
    first.status("Pending")
    scene.gang("second").admit({"n0": "0-1"})
    assert scene.found() == []


@worlds.virtual
async def test_a_gang_that_starts_again_keeps_its_room() -> None:
    scene = Scene(nodes=1)
    first = scene.gang("first")
    first.run({"n0": "0-1"})
    first.end("Failed", 0)
    first.suspend("GangFailed")
    first.remove(1)
    scene.gang("thief").admit({"n0": "0"})
    assert "NODE" in scene.found()


@worlds.virtual
async def test_a_member_that_succeeded_gives_its_room_away() -> None:
    scene = Scene(nodes=1)
    first = scene.gang("first")
    first.run({"n0": "0-1"})
    first.end("Succeeded", 0)
    scene.gang("second", replicas=1).run({"n0": "0"})
    assert scene.found() == []
    # Starting again under the old hold would need that room back.
    first.end("Failed", 1)
    first.suspend("GangFailed")
    first.restarts = 1
    first.admit({"n0": "0-1"}, attempt=1)
    assert scene.found() == ["NODE"]


@worlds.virtual
async def test_a_deleted_deadline_job_reserves_nothing_and_its_pods_count_on() -> None:
    scene = Scene(nodes=1)
    first = scene.gang("first")
    first.admit({"n0": "0-1"})
    scene.store.delete(port.DEADLINE_JOBS, worlds.NAMESPACE, "first")
    second = scene.gang("second")
    second.run({"n0": "0-1"})
    assert scene.found() == []
    scene.store.delete(port.DEADLINE_JOBS, worlds.NAMESPACE, "second")
    scene.gang("third").admit({"n0": "0-1"})
    assert scene.found() == ["NODE"]


@worlds.virtual
async def test_what_others_do_is_recorded_apart() -> None:
    scene = Scene(nodes=2)
    scene.gang("held").admit({"n0": "0-1"})
    await asyncio.sleep(10)
    scene.foreign("intruder", "n0", gpus=1)
    scene.gang("running").run({"n1": "0-1"})
    await asyncio.sleep(10)
    scene.resize("n1", 4)
    assert scene.found() == []
    assert [str(item).partition(": ")[2] for item in scene.audit.foreign] == [
        "node over-committed: default/intruder: node n0: 9 nvidia.com/gpu of 8 taken (8 of it reserved)",
        "node over-committed: n1: node n1: 8 nvidia.com/gpu of 4 taken (0 of it reserved)",
    ]


@worlds.virtual
async def test_a_decision_made_before_a_foreign_pod_was_seen_is_excused_and_a_later_one_is_not() -> None:
    scene = Scene(nodes=2)
    for node in ("n0", "n1"):
        scene.foreign(f"intruder-{node}", node, gpus=1)
    scene.gang("early").admit({"n0": "0-1"})
    assert scene.found() == []
    assert len(scene.audit.foreign) == 1
    await asyncio.sleep(5)
    scene.gang("late").admit({"n1": "0-1"})
    assert scene.found() == ["NODE"]


@worlds.virtual
async def test_a_node_that_is_gone_has_no_sum() -> None:
    scene = Scene(nodes=1)
    scene.gang().run({"n0": "0-1"})
    scene.store.delete(port.NODES, None, "n0")
    assert scene.found() == []
    assert scene.audit.foreign == []


@worlds.virtual
async def test_a_quota_counts_reserved_and_bound_and_not_finished() -> None:
    scene = Scene(nodes=3, nominal=16)
    first, second = scene.gang("first"), scene.gang("second")
    first.run({"n0": "0-1"})
    second.run({"n1": "0-1"})
    assert scene.found() == []
    first.end("Succeeded", 0)
    third = scene.gang("third", replicas=1)
    third.run({"n2": "0"})
    assert scene.found() == []
    scene.gang("fourth", replicas=1).admit({"n2": "0"})
    assert scene.found() == ["QUOTA"]
    assert "queue research, pool a100: 20 nvidia.com/gpu of 16 taken" in scene.words()


@worlds.virtual
async def test_pods_of_an_earlier_admission_stay_charged_to_its_quota() -> None:
    scene = Scene(nodes=2, nominal=8)
    first = scene.gang("first")
    first.run({"n0": "0-1"})
    scene.store.delete(port.DEADLINE_JOBS, worlds.NAMESPACE, "first")
    scene.gang("second").admit({"n1": "0-1"})
    assert scene.found() == ["QUOTA"]


@worlds.virtual
async def test_a_quota_that_its_owner_lowers_is_nobodys_violation() -> None:
    scene = Scene(nodes=1, nominal=16)
    scene.gang().run({"n0": "0-1"})
    await asyncio.sleep(10)
    pools = [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominal": 4}]}]
    scene.store.patch(port.GPU_QUEUES, None, "research", {"spec": {"pools": pools}})
    assert scene.found() == []
    assert "8 nvidia.com/gpu of 4" in str(scene.audit.foreign[0])


def test_what_was_admitted_before_a_limit_went_down_may_go_on_and_what_comes_later_may_not():
    account = audit_accounts.Account("queue research, pool a100", limit={"gpu": 16})
    account.use_admitted({"gpu": 16}, 1, since=0)
    account.set_limit({"gpu": 8}, 10_000)
    assert not any(excess.ours for excess in account.check(10_000, ours=False, everything=False))
    account.use_admitted({"gpu": 8}, -1, since=0)
    assert account.check(60_000, ours=False, everything=False) == []
    account.use_admitted({"gpu": 8}, 1, since=0)
    assert [excess.ours for excess in account.check(60_000, ours=True, everything=False)] == [False]
    account.use_admitted({"gpu": 8}, -1, since=0)
    assert account.check(60_000, ours=False, everything=False) == []
    account.use_admitted({"gpu": 8}, 1, since=50_000)
    assert [excess.ours for excess in account.check(60_000, ours=True, everything=False)] == [True]


@worlds.virtual
async def test_the_audit_can_begin_in_the_middle() -> None:
    scene = Scene(nodes=1)
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    scene.audit.close()
    later = type(scene.audit)(scene.store, scene.errors)
    scene.gang("second").admit({"n0": "0"})
    names = {violation.invariant.name for violation in later.violations}
    assert "NODE" in names
    assert scene.found() == []
