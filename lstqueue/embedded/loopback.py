"""Whether bytes are under way between the TCP sockets of this process.

The virtual clock asks before it jumps. On Linux the answer is exact; elsewhere there is no portable way to
ask, and the clock allows a grace instead (`GRACE`).
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import selectors
import socket
import sys
import termios
from collections.abc import Mapping

GRACE = 0.0 if sys.platform == "linux" else 0.0005
"""Real seconds to wait before a look at the sockets may be believed."""


class Wire:
    """Tells whether bytes are under way on TCP sockets: sent, and not yet in the receiver's buffer.

    Loopback delivery is nearly, but not always, done when send() returns; under load the kernel defers it.
    The sender's queue of unacknowledged bytes says exactly what is missing, once the receivers have been told
    not to delay their acknowledgements (they may, by 40 ms, without anything being under way).

    Attributes:
        opening: whether, at the last look, a connection was being opened.
    """

    def __init__(self) -> None:
        self.opening = False
        self._queue = array.array("i", [0])
        self._stalled: dict[int, int] = {}

    def busy(self, sockets: Mapping[int, int]) -> bool:
        """Return whether anything is under way on `sockets` that is not written off.

        Args:
            sockets: file descriptor → events that are waited for.
        """
        if not self._under_way(sockets):
            return False
        for fd in sockets:
            _acknowledge(fd)
        return any(self._stalled.get(fd) != queued for fd, queued in self._under_way(sockets).items())

    def write_off(self, sockets: Mapping[int, int]) -> None:
        """Take what is queued now for bytes that a stalled reader leaves there."""
        self._stalled = self._under_way(sockets)

    def _under_way(self, sockets: Mapping[int, int]) -> dict[int, int]:
        found: dict[int, int] = {}
        self.opening = False
        for fd, events in sockets.items():
            try:
                fcntl.ioctl(fd, termios.TIOCOUTQ, self._queue)
            except OSError:  # a pipe or a listening socket: it has no such queue
                continue
            queued = self._queue[0]
            # A socket that is open and has nothing queued can always be written to.
            opening = bool(events & selectors.EVENT_WRITE) and not queued
            if queued or opening:
                found[fd] = queued
                self.opening |= opening
        return found


def _acknowledge(fd: int) -> None:
    """Have the kernel acknowledge now what the socket has received."""
    with contextlib.suppress(OSError):  # not TCP
        sock = socket.socket(fileno=fd)
        try:
            if sys.platform == "linux":
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        finally:
            sock.detach()
