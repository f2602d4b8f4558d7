"""The sums that the audit and the scheduler keep as they go agree with sums made from nothing."""

import asyncio
import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, worlds
from cases.gangs import Gang, Scene
from lstqueue.embedded import audit, clock
from lstqueue.embedded.controllers import pods
from lstqueue.embedded.world import World
from lstqueue.kube import port

MOVES = ("admit", "create", "ungate", "bind", "succeed", "fail", "delete", "remove", "suspend", "restart")


def move(gang: Gang, what: str, rank: int) -> None:
    """One write about a gang, sensible or not; what the API refuses is left out."""
    with contextlib.suppress(port.ApiError, KeyError):
        if what == "admit":
            gang.admit({"n0": "0", "n1": "1-2"} if rank else {"n1": "0-2"})
        elif what == "create":
            gang.create(rank)
        elif what == "ungate":
            gang.ungate(rank)
        elif what == "bind":
            gang.bind({rank: "n0" if rank == 0 else "n1"})
        elif what == "suspend":
            gang.suspend("GangFailed" if rank else "FailedStart")
        elif what == "restart":
            gang.restarts += 1
            gang.status("Admitted")
        elif what in ("succeed", "fail"):
            if worlds.phase(gang.scene.store, gang.pods[rank]) == "Pending":
                gang.end("Succeeded" if what == "succeed" else "Failed", rank)
        elif worlds.phase(gang.scene.store, gang.pods[rank]) != "Succeeded":
            (gang.delete if what == "delete" else gang.remove)(rank)


@settings(max_examples=effort.examples(15), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 1), st.integers(0, 2)), max_size=60))
def test_the_audits_sums_are_those_of_an_audit_that_begins_now(moves: list[tuple[str, int, int]]) -> None:
    async def main() -> None:
        scene = Scene()
        gangs = [scene.gang(name, replicas=3, gpus=1) for name in ("a", "b")]
        for what, which, rank in moves:
            move(gangs[which], what, rank)
        fresh = audit.Audit(scene.store, scene.errors)
        for name in ("n0", "n1"):
            assert scene.audit.taken(name) == fresh.taken(name)
        assert scene.errors == []

    clock.run(main())


PODS = st.lists(
    st.tuples(
        st.integers(0, 120),  # seconds before it comes
        st.integers(0, 5),  # GPUs
        st.sampled_from(("5s", "60s", "10m")),  # how long it runs
        st.sampled_from(("0s", "30s", "5m")),  # how long it takes to leave
        st.booleans(),  # whether somebody deletes it after a minute
    ),
    max_size=25,
)


@settings(max_examples=effort.examples(10), deadline=None)
@given(PODS, st.integers(0, 3))
def test_the_scheduler_never_over_commits_a_node_and_starves_nobody_who_fits(
    arrivals: list[tuple[int, int, str, str, bool]], failing: int
) -> None:
    async def main() -> None:
        async with World(serve=False) as world:
            names = world.add_nodes(2, gpus=4, max_pods=6)

            def check(_: object) -> None:
                for name in names:
                    used: pods.Amounts = {}
                    for pod in world.store.list(port.PODS, fields=f"spec.nodeName={name}"):
                        if not pods.finished(pod):
                            for resource, amount in pods.requests(pod["spec"]).items():
                                used[resource] = used.get(resource, 0) + amount
                    assert used.get("nvidia.com/gpu", 0) <= 4
                    assert used.get("pods", 0) <= 6

            world.store.subscribe(check)
            last = 0
            for number, (wait, gpus, run, leave, doomed) in enumerate(sorted(arrivals)):
                await asyncio.sleep(wait - last)
                last = wait
                annotations = {"sim/run-for": run, "sim/terminate-after": leave}
                body = worlds.pod(f"p{number}", gpus=gpus, annotations=annotations)
                world.store.create(port.PODS, worlds.NAMESPACE, body)
                if doomed:
                    loop = asyncio.get_running_loop()
                    loop.call_later(60, world.store.delete, port.PODS, worlds.NAMESPACE, f"p{number}")
                if number == failing:
                    world.fail_node("node-0000")
                    asyncio.get_running_loop().call_later(90, world.heal_node, "node-0000")
            await asyncio.sleep(6 * 3600)
            waiting = [pod for pod in worlds.all_pods(world.store) if not pods.finished(pod)]
            assert all(pods.requests(pod["spec"]).get("nvidia.com/gpu", 0) > 4 for pod in waiting)

    clock.run(main())
