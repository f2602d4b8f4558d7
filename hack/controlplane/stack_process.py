"""Operating system side of the local control plane: processes, ports and deadlines.

A process is known by its pid together with its start time, because pids are reused: a state file
left over from last week must never end somebody else's program.  That needs ``/proc``, so this
module is for Linux.  Nothing here knows about Kubernetes.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

POLL_S = 0.05
LOG_TAIL_BYTES = 2_000
END_WITHIN_S = 10.0


class ControlPlaneError(Exception):
    """The local control plane could not do what was asked; the message says what to look at."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources of one process: resident memory now and at its peak in KiB, CPU time in ms."""

    name: str
    pid: int
    rss_kib: int
    peak_rss_kib: int
    cpu_ms: int

    def __str__(self) -> str:
        memory = f"memory {self.rss_kib // 1024} MiB (peak {self.peak_rss_kib // 1024})"
        return f"{self.name:24} pid {self.pid}  {memory}  CPU {self.cpu_ms / 1000:.1f} s"


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A running program, started here or read back from a state file.

    ``birth`` is its start time in clock ticks since boot.  ``child`` is there for processes started
    by this interpreter only, which has to reap them.
    """

    name: str
    pid: int
    birth: int
    child: subprocess.Popen[bytes] | None = dataclasses.field(default=None, compare=False, repr=False)

    def is_alive(self) -> bool:
        """Say whether it still runs; a process that waits to be reaped does not."""
        if self.child is not None and self.child.poll() is not None:
            return False
        stat = _stat(self.pid)
        return stat is not None and stat.birth == self.birth and stat.state not in ("Z", "X")

    def end(self) -> None:
        """Kill it and wait until it is gone.

        Raises:
            ControlPlaneError: it outlived the deadline.
        """
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                # No graceful end: nothing outlives the plane, so there is nothing to flush.
                os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.is_alive(), what=f"{self.name} to end", within_s=END_WITHIN_S)
        if self.child is not None:
            self.child.wait()

    def usage(self) -> Usage | None:
        """Return what it uses, or None when it has ended."""
        stat = _stat(self.pid)
        if stat is None or not self.is_alive():
            return None
        memory = {"VmRSS": 0, "VmHWM": 0}
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines():
                key, _, value = line.partition(":")
                if key in memory:
                    memory[key] = int(value.split()[0])
        return Usage(
            name=self.name,
            pid=self.pid,
            rss_kib=memory["VmRSS"],
            peak_rss_kib=memory["VmHWM"],
            cpu_ms=stat.cpu_ticks * 1000 // os.sysconf("SC_CLK_TCK"),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    birth: int
    cpu_ticks: int


def _stat(pid: int) -> _Stat | None:
    """Read the fields of proc(5) ``stat`` that matter here; None when there is no such process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name comes second, in parentheses, and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], birth=int(fields[19]), cpu_ticks=int(fields[11]) + int(fields[12]))


def spawn(name: str, argv: Sequence[str], *, log: pathlib.Path, environ: Mapping[str, str]) -> Process:
    """Start a program in a session of its own, its output appended to ``log``.

    The session keeps an interrupt from the terminal away from it, so that the owner decides in which
    order things end.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=log.parent,
            env={**os.environ, **environ},
        )
    stat = _stat(child.pid)
    if stat is None:
        raise ControlPlaneError("the local control plane needs Linux: it tells processes apart by /proc")
    return Process(name, child.pid, stat.birth, child)


def end_all(processes: Iterable[Process]) -> None:
    """End the processes in the order given, all of them even when one resists."""
    failed: list[str] = []
    for process in processes:
        try:
            process.end()
        except ControlPlaneError as error:
            failed.append(str(error))
    if failed:
        raise ControlPlaneError("; ".join(failed))


def log_tail(log: pathlib.Path) -> str:
    """Return the end of a log, for error messages."""
    if not log.exists():
        return f"{log} does not exist"
    return f"end of {log}:\n" + log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")


def wait_until(condition: Callable[[], bool], *, what: str, within_s: float) -> None:
    """Poll until ``condition`` holds.

    Raises:
        ControlPlaneError: it did not hold within ``within_s`` seconds.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= deadline:
            raise ControlPlaneError(f"waited {within_s:.0f} s in vain for {what}")
        time.sleep(POLL_S)


class PortReservation:
    """Free TCP ports on loopback, kept from everyone but servers that bind them by number.

    A port that was merely found free can be lost before its server binds it, or while the server is
    restarted: the kernel hands it to the next outgoing connection.  Holding a bound socket prevents
    that.  It does not listen and allows reuse of its address, as Go's servers do as well, so Linux
    lets them bind the same port.
    """

    def __init__(self, count: int) -> None:
        self._sockets: list[socket.socket] = []
        for _ in range(count):
            held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            self._sockets.append(held)
        self.ports: tuple[int, ...] = tuple(int(held.getsockname()[1]) for held in self._sockets)

    def release(self) -> None:
        """Let go of the ports."""
        for held in self._sockets:
            held.close()
