"""One candidate: what it writes, how long it waits, and when it is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from cases import kube_fakes
from cases.lease_place import NAME, NAMESPACE, Place
from lstqueue.embedded import clock, faults
from lstqueue.kube import lease, lease_record, port
from lstqueue.operator import probes

virtually = kube_fakes.virtually


def time() -> float:
    return asyncio.get_running_loop().time()


async def forever() -> None:
    await asyncio.Event().wait()


@virtually
async def test_the_first_claims_the_lease_and_leads_when_nobody_objected():
    place = Place()
    elector = place.elector()
    with pytest.raises(lease.LostError, match="does not hold the Lease system/elected"):
        elector.check()
    await elector.acquire()
    assert time() == pytest.approx(10.0)
    elector.check()
    spec = place.spec()
    assert spec["renewTime"] == "2026-01-01T00:00:10.000000Z"
    assert spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    del spec["renewTime"], spec["acquireTime"]
    assert spec == {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0}


@virtually
async def test_it_renews_while_the_work_lasts_and_gives_the_lease_back():
    place = Place()
    elector = place.elector()
    await elector.acquire()

    async def work() -> None:
        for _ in range(60):
            elector.check()
            await asyncio.sleep(1)

    await elector.hold(work)
    spec = place.spec()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    with pytest.raises(lease.LostError):
        elector.check()


@virtually
async def test_what_was_given_back_is_taken_at_the_next_look():
    place = Place()
    place.put(holderIdentity="", leaseDurationSeconds=1, leaseTransitions=4)
    elector = place.elector()
    await elector.acquire()
    assert time() == 0.0
    assert place.spec()["leaseTransitions"] == 5


@virtually
async def test_a_silent_holder_is_waited_out_from_when_it_was_seen():
    place = Place()
    # Whatever its times say.
    place.put(holderIdentity="other", renewTime="2020-01-01T00:00:00.000000Z")
    await asyncio.sleep(100)
    elector = place.elector()
    await elector.acquire()
    assert time() == pytest.approx(115.0)


@virtually
async def test_every_sign_of_life_begins_the_wait_anew():
    place = Place()
    place.put(holderIdentity="other", renewTime="2026-01-01T00:00:00.000000Z")
    acquiring = asyncio.create_task(place.elector().acquire())
    for turn in range(1, 11):
        await asyncio.sleep(14)
        place.edit(renewTime=f"2020-01-01T00:00:{turn:02}.000000Z")
    assert not acquiring.done()
    await acquiring
    assert 155.0 <= time() <= 157.5


@virtually
async def test_labels_and_annotations_are_kept_and_are_no_sign_of_life():
    place = Place()
    place.put(holderIdentity="other")
    acquiring = asyncio.create_task(place.elector().acquire())
    await asyncio.sleep(10)
    place.store.patch(port.LEASES, NAMESPACE, NAME, {"metadata": {"labels": {"team": "platform"}}})
    await acquiring
    assert time() == pytest.approx(15.0)
    raw = place.store.get(port.LEASES, NAMESPACE, NAME)
    assert raw["metadata"]["labels"] == {"team": "platform"}


@pytest.mark.parametrize(
    ("told", "waits"), [(15, 15), (40, 40), (60, 60), (61, 15), (2_000_000_000, 15), (2, 15), (None, 15)]
)
def test_another_duration_is_honoured_when_it_may_be_meant(told: int | None, waits: int):
    async def scenario() -> None:
        place = Place()
        place.put(holderIdentity="other")
        place.edit(leaseDurationSeconds=told)
        await place.elector().acquire()
        assert time() == pytest.approx(waits)

    clock.run(scenario(), horizon=1000)


@virtually
async def test_a_claim_whose_answer_was_lost_is_found_again():
    place = Place()
    place.state.faults.lose_response(when=faults.calls(resource=port.LEASES, verb="create"))
    elector = place.elector()
    await elector.acquire()
    assert time() <= 13.0
    assert place.spec()["leaseTransitions"] == 0


@virtually
async def test_an_outage_is_waited_for_and_a_refusal_is_not():
    place = Place()
    place.state.faults.fail(503, "ServiceUnavailable", when=faults.any_call, times=100)
    elector = place.elector()
    await elector.acquire()
    assert time() > 200
    await elector.release()
    place.state.faults.fail(403, "Forbidden", message="no", when=faults.any_call, times=None)
    began = time()
    with pytest.raises(
        lease.RefusedError, match=r"grant get, create and update on leases .* in namespace system"
    ):
        await place.elector("other").acquire()
    assert time() - began == pytest.approx(10.0)


@virtually
async def test_a_namespace_that_is_not_there_is_named():
    place = Place()
    terms = lease.Terms("nowhere", NAME, "me")
    with pytest.raises(lease.RefusedError, match=r"Lease nowhere/elected .*check --lease-namespace"):
        await lease.Elector(place.wire(), terms, now=place.now).acquire()


@virtually
async def test_a_refusal_is_seen_at_once_and_a_read_that_works_does_not_end_it():
    place = Place()
    place.put(holderIdentity="other", renewTime="2026-01-01T00:00:00.000000Z")
    writes = faults.calls(resource=port.LEASES, verb="update")
    place.state.faults.fail(403, "Forbidden", message="no", when=writes, times=None)
    elector = place.elector()
    waiting = asyncio.ensure_future(elector.acquire())
    await asyncio.sleep(10)
    assert elector.refused == ""
    await asyncio.sleep(8)
    assert "no" in elector.refused
    # A read that works, as each of these did, has not taken it back.
    await asyncio.sleep(5)
    assert "no" in elector.refused
    with pytest.raises(lease.RefusedError):
        await waiting


async def refused_once(place: Place, elector: lease.Elector, verb: str, *, live: bool) -> None:
    """Refuse one call beside a leader that renews the Lease each second, or only once that was refused."""
    calls = faults.calls(resource=port.LEASES, verb=verb)
    place.state.faults.fail(403, "Forbidden", message="no", when=calls, times=1)
    was_refused = False
    for second in range(60):
        if live or was_refused:
            place.edit(renewTime=f"2026-01-01T00:00:{second:02}.{int(time()) % 1000:03}000Z")
        await asyncio.sleep(0.5)
        was_refused = was_refused or bool(elector.refused)
        await asyncio.sleep(0.5)
    assert was_refused


@virtually
async def test_a_refused_read_is_forgotten_at_the_next_that_works():
    place = Place()
    place.put(holderIdentity="other", renewTime="2026-01-01T00:00:00.000000Z")
    elector = place.elector()
    waiting = asyncio.ensure_future(elector.acquire())
    for _ in range(3):
        await refused_once(place, elector, "get", live=True)
        assert (elector.refused, waiting.done()) == ("", False)
    waiting.cancel()


@virtually
async def test_a_refused_write_is_forgotten_once_another_leads():
    place = Place()
    place.put(holderIdentity="other", renewTime="2026-01-01T00:00:00.000000Z")
    elector = place.elector()
    waiting = asyncio.ensure_future(elector.acquire())
    for _ in range(3):
        await refused_once(place, elector, "update", live=False)
        assert (elector.refused, waiting.done()) == ("", False)
    waiting.cancel()


@virtually
async def test_an_outage_is_no_refusal():
    place = Place()
    place.state.faults.fail(503, "ServiceUnavailable", when=faults.any_call, times=5)
    elector = place.elector()
    waiting = asyncio.ensure_future(elector.acquire())
    await asyncio.sleep(3)
    assert elector.refused == ""
    await waiting
    await elector.release()


@virtually
async def test_the_probes_say_that_it_may_never_lead():
    place = Place()
    elector = lease.Elector(place.wire(), lease.Terms("nowhere", NAME, "me"), now=place.now)
    served = probes.Probes(lambda: None, elector=elector, host="127.0.0.1", port=0)
    await served.start()
    try:
        waiting = asyncio.ensure_future(elector.acquire())
        await asyncio.sleep(5)
        url = f"http://127.0.0.1:{served.port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 503
            told = await answer.text()
        assert told.startswith("cannot lead: the Lease nowhere/elected is refused (404 NotFound: namespaces")
        with pytest.raises(lease.RefusedError):
            await waiting
    finally:
        await served.stop()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"identity": ""}, "terms.identity is empty"),
        ({"duration": 61}, "terms.duration is 61; it must be from 2 to 60 seconds"),
        ({"duration": 10}, "must ascend"),
        ({"deadline": 2.4}, "must ascend"),
        ({"retry": 0.0}, "must ascend"),
    ],
)
def test_terms_that_make_no_sense_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        lease_record.Terms(**{"namespace": NAMESPACE, "name": NAME, "identity": "me", **fields})
