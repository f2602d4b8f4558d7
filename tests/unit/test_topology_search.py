from __future__ import annotations

import numpy as np
import pytest

from lstqueue.topology import bandwidth, domains, search, tree, wanted

GPUS = 8


def fabric(
    shape: dict[str, int], levels: tuple[str, ...] = ("block", "leafgroup"), **more: object
) -> tree.Tree:
    """Nodes by domain: {"b1/l1": 4} is four nodes of leaf group l1 of block b1."""
    paths: dict[str, domains.Path] = {}
    for where, count in shape.items():
        for _ in range(count):
            parts = [part or None for part in where.split("/")] if where else []
            paths[f"n{len(paths)}"] = (*parts, *[None] * (len(levels) - len(parts)))
    return tree.Tree(domains.arrange(levels, paths, **more))


def free(*gpus: int, whole: int = GPUS) -> wanted.Free:
    return wanted.Free(np.array([gpus]), np.full((1, len(gpus)), whole))


def group(pods: int, gpus: int = GPUS, **more: object) -> wanted.Group:
    return wanted.Group(pods, (gpus,), **more)


def placed(
    on: tree.Tree, room: wanted.Free, *groups: wanted.Group, **more: int
) -> list[dict[str, int]] | None:
    place = search.find(on, room, wanted.Wanted(groups, **more))
    if place is None:
        return None
    names = on.domains.nodes
    pairs = [zip(part.nodes.tolist(), part.pods.tolist(), strict=True) for part in place.parts]
    return [{names[node]: pods for node, pods in part} for part in pairs]


def test_a_gang_that_fits_in_one_leaf_group_is_not_spread() -> None:
    on = fabric({"b1/l1": 3, "b1/l2": 4, "b2/l1": 4})
    assert placed(on, free(*[8] * 7, 8, 8, 8, 0), group(4)) == [{"n3": 1, "n4": 1, "n5": 1, "n6": 1}]


def test_the_tightest_of_leaf_groups_that_fit_is_taken() -> None:
    on = fabric({"b1/l1": 4, "b1/l2": 3, "b1/l3": 4})
    assert placed(on, free(*[8] * 11), group(3)) == [{"n4": 1, "n5": 1, "n6": 1}]


def test_leaf_groups_of_one_block_are_better_than_of_two() -> None:
    on = fabric({"b1/l1": 3, "b2/l1": 2, "b2/l2": 2})
    assert placed(on, free(*[8] * 7), group(4)) == [{"n3": 1, "n4": 1, "n5": 1, "n6": 1}]


def test_without_one_top_domain_the_fewest_are_combined() -> None:
    on = fabric({"b1/l1": 2, "b2/l1": 3, "b3/l1": 3})
    assert placed(on, free(*[8] * 8), group(6)) == [{f"n{i}": 1 for i in range(2, 8)}]


def test_nodes_are_in_rank_order_though_the_largest_domain_is_taken_first() -> None:
    on = fabric({"b1/l1": 2, "b2/l1": 3})
    place = search.find(on, free(*[8] * 5), wanted.Wanted((group(5),)))
    assert place is not None
    assert place.parts[0].nodes.tolist() == [0, 1, 2, 3, 4]
    assert place.key[:2] == (2, 2)


def test_required_is_never_broken_though_room_exists() -> None:
    on = fabric({"b1/l1": 3, "b1/l2": 3})
    assert placed(on, free(*[8] * 6), group(4), required=2) is None
    assert placed(on, free(*[8] * 6), group(4), required=1) is not None


def test_a_node_that_lacks_the_required_level_is_not_eligible_for_it_but_is_for_others() -> None:
    on = fabric({"b1/l1": 1, "b1": 3})
    assert placed(on, free(*[8] * 4), group(2), required=2) is None
    assert placed(on, free(*[8] * 4), group(4), required=1) is not None


def test_slices_share_a_domain() -> None:
    on = fabric({"b1/l1": 3, "b1/l2": 3, "b1/l3": 2})
    found = placed(on, free(*[8] * 8), group(6, slice=2, slice_tier=2))
    assert found is not None
    by_leaf = [
        sum(found[0].get(name, 0) for name in names) for names in (("n0", "n1", "n2"), ("n3", "n4", "n5"))
    ]
    assert by_leaf == [2, 2]
    assert placed(on, free(*[8] * 8), group(8, slice=4, slice_tier=2)) is None


def test_slices_of_a_node_are_not_parted() -> None:
    on = fabric({"b1/l1": 3})
    assert placed(on, free(6, 7, 6), group(12, gpus=1, slice=4)) == [{"n0": 4, "n1": 4, "n2": 4}]
    assert placed(on, free(6, 3, 6), group(12, gpus=1, slice=4)) is None


def test_nvlink_domains_get_equal_shares() -> None:
    on = fabric({"b1/r1": 7, "b1/r2": 7}, levels=("block", "nvl"))
    room = free(*[8] * 14)
    alone = placed(on, room, group(8))
    equal = placed(on, room, group(8), balance=2)
    assert alone is not None
    assert equal is not None
    assert sum(name in alone[0] for name in ("n0", "n1", "n2", "n3", "n4", "n5", "n6")) == 7
    assert sum(name in equal[0] for name in ("n0", "n1", "n2", "n3", "n4", "n5", "n6")) == 4


def test_pods_smaller_than_a_node_go_to_the_most_used_node_that_holds_them() -> None:
    on = fabric({"b1/l1": 4})
    assert placed(on, free(8, 3, 2, 8), group(2, gpus=1)) == [{"n2": 2}]
    assert placed(on, free(8, 3, 2, 8), group(5, gpus=1)) == [{"n0": 5}], "fewer nodes first"


def test_the_leader_is_placed_with_its_workers() -> None:
    on = fabric({"b1/l1": 3, "b1/l2": 4, "b2/l1": 4})
    found = placed(on, free(*[8] * 11), group(1, gpus=2), group(3))
    assert found == [{"n3": 1}, {"n4": 1, "n5": 1, "n6": 1}] or found == [
        {"n6": 1},
        {"n3": 1, "n4": 1, "n5": 1},
    ]


def test_a_leader_like_its_workers_is_counted_with_them_and_has_the_first_node() -> None:
    on = fabric({"b1/l1": 3, "b1/l2": 4})
    assert placed(on, free(*[8] * 7), group(1), group(3)) == [{"n3": 1}, {"n4": 1, "n5": 1, "n6": 1}]


def test_a_domain_that_holds_only_the_first_group_is_given_up_for_one_that_holds_all() -> None:
    on = fabric({"b1/l1": 2, "b1/l2": 3})
    leader = group(1, gpus=0, mask=np.array([False, False, True, True, True]))
    assert placed(on, free(*[8] * 5), leader, group(2), required=2) == [{"n2": 1}, {"n2": 1, "n3": 1}]


def test_groups_keep_to_their_pools() -> None:
    on = fabric({"b1/l1": 2, "b1/l2": 2})
    cpu, gpu = np.array([True, False, True, False]), np.array([False, True, False, True])
    found = placed(on, free(*[8] * 4), group(1, mask=cpu), group(1, mask=gpu))
    assert found == [{"n0": 1}, {"n1": 1}]


def test_worse_links_are_left_alone_where_others_do() -> None:
    on = fabric({"b1/l1": 4}, links={"n0": 200, "n1": 400, "n2": 400, "n3": 400})
    assert placed(on, free(8, 8, 8, 8), group(2)) == [{"n1": 1, "n2": 1}]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (wanted.Wanted(()), "at least one"),
        (wanted.Wanted((group(3, slice=2),)), "multiple of the slice"),
        (wanted.Wanted((wanted.Group(1, ()),)), "amounts"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: wanted.Wanted, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        search.find(fabric({"b1/l1": 1}), free(8), asked)


def judged(
    on: tree.Tree, room: wanted.Free, *groups: wanted.Group, balance: int | None = None
) -> bandwidth.Quality:
    asked = wanted.Wanted(groups, balance=balance)
    place = search.find(on, room, asked)
    assert place is not None
    return bandwidth.judge(on, room, asked, [(part.nodes, part.pods) for part in place.parts])


def test_a_gang_in_one_leaf_group_has_the_links_of_its_nodes() -> None:
    on = fabric({"b1/l1": 2, "b1/l2": 4}, links={f"n{i}": 400 for i in range(6)}, uplinks={("b1", "l2"): 100})
    assert judged(on, free(*[8] * 6), group(4)) == bandwidth.Quality(1, (1, 1), (1, 1), 2, 400, 400, 400)


def test_the_uplink_limits_a_gang_that_leaves_its_leaf_group() -> None:
    uplinks = {("b1", "l1"): 800, ("b1", "l2"): 150}
    on = fabric({"b1/l1": 2, "b1/l2": 2}, links={f"n{i}": 400 for i in range(4)}, uplinks=uplinks)
    found = judged(on, free(*[8] * 4), group(4))
    assert (found.level, found.used, found.fewest, found.hops) == (0, (1, 2), (1, 2), 4)
    assert (found.ring, found.best) == (150, 400)
    assert found.all_to_all == 150 * 3 // 4, "two pods send to two of three others"


def test_nvlink_domains_are_as_fast_as_the_smaller_share() -> None:
    # NCCL issue 1801: about 49 GB/s for each GPU of the smaller share, 4 GPUs a node.
    uplinks = {("b1", "r1"): 49 * 28, ("b1", "r2"): 49 * 28}
    links = {f"n{i}": 3600 for i in range(14)}
    on = fabric({"b1/r1": 7, "b1/r2": 7}, levels=("block", "nvl"), uplinks=uplinks, links=links)
    room = free(*[4] * 14, whole=4)
    assert judged(on, room, group(8, gpus=4)).ring == 49 * 4
    assert judged(on, room, group(8, gpus=4), balance=2).ring == 49 * 16
    assert judged(on, room, group(2, gpus=4)).hops == 2


def test_a_ring_out_of_order_crosses_and_is_slower() -> None:
    uplinks = {("b1", "l1"): 400, ("b1", "l2"): 400}
    on = fabric({"b1/l1": 4, "b1/l2": 4}, links={f"n{i}": 400 for i in range(8)}, uplinks=uplinks)
    order, gang = np.arange(8), bandwidth.Rates(np.full(8, 400), {})
    assert bandwidth.crossings(on, 2, order).tolist() == [1, 1]
    assert bandwidth.ring(on, order, gang) == 400
    shuffled = np.array([0, 4, 1, 5, 2, 6, 3, 7])
    assert bandwidth.crossings(on, 2, shuffled).tolist() == [4, 4]
    assert bandwidth.ring(on, shuffled, gang) == 100


def test_bandwidth_that_nobody_told_is_unknown() -> None:
    found = judged(fabric({"b1/l1": 1, "b2/l1": 1}), free(8, 8), group(2))
    assert (found.level, found.hops, found.ring, found.all_to_all) == (None, 6, 0, 0)
