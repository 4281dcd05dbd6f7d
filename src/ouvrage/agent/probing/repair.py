"""Does what follows from a machine's verdicts, once: asks the server or decides alone, verifies, climbs one rung.

Decides the order in which an intent, its deed and its outcome come to the disk, so that one that was cut short is known afterwards. Only one
runs at a time. It touches nothing that its owner did not turn on; on a machine that others run it touches nothing at all.

    python -m ouvrage.agent.probing.repair --state DIR --node NAME (--home DIR | --server URL [--ca FILE]) [--observer] [--resume]
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.health_owner import owner_in
from ouvrage.adapters.home import source_id
from ouvrage.adapters.machine_commands import MachineCommands
from ouvrage.adapters.machine_port import MachinePort, NotDone
from ouvrage.agent.probing.climbing import (
    INTENT,
    STOPPED,
    Climbed,
    Rung,
    climb,
    resumed,
    start_what_was_stopped,
)
from ouvrage.agent.probing.deliver import STORE
from ouvrage.agent.probing.spool import Spool
from ouvrage.agent.probing.verifying import ask_to_verify, keep_epoch, keep_hands_off
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.health.states import AUTOMATION
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import Remedy
from ouvrage.store.samples import write_whole

BY_ITSELF = ("gpu_reset", "reboot", "diagnostic")
BEGUN = "rungs.begun"
_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """What is to be done now: rungs to climb, and parts that wait to be looked at anew."""

    epoch: int
    rungs: tuple[Rung, ...]
    verify: tuple[str | None, ...]


@dataclass(slots=True, kw_only=True)
class Repair:
    """One machine's repairs. ``duties`` tells what is to be done, ``pause`` waits."""

    state: Path
    node: str
    machine: MachinePort
    duties: Callable[[], Duties]
    pause: Callable[[float], None] = time.sleep

    def resume(self) -> bool:
        """Tell how a rung ended that was under way when the machine went down; whether there was one."""
        if (
            self.state / STOPPED
        ).exists():  # nobody else repairs now: whoever stopped them was cut short
            keep_hands_off(self.state, False)
            try:
                start_what_was_stopped(self.state, self.machine)
            except NotDone as error:
                sys.stderr.write(f"ouvrage agent: {error}\n")
        found = resumed(self.state, self.machine)
        if found is None:
            return False
        rung, climbed = found
        self._say(rung, climbed)
        ask_to_verify(self.state, None)
        (self.state / INTENT).unlink(missing_ok=True)
        return True

    def once(self) -> None:
        """Do what is to be done now."""
        self.resume()
        if (self.state / INTENT).exists():
            return  # the machine is on its way down
        found = self.duties()
        keep_epoch(self.state, found.epoch)
        for device in found.verify:
            ask_to_verify(self.state, device)
        rung = next((each for each in found.rungs if self._begun(each)), None)
        if rung is None:
            return
        self._say(rung, Climbed(outcome="waiting", why="begun"))
        climbed = climb(rung, self.machine, self.state, self._quiet, self.pause)
        self._say(rung, climbed)
        if climbed.outcome == "done":
            ask_to_verify(self.state, rung.device)

    def _begun(self, rung: Rung) -> bool:
        """Note on the disk that a rung is begun; False where it was before, whether or not that has been heard of yet."""
        path = self.state / BEGUN
        name = f"{rung.device or ''} {rung.rung} {rung.epoch}"
        try:
            before = path.read_text("utf-8").splitlines()[-_KEPT:]
        except FileNotFoundError:
            before = []
        if name in before:
            return False
        write_whole(path, "".join(f"{line}\n" for line in (*before, name)).encode())
        return True

    def _quiet(self, on: bool) -> None:
        keep_hands_off(self.state, on)
        if on:
            self.pause(2.0)

    def _say(self, rung: Rung, climbed: Climbed) -> None:
        remedy = Remedy(
            node=self.node, device=rung.device, rung=rung.rung, outcome=climbed.outcome,
            verified=None, dry_run=False, by=AUTOMATION, why=climbed.why, epoch=rung.epoch,
        )  # fmt: skip
        natural = f"remedy/{rung.device or ''}/{rung.epoch}/{rung.rung}/{climbed.outcome}"
        at = now_us()
        Spool(self.state).add(
            [
                Stated(
                    natural=natural, value=remedy, subject=f"node:{self.node}", valid_from=at,
                    valid_to=at, grade=Grade.MEASURED,
                )
            ]
        )  # fmt: skip


def from_server(state: Path, url: str, ca: str | None) -> Callable[[], Duties]:
    """Asks the server as the node that enrolled from this directory. Raises ``OuvrageError`` before that."""
    from ouvrage.agent.link import Away, Link

    try:
        key = json.loads((state / "node.json").read_bytes())["key"]
    except FileNotFoundError as error:
        raise OuvrageError("agent/not-enrolled", "this node is not enrolled yet") from error
    link = Link(url, ca)
    link.use(key)

    def ask() -> Duties:
        try:
            told = link.duties()
        except Away as away:
            raise ConnectionError(str(away)) from away
        return Duties(
            epoch=told.epoch,
            rungs=tuple(
                Rung(
                    device=each.device, rung=each.rung, epoch=each.epoch, beside=tuple(each.beside)
                )
                for each in told.ordered
                if each.rung in BY_ITSELF
            ),
            verify=tuple(told.verify),
        )

    return ask


def by_itself(
    home: Path, node: str, machine: MachinePort, *, observer: bool
) -> Callable[[], Duties]:
    """Decides alone, from the facts in a home's store."""
    from ouvrage.agent.probing.alone import look  # with the store it weighs as much as all else
    from ouvrage.store.store import open_store

    def ask() -> Duties:
        with open_store(home / STORE) as store:
            found, record = look(
                store, source_id(home), node, owner_in(home), machine, now_us(), new_id,
                observer=observer,
            )  # fmt: skip
        return Duties(
            epoch=record.machine(node).moves,
            rungs=tuple(
                Rung(device=each.place[1], rung=each.rung, epoch=each.epoch, beside=each.beside)
                for each in found.ordered
                if each.rung in BY_ITSELF
            ),
            verify=tuple(
                device
                for (_, device), standing in record.standings.items()
                if standing.state == "verifying"
            ),
        )

    return ask


def main(words: Sequence[str] | None = None) -> int:
    """Look once. While another one is at it, there is nothing to do. 0: done; 1: the server or the store could not be asked."""
    parser = argparse.ArgumentParser()
    for name in ("--state", "--node", "--home", "--server", "--ca"):
        parser.add_argument(name)
    for name in ("--observer", "--resume"):
        parser.add_argument(name, action="store_true")
    given = parser.parse_args(words)
    state = Path(given.state)
    held = os.open(state / "repair.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    machine = MachineCommands()
    try:
        duties = (
            from_server(state, given.server, given.ca)
            if given.server
            else by_itself(Path(given.home), given.node, machine, observer=given.observer)
        )
        repair = Repair(state=state, node=given.node, machine=machine, duties=duties)
        if given.resume:
            repair.resume()
        else:
            repair.once()
    except (OuvrageError, OSError) as error:
        sys.stderr.write(f"ouvrage agent: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
