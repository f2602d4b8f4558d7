"""A gang led to its end through crashes, lost writes, stale knowledge and everything others may do to it."""

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from cases import effort, gang_world, raw

PICKS = st.integers(0, 7)


class Life(stateful.RuleBasedStateMachine):
    """Any order of what operator, controllers, kubelets, users and chance may do."""

    @stateful.initialize(
        sizes=st.lists(st.integers(1, 2), min_size=1, max_size=2),
        leader=st.booleans(),
        limit=st.integers(0, 2),
        deadline=st.sampled_from([{}, {"deadlineIn": "5m"}]),
        rounds=st.integers(0, 9),
    )
    def begin(self, sizes, leader, limit, deadline, rounds):
        groups = {f"g{number}": size for number, size in enumerate(sizes)}
        policy = "Leader" if leader else "All"
        self.world = gang_world.World(groups, successPolicy=policy, backoffLimit=limit, **deadline)
        self.go_on(rounds, set())

    @stateful.rule(
        rounds=st.integers(1, 5),
        idle=st.sets(st.sampled_from(["sync", "leave", "bind", "ready", "ledger", "job", "pod"]), max_size=2),
    )
    def go_on(self, rounds, idle):
        for _ in range(rounds):
            self.world.go_on(idle={"succeed", *idle})

    @stateful.rule()
    def look(self):
        self.world.look()

    @stateful.rule(lose=st.sampled_from(["write", "reply"]))
    def lose(self, lose):
        self.world.look(lose=lose)

    @stateful.rule()
    def admit(self):
        self.world.admit()

    @stateful.rule()
    def claim(self):
        self.world.claim()

    @stateful.rule()
    def preempt(self):
        self.world.preempt()

    @stateful.rule(active=st.booleans())
    def pause_or_go_on(self, active):
        self.world.api.edit(active=active)

    @stateful.rule(pick=st.sampled_from(gang_world.NODES), dies=st.booleans())
    def a_node_dies_or_comes_back(self, pick, dies):
        if dies:
            self.world.api.kill_node(pick)
        else:
            self.world.api.revive(pick)

    @stateful.rule(kind=st.sampled_from(["ledger", "job", "pod"]), count=st.integers(1, 3))
    def hear_some(self, kind, count):
        self.world.hear(kind, count)

    @stateful.rule()
    def hear_all(self):
        for kind in ("ledger", "job", "pod"):
            self.world.hear(kind)

    @stateful.rule()
    def crash(self):
        self.world.crash()

    @stateful.rule(ms=st.sampled_from([1, 1000, raw.MINUTE, 3 * raw.MINUTE, raw.HOUR]))
    def wait(self, ms):
        self.world.api.now += ms

    @stateful.rule(pick=PICKS)
    def sync_job(self, pick):
        if name := self._any(self.world.api.jobs, pick):
            self.world.api.sync(name)

    @stateful.rule(pick=PICKS, how=st.sampled_from(["bind", "start", "ready"]))
    def a_pod_gets_on(self, pick, how):
        if uid := self._any(self.world.api.pods, pick):
            self.world.api.run_pod(uid, how)

    @stateful.rule(pick=PICKS, how=st.sampled_from(["succeed", "fail", "refuse", "evict", "leave"]))
    def a_bound_pod_ends(self, pick, how):
        if pod := self._any(self.world.api.holding(), pick):
            self.world.api.run_pod(pod["metadata"]["uid"], how)

    @stateful.rule(pick=PICKS, how=st.sampled_from(["delete", "remove"]))
    def delete_pod_by_hand(self, pick, how):
        if uid := self._any(self.world.api.pods, pick):
            {"delete": self.world.api.delete_pod, "remove": self.world.api.remove_pod}[how](uid)

    @stateful.rule(pick=PICKS, how=st.sampled_from(["delete", "suspend", "resume"]))
    def meddle_with_a_job(self, pick, how):
        if name := self._any(self.world.api.jobs, pick):
            job = self.world.api.jobs[name]
            if how == "delete":
                self.world.api.delete_job(name, job["metadata"]["uid"])
            else:
                body = {"metadata": job["metadata"], "spec": {"suspend": how == "suspend"}}
                self.world.api.patch_job(name, body)

    @stateful.rule(pick=st.sampled_from(gang_world.NODES))
    def a_node_changes(self, pick):
        self.world.api.fit[pick] = not self.world.api.fit[pick]

    @stateful.invariant()
    def pods_are_in_their_places(self):
        if hasattr(self, "world"):
            self.world.check_pods()

    def teardown(self):
        if hasattr(self, "world"):
            self.world.finish()

    def _any(self, objects, pick):
        return list(objects)[pick % len(objects)] if objects else None


TestLife = Life.TestCase
TestLife.settings = hypothesis.settings(
    max_examples=effort.examples(15), stateful_step_count=40, deadline=None
)
