"""Nodes in depth-first order, and domains as slices of it."""

import random

import pytest

from lstqueue.topology import domains


def members(found: domains.Domains, level: str) -> dict[str, tuple[str, ...]]:
    one = next(item for item in found.levels if item.name == level)
    slices = zip(one.names, one.starts, one.ends, strict=True)
    return {name: found.nodes[start:end] for name, start, end in slices}


PATHS: dict[str, domains.Path] = {
    "n10": ("b1", "s1"),
    "n9": ("b1", "s1"),
    "n1": ("b2", "s1"),
    "n2": ("b10", "s2"),
    "n3": ("b2", None),
    "n4": (None, "s3"),
    "n5": (None, None),
}


def test_every_domain_is_a_slice_of_nodes_in_natural_order() -> None:
    found = domains.arrange(["block", "leafgroup"], PATHS)
    assert found.nodes == ("n9", "n10", "n1", "n3", "n2", "n4", "n5")
    assert members(found, "block") == {"b1": ("n9", "n10"), "b2": ("n1", "n3"), "b10": ("n2",)}


def test_one_name_under_two_parents_is_two_domains() -> None:
    found = domains.arrange(["block", "leafgroup"], PATHS)
    assert members(found, "leafgroup") == {
        "b1/s1": ("n9", "n10"),
        "b2/s1": ("n1",),
        "b10/s2": ("n2",),
        "/s3": ("n4",),
    }


def test_a_domain_knows_its_parent_and_what_leads_there() -> None:
    found = domains.arrange(
        ["block", "leafgroup"], PATHS, uplinks={("b2", "s1"): 400_000, ("b1",): 7}, links={"n9": 50_000}
    )
    block, leafgroup = found.levels
    assert leafgroup.parents.tolist() == [0, 1, 2, -1]
    assert leafgroup.uplink.tolist() == [0, 400_000, 0, 0]
    assert block.parents.tolist() == [-1, -1, -1]
    assert block.uplink.tolist() == [7, 0, 0]
    assert found.link.tolist() == [50_000, 0, 0, 0, 0, 0, 0]


def test_the_order_in_which_nodes_are_told_does_not_matter() -> None:
    told = list(PATHS.items())
    first = domains.arrange(["block", "leafgroup"], dict(told))
    random.Random(1).shuffle(told)
    again = domains.arrange(["block", "leafgroup"], dict(told))
    assert again.nodes == first.nodes
    assert [level.names for level in again.levels] == [level.names for level in first.levels]


def test_names_with_slashes_stay_apart() -> None:
    found = domains.arrange(["block", "leafgroup"], {"n1": ("a/b", "c"), "n2": ("a", "b/c")})
    assert found.levels[1].names == ("a/b\\/c", "a\\/b/c")


def test_no_nodes_and_no_levels_are_fine() -> None:
    assert domains.arrange([], {"n2": (), "n1": ()}).nodes == ("n1", "n2")
    assert domains.arrange(["block"], {}).levels[0].names == ()


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="node n1: 1 domains for 2 levels"):
        domains.arrange(["block", "leafgroup"], {"n1": ("a",)})
    with pytest.raises(ValueError, match="has a name twice"):
        domains.arrange(["block", "block"], {"n1": ("a", "b")})
