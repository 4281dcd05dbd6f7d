"""The ``ouvrage`` command: sends ``run`` to the meter, and everything else to the other verbs.

The meter stands on the standard library alone, so this module imports nothing else before it knows
what was asked for. Where only the meter is at hand (the single file ``ouvrage.pyz``), the other
verbs say what to install.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import ouvrage
from ouvrage.base.errors import NOTHING_WRITTEN, OuvrageError

_RUN_VERBS = frozenset({"export", "import", "push"})


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except OuvrageError as error:
        for line in (*error.lines(), NOTHING_WRITTEN):
            sys.stderr.write(line + "\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _dispatch(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        sys.stdout.write(f"ouvrage {ouvrage.__version__}\n")
        return 0
    if arguments[:1] == ["run"] and not _RUN_VERBS & set(arguments[1:2]):
        from ouvrage.meter.command import main as run

        return run(arguments[1:])
    return _other(arguments)


def _other(arguments: list[str]) -> int:
    try:
        from ouvrage.cli.main import main as cli
    except ModuleNotFoundError as error:
        if error.name not in ("click", "ouvrage.cli", "ouvrage.cli.main"):
            raise
        from ouvrage.meter.alone import main as alone

        return alone(arguments)
    return cli(arguments)


if __name__ == "__main__":
    sys.exit(main())
