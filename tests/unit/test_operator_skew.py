"""Whether our clock may be believed: the server's time is asked for, and not for every question."""

import asyncio

import pytest

from lstqueue.api import times
from lstqueue.embedded import clock
from lstqueue.kube import port
from lstqueue.operator import skew

NOW = 1_800_000_000_000


class Server:
    """Answers with its own time, or with an error; `leaving` are namespaces in which nothing is made."""

    def __init__(self, at=NOW, error=None, leaving=(), wait=0):
        self.at, self.error, self.leaving, self.wait, self.asked = at, error, leaving, wait, 0

    async def create(self, resource, namespace, body, *, dry_run=False):
        assert dry_run
        self.asked += 1
        await asyncio.sleep(self.wait)
        if namespace in self.leaving:
            raise port.ForbiddenError(403, "Forbidden", "it is being terminated")
        if self.error is not None:
            raise self.error
        return {**body, "metadata": {**body["metadata"], "creationTimestamp": times.format(self.at)}}


def ours(server, ahead):
    return skew.Skew(server, now=lambda: NOW + ahead)


@pytest.mark.parametrize("ahead", [-30 * 86_400_000, 0, 60_000])
def test_a_clock_that_is_right_or_late_is_believed(ahead):
    clock.run(ours(Server(), ahead).check("team"), horizon=10)


@pytest.mark.parametrize("ahead", [61_000, 30 * 86_400_000])
def test_a_clock_that_is_ahead_is_not(ahead):
    with pytest.raises(skew.SkewError, match=r"ahead of the API server's"):
        clock.run(ours(Server(), ahead).check("team"), horizon=10)


def test_it_is_asked_once_in_half_a_minute_and_anew_at_once_after_a_clock_was_wrong():
    async def main():
        server = Server()
        made = ours(server, 0)
        for _ in range(5):
            await made.check("team")
        assert server.asked == 1
        await asyncio.sleep(31)
        server.at = NOW - 3_600_000
        with pytest.raises(skew.SkewError):
            await made.check("team")
        server.at = NOW
        await made.check("team")
        assert server.asked == 3

    clock.run(main(), horizon=100)


def going(server, ahead):
    """Both clocks go; `ahead` has what ours is ahead by."""

    def time():
        return NOW + int(asyncio.get_running_loop().time() * 1000)

    class Going(Server):
        async def create(self, *args, **named):
            self.at = time() // 1000 * 1000
            return await super().create(*args, **named)

    server.__class__ = Going
    return skew.Skew(server, now=lambda: time() + ahead[0])


def test_a_clock_that_jumps_after_it_was_found_right_is_not_believed_until_it_is_right_again():
    async def main():
        server, ahead = Server(), [0]
        made = going(server, ahead)
        await made.check("team")
        await asyncio.sleep(10)
        ahead[0] = 86_400_000
        with pytest.raises(skew.SkewError):
            await made.check("team")
        assert made.ahead == pytest.approx(86_400_000, abs=1000)
        ahead[0] = 0
        await made.check("team")

    clock.run(main(), horizon=100)


def test_a_namespace_in_which_nothing_can_be_asked_says_nothing_of_the_others():
    async def main():
        server, ahead = Server(leaving={"leaving"}), [86_400_000]
        made = going(server, ahead)
        await made.check("leaving")
        for namespace in ("team", "leaving"):
            with pytest.raises(skew.SkewError):
                await made.check(namespace)
        await asyncio.sleep(3600)
        with pytest.raises(skew.SkewError):
            await made.check("leaving")
        ahead[0] = 0
        await made.check("leaving")

    clock.run(main(), horizon=5000)


def test_a_question_that_waits_for_its_turn_makes_no_clock_look_better():
    async def main():
        server = Server(wait=50)
        made = skew.Skew(server, now=lambda: NOW + 90_000 + int(asyncio.get_running_loop().time() * 1000))
        server.at = NOW + 50_000
        with pytest.raises(skew.SkewError):
            await made.check("team")
        assert made.ahead == 90_000

    clock.run(main(), horizon=100)


def test_many_who_come_at_once_share_one_question_and_its_error():
    async def main():
        server = Server(wait=5)
        made = going(server, [0])
        await asyncio.gather(*(made.check("team") for _ in range(16)))
        assert server.asked == 1
        await asyncio.sleep(60)
        server.error = port.UnavailableError(0, "Timeout", "no answer")
        found = await asyncio.gather(*(made.check("team") for _ in range(16)), return_exceptions=True)
        assert {type(one) for one in found} == {skew.UntimelyError}
        assert server.asked == 2
        server.error = None
        await made.check("team")

    clock.run(main(), horizon=200)


def test_a_server_that_does_not_tell_its_time_is_believed_to_agree(caplog):
    clock.run(
        ours(Server(error=port.ForbiddenError(403, "Forbidden", "no")), 10**9).check("team"), horizon=10
    )
    assert "does not tell its time" in caplog.text


def test_a_server_that_does_not_answer_lets_nothing_be_concluded():
    error = port.UnavailableError(503, "Unavailable", "away")
    with pytest.raises(port.UnavailableError):
        clock.run(ours(Server(error=error), 0).check("team"), horizon=10)


class Webhook(Server):
    """Fails for Events only."""

    async def create(self, resource, namespace, body, *, dry_run=False):
        if resource == port.EVENTS:
            raise port.UnavailableError(500, "InternalError", "failed calling webhook")
        return await super().create(resource, namespace, body, dry_run=dry_run)


def test_where_only_events_fail_another_kind_tells_the_time():
    clock.run(ours(Webhook(), 0).check("team"), horizon=10)
    with pytest.raises(skew.SkewError):
        clock.run(ours(Webhook(), 120_000).check("team"), horizon=10)


def test_a_server_that_only_fails_is_after_ten_minutes_taken_to_be_as_it_was_last_known():
    async def main():
        lead, server, started = [0], Server(), asyncio.get_running_loop().time()

        def now():
            return NOW + lead[0] + int((asyncio.get_running_loop().time() - started) * 1000)

        made = skew.Skew(server, now=now)
        await made.check("team")
        server.error = port.UnavailableError(500, "InternalError", "failed calling webhook")
        for _ in range(10):
            await asyncio.sleep(60)
            with pytest.raises(skew.UntimelyError):
                await made.check("team")
        await asyncio.sleep(60)
        await made.check("team")
        lead[0] = 120_000
        with pytest.raises(skew.SkewError):
            await made.check("team")
        # What failed long ago says nothing of now.
        lead[0] = 0
        await asyncio.sleep(3_600)
        with pytest.raises(skew.UntimelyError):
            await made.check("team")

    clock.run(main(), horizon=10_000)
