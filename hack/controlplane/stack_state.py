"""What a control plane leaves on disk: the folder it owns and the list of its processes.

The list lets a later command, or the watch over an abandoned plane, end exactly these processes.
"""

import json
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterable

import stack_process

STATE = "plane.json"


def claim(directory: pathlib.Path) -> None:
    """Empty the folder for a new plane.

    Raises:
        ControlPlaneError: a plane runs there, or it holds files that are not a plane's.
    """
    directory.mkdir(parents=True, exist_ok=True)
    state = directory / STATE
    if state.exists():
        running = [process.name for process in read(directory) if process.is_alive()]
        if running:
            raise stack_process.ControlPlaneError(f"{directory} is in use: {', '.join(running)} still run")
        shutil.rmtree(directory)
        directory.mkdir()
    elif any(directory.iterdir()):
        raise stack_process.ControlPlaneError(f"{directory} holds other files; name an empty folder")
    write(directory, ())


def write(directory: pathlib.Path, processes: Iterable[stack_process.Process]) -> None:
    """Record the running processes, in the order they were started."""
    listed = [{"name": one.name, "pid": one.pid, "birth": one.birth} for one in processes]
    partial = directory / f"{STATE}.partial"
    partial.write_text(json.dumps(listed, indent=1), encoding="utf-8")
    # A reader comes when the writer was killed, at whatever moment that was.
    partial.replace(directory / STATE)


def read(directory: pathlib.Path) -> list[stack_process.Process]:
    """Return the recorded processes, some of which may have ended.

    Raises:
        ControlPlaneError: no plane was ever started there.
    """
    try:
        listed = json.loads((directory / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise stack_process.ControlPlaneError(f"{directory} holds no control plane") from None
    return [stack_process.Process(one["name"], one["pid"], one["birth"]) for one in listed]


def stop(directory: pathlib.Path) -> None:
    """End the recorded processes, clients before their servers."""
    stack_process.end_all(reversed(read(directory)))
    write(directory, ())


class Watch:
    """Ends the plane in ``directory`` when this interpreter dies without doing so itself.

    A child process waits for the end of its standard input, which comes with our death however
    sudden it is; a signal handler would miss SIGKILL.
    """

    def __init__(self, directory: pathlib.Path, *, script: pathlib.Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(script), "stop", "--after-stdin", f"--directory={directory}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Call off the watch; the plane must have ended before."""
        self._child.communicate()
