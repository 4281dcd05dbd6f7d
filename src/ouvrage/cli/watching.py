"""The watch's own process, which ``ouvrage agent run`` becomes: nothing of the command line is loaded in it.

Decides nothing that the command did not: what was named there comes as words, what the owner wrote down is read again. It
stands among the verbs because a refusal leaves it as it leaves any of them. It lives as long as the machine, so that what
reads commands (a quarter of its memory) is left behind.

    python -m ouvrage.cli.watching --state DIR --node NAME --root DIR (--home DIR | --server URL) …
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ouvrage.agent.probing.settings import settings_in
from ouvrage.agent.probing.watch import (
    Supervisor,
    Watching,
    alert_words,
    deliver_words,
    repair_words,
)
from ouvrage.base.errors import OuvrageError


def main(words: Sequence[str] | None = None) -> int:
    """Watch until told to stop. Exit code 2: it could not begin."""
    parser = argparse.ArgumentParser()
    for name in ("--state", "--node", "--root", "--home", "--server", "--ca", "--shown"):
        parser.add_argument(name)
    for name in ("--observer", "--alerts"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--bmc", action="append", default=[])
    given = parser.parse_args(words)
    try:
        supervisor = _supervisor(given)
    except OuvrageError as error:
        from ouvrage.cli.output import say_error

        return say_error(error, as_json=False)
    sys.stdout.write(
        f"Watching {given.node}, with what it finds in {given.state}\nNow: {given.shown}\n"
    )
    sys.stdout.flush()
    supervisor.run()
    return 0


def _supervisor(given: argparse.Namespace) -> Supervisor:
    try:
        return Supervisor(_watching(given))
    except OSError as error:
        raise OuvrageError(
            "agent/state", f"{given.state} cannot be written to: {error.strerror}",
            hint="make room, or name another directory: --state DIR",
        ) from error  # fmt: skip


def _watching(given: argparse.Namespace) -> Watching:
    """How the watch is started, by what was named and what the owner wrote down."""
    state, settings = Path(given.state), settings_in(Path(given.state), given.root)
    observer = settings.observer or given.observer
    receiver = ("--server", given.server) if given.server else ("--home", given.home)
    more = ("--ca", given.ca) if given.ca else ()
    observed = ("--observer",) if observer else ()
    return Watching(
        state=state,
        node=given.node,
        settings=replace(
            settings, observer=observer, bmc=tuple(given.bmc) or None, keeps_books=not given.server,
        ),
        root=given.root,
        deliver=deliver_words(state, *receiver, *more),
        # A tree that stands in for / is looked at, and nothing else: no repair may reach this machine through it.
        repair=repair_words(state, given.node, *receiver, *more, *observed) if given.root == "/" else (),
        alert=alert_words(state) if given.alerts else (),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
