"""The command itself, also as `python -m lstqueue`: interruptible before there is a command line, too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; importing it takes long enough for a Ctrl-C."""
    try:
        from lstqueue import cli
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
