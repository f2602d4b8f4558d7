"""Ctrl-C while a solver works: that is another language, and Python hears of no signal until it is through.

That may be hours. So for that time the signal does what it does to any program, and ends the process; a shell
sees 130 as it does elsewhere. Whoever has other plans for the signal, as replays in processes of their own
have, keeps them.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def deadly() -> Iterator[None]:
    """Have Ctrl-C end the process at once, where it would have raised KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
