"""Whether our clock may be believed: the server's time is asked for, and not for every question."""

import asyncio

import pytest

from lstqueue.api import times
from lstqueue.embedded import clock
from lstqueue.kube import port
from lstqueue.operator import skew

NOW = 1_800_000_000_000


class Server:
    """Answers with its own time, or with an error."""

    def __init__(self, at=NOW, error=None):
        self.at, self.error, self.asked = at, error, 0

    async def create(self, resource, namespace, body, *, dry_run=False):
        assert dry_run
        self.asked += 1
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


def test_a_server_that_does_not_tell_its_time_is_believed_to_agree(caplog):
    clock.run(
        ours(Server(error=port.ForbiddenError(403, "Forbidden", "no")), 10**9).check("team"), horizon=10
    )
    assert "ours is believed" in caplog.text


def test_a_server_that_does_not_answer_lets_nothing_be_concluded():
    error = port.UnavailableError(503, "Unavailable", "away")
    with pytest.raises(port.UnavailableError):
        clock.run(ours(Server(error=error), 0).check("team"), horizon=10)
