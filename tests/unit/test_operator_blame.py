"""Which domains are blamed for nodes that fail, and what is told of how free places lie in domains."""

from cases import raw
from lstqueue.engine import model
from lstqueue.operator import blame, fragments, ledger, metrics, nodes, records
from lstqueue.operator import cache as caches
from lstqueue.topology import domains
from lstqueue.topology import model as topology

GPU = "nvidia.com/gpu"
NOW = raw.NOW
RACK = ["n0", "n1", "n2", "n3"]
DOMAINS = domains.arrange(["rack"], {f"n{at}": (f"r{at // 4}",) for at in range(8)})


def view(name: str, *, down_for: int | None = None) -> nodes.NodeView:
    return nodes.NodeView(
        name=name,
        allocatable=(),
        labels=(),
        taints=(),
        ready=down_for is None,
        unschedulable=False,
        since=NOW - (down_for or 0),
    )


def suspects(down: dict[int, int], avoided: dict[int, set[str]], least: int = 3) -> list[str]:
    there = [view(f"n{at}", down_for=ago) for at, ago in down.items()]
    uids = sorted({uid for several in avoided.values() for uid in several})
    jobs = [avoiding(uid, [f"n{at}" for at, several in avoided.items() if uid in several]) for uid in uids]
    return sorted(blame.suspects(blame.homes(DOMAINS), there, jobs, now=NOW, least=least))


def avoiding(uid: str, nodes: list[str]) -> records.Record:
    status = {"phase": "Pending", "backoff": {"avoid": nodes}}
    return records.Record(ledger.read(raw.deadline_job(uid, status=status)))


def test_three_failures_in_a_rack_speak_against_the_rest_of_it() -> None:
    minute = model.MINUTE
    assert suspects({0: minute, 1: minute, 2: 9 * minute}, {}) == RACK
    assert suspects({0: minute, 1: minute}, {2: {"a"}}) == RACK
    assert suspects({0: minute, 1: minute, 4: minute}, {}) == []
    assert suspects({0: minute, 1: minute, 2: 2 * model.HOUR}, {}) == []
    assert suspects({0: minute, 1: minute, 2: minute}, {}, least=0) == []
    assert suspects({0: minute, 1: minute}, {}, least=2) == RACK


def test_one_job_that_can_start_nowhere_speaks_against_no_rack() -> None:
    assert suspects({}, {at: {"a"} for at in range(3)}) == []
    assert suspects({}, {0: {"a"}, 1: {"a", "b"}, 2: {"b"}}) == RACK


def test_without_domains_nobody_is_suspect() -> None:
    down = [view(f"n{at}", down_for=1) for at in range(4)]
    assert blame.suspects(blame.homes(None), down, [], now=NOW, least=3) == frozenset()


def job(uid: str, count: int, gpus: int) -> model.Job:
    group = model.Group("w", count, topology.PodShape(((GPU, gpus), ("pods", 1))))
    return model.Job(uid, "default", uid, "q", (group,), submit=0)


def snapshot(*jobs: model.Job, used: dict[int, int]) -> model.Snapshot:
    there = [
        topology.Node(f"n{at}", ((GPU, 8),), ((GPU, used.get(at, 0)),), ready=at != 7) for at in range(8)
    ]
    return model.Snapshot(nodes=tuple(there), jobs=jobs, domains=DOMAINS)


def test_what_gangs_cannot_use_within_a_rack_is_fragmented() -> None:
    # 32 are free in one rack and 16 in the other, of which a gang of 24 can use 24 and none.
    (figure,) = fragments.figures(DOMAINS, snapshot(job("a", 3, 8), used={4: 8}))
    assert (figure.level, figure.resource, figure.largest) == ("rack", GPU, 32)
    assert figure.fragmented == (8 + 16) / 48
    # One of 16 can use all.
    (both,) = fragments.figures(DOMAINS, snapshot(job("a", 3, 8), job("b", 2, 8), used={4: 8}))
    assert both.fragmented == (8 + 16) / 48 / 2
    assert fragments.figures(DOMAINS, snapshot(used={})) == []


def test_figures_of_the_interconnect_are_published_and_gone_with_it() -> None:
    figures, cache = metrics.Metrics(), caches.Cache(lambda: None)
    cache.see(DOMAINS)
    cache.occupancy.suspect(frozenset({"n3"}))
    figures.count_topology(cache, snapshot(job("a", 3, 8), used={4: 8}))
    text = figures.render().decode()
    assert 'lstqueue_topology_domains{level="rack"} 2.0' in text
    assert 'lstqueue_topology_fragmentation{level="rack",resource="nvidia.com/gpu"} 0.5' in text
    assert 'lstqueue_topology_largest_free{level="rack",resource="nvidia.com/gpu"} 32.0' in text
    assert "lstqueue_topology_suspect_nodes 1.0" in text
    cache.see(None)
    figures.count_topology(cache, None)
    assert "lstqueue_topology_domains{" not in figures.render().decode()
