"""Takes the facts of a spool away: into this machine's own store, or to the server, until none waits.

Decides that a fact leaves the spool only when the receiver says that it has it, and that one whose like stands there with
another content is told of and never sent again; one that a server cannot take is put aside, so that the others go on. It is a process of its own, so that the watch never waits for a
store or a server and never carries their weight. Exit code 0: nothing waits any more; 1: later.

    python -m ouvrage.agent.probing.deliver --state DIR (--home DIR | --server URL [--ca FILE])
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.agent.probing.spool import Spool
from ouvrage.agent.probing.verifying import keep_epoch
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.lines import fact_line

Send = Callable[[Sequence[Fact]], None]
STORE, REFUSED = "ouvrage.db", "refused.ndjson"
_TOO_LARGE, _UNREADABLE = 413, 422


def deliver(spool: Spool, send: Send) -> int:
    """Send everything that waits; how many facts that were. What ``send`` raises ends it, and those facts wait on."""
    count = 0
    while (waiting := spool.waiting()) is not None:
        send(waiting.facts)
        spool.had(waiting.place)
        count += len(waiting.facts)
    return count


def into_store(home: Path) -> Send:
    """Records facts in a home's store."""
    from ouvrage.store.store import open_store

    store, own = open_store(home / STORE), source_id(home)

    def send(facts: Sequence[Fact]) -> None:
        for told in store.append(facts, now_us=now_us(), own_source=own):
            if told.result == "conflict":
                _say(f"{told.key} stands there already, with another {told.field}")

    return send


def to_server(state: Path, url: str, ca: str | None) -> Send:
    """Sends facts to the server as the node that enrolled from this directory. Raises ``OuvrageError`` before that."""
    from ouvrage.agent.link import Away, Link, Refused
    from ouvrage.metering.exchange import export_run

    try:
        key = json.loads((state / "node.json").read_bytes())["key"]
    except FileNotFoundError as error:
        raise OuvrageError("agent/not-enrolled", "this node is not enrolled yet") from error
    link = Link(url, ca)
    link.use(key)

    def send(facts: Sequence[Fact]) -> None:
        try:
            answer = link.facts(export_run(facts[0].subject, facts, None))
        except Away as away:
            raise ConnectionError(str(away)) from away
        except Refused as refused:
            if refused.status not in (_TOO_LARGE, _UNREADABLE):
                raise
            _in_halves(state, facts, refused, send)
            return
        except ValueError as error:
            raise ConnectionError("what answers there is no server of ours") from error
        _acknowledged(answer, len(facts))
        for told in answer.get("conflicts", ()):
            _say(f"{told['fact']} stands there already, with another {told['field']}")
        if isinstance(epoch := answer.get("epoch"), int):
            keep_epoch(state, epoch)

    return send


def _acknowledged(answer: object, count: int) -> None:
    """Raise ``ConnectionError`` where an answer does not say what became of each fact: a proxy's 200 has taken nothing."""
    told = cast("Mapping[str, object]", answer) if isinstance(answer, dict) else {}
    results, conflicts = told.get("results"), told.get("conflicts")
    if not isinstance(results, list) or not isinstance(conflicts, list) or len(results) != count:
        raise ConnectionError("the answer does not say what became of each fact")


def _in_halves(state: Path, facts: Sequence[Fact], refused: OuvrageError, send: Send) -> None:
    """Find the facts that a server cannot take, and put them aside: they must not hold up those after them."""
    if len(facts) > 1:
        half = len(facts) // 2
        send(facts[:half])
        send(facts[half:])
        return
    _say(f"the server does not take {facts[0].key}: {refused.message}; it is in {REFUSED}")
    with (state / REFUSED).open("a", encoding="utf-8") as file:
        file.write(fact_line(facts[0]) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _say(words: str) -> None:
    sys.stderr.write(f"ouvrage agent: {words}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Deliver once. Another one that delivers from the same spool goes first."""
    parser = argparse.ArgumentParser()
    for name in ("--state", "--home", "--server", "--ca"):
        parser.add_argument(name)
    given = parser.parse_args(words)
    end_with_the_parent()
    state = Path(given.state)
    held = os.open(state / "deliver.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        send = (
            to_server(state, given.server, given.ca)
            if given.server
            else into_store(Path(given.home))
        )
        deliver(Spool(state), send)
    except (OuvrageError, OSError) as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
