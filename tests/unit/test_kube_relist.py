"""A relist against what an intake believes, with the world moving meanwhile."""

from __future__ import annotations

import pytest

from cases import kube_fakes
from lstqueue.kube import port, relist


def names(found: relist.Relisted) -> list[str]:
    return [item["metadata"]["name"] for item in found.changed]


async def test_it_names_what_is_new_changed_and_gone():
    api = kube_fakes.FakeApi()
    for name in ("same", "changed", "new"):
        api.put(name)
    known = {"uid-same": "101", "uid-changed": "50", "uid-gone": "60"}
    found = await relist.relist(api, port.PODS, known, page_size=1)
    assert names(found) == ["changed", "new"]
    assert found.vanished == ["uid-gone"]


async def test_a_name_that_was_taken_again_is_gone_and_new():
    api = kube_fakes.FakeApi()
    api.put("a", uid="second")
    found = await relist.relist(api, port.PODS, {"first": "9"})
    assert (names(found), found.vanished) == (["a"], ["first"])


async def test_nothing_there_and_nothing_known():
    found = await relist.relist(kube_fakes.FakeApi(), port.PODS, {})
    assert (found.changed, found.vanished) == ([], [])


async def test_what_the_intake_hears_meanwhile_is_left_to_it():
    api = kube_fakes.FakeApi()
    for name in ("updated", "deleted", "stale"):
        api.put(name)
    known = {"uid-updated": "1", "uid-deleted": "1", "uid-stale": "1", "uid-vanished": "1"}

    def meanwhile(offset: int) -> None:
        if offset == 2:
            known["uid-updated"] = "900"
            known["uid-created"] = "901"
            del known["uid-deleted"]
            del known["uid-vanished"]

    api.page_hook = meanwhile
    found = await relist.relist(api, port.PODS, known, page_size=1)
    assert (names(found), found.vanished) == (["stale"], [])


async def test_a_list_that_fails_reports_nothing():
    api = kube_fakes.FakeApi()
    api.put("a")
    api.put("b")
    api.page_hook = lambda offset: api.forget() if offset else None
    with pytest.raises(port.GoneError):
        await relist.relist(api, port.PODS, {"uid-gone": "1"}, page_size=1)
