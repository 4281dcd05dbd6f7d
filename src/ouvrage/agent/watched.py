"""One attempt as the runner follows it, from its order to the moment it may be forgotten.

Decides what the next step of an attempt is, from its files alone, so that the step after a restart is
the step that would have come without one: fetch what goes in, start its supervisor once, pass on its
log byte by byte and its events, send what comes out, tell its end last. It speaks to the server only
through what it is given.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ouvrage.adapters import egress, scrub
from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.podman import Podman
from ouvrage.adapters.sandbox_cgroup import Reading, group
from ouvrage.agent.enclosure import Order, container_name, group_name, place
from ouvrage.agent.endings import UNREAD, lost, unbegun
from ouvrage.agent.files import (
    BEGAN,
    INPUTS,
    LOG,
    NETWORK,
    ORDER,
    OUTPUTS,
    RESULT,
    STARTED,
    STOP,
    AttemptFiles,
)
from ouvrage.agent.link import Away, Gap, Link, Refused
from ouvrage.agent.nursery import Nursery
from ouvrage.agent.outbox import Outbox
from ouvrage.agent.progress import Follower
from ouvrage.agent.tunnel import Within
from ouvrage.agent.wellness import Wellness
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND
from ouvrage.metering.whole_spool import exported, read_lines

PROGRESS_US = 5 * SECOND
LOOK_US = 2 * SECOND
AGAIN_US = 10 * SECOND
"""A supervisor that has not claimed its attempt by then is asked for again; only one ever gets it."""
_LOG_BLOCK = 1 << 20


class Watched:
    """An attempt on this node. Used by the runner's main thread; ``send`` and ``fetch`` by others."""

    def __init__(
        self, state: Path, files: AttemptFiles, order: Order, changed: Callable[[], None]
    ) -> None:
        self.files = files
        self.order = order
        self.start = order.start
        self._state = state
        self._spool = state / "spool" / f"{files.attempt}.ndjson"
        self._follower = Follower(self._spool)
        self._changed = changed
        self._registries = order.registries
        self._log_at: int | None = None if (files / LOG).exists() else 0
        self._log_full = False
        self._progress_at = self._look_at = 0
        self._launch_at = 0
        self._busy = threading.Lock()
        self._fetched = not order.start.inputs and order.start.image is None
        self._sent = self._run_taken = False
        self._fault: str | None = None
        port, health = self.start.port, self.start.health
        self._well_told: bool | None = None
        self._wellness = None if port is None else Wellness(self.listed, port, health)

    def listed(self) -> list[int]:
        """Its processes now."""
        return group(group_name(self._state, self.files.attempt)).processes()

    def within(self) -> Within:
        """What is needed to reach into it."""
        return Within(
            listed=self.listed,
            group=group_name(self._state, self.files.attempt),
            workdir=place(self.start.workdir, None),
            isolation=self.start.isolation,
        )

    @classmethod
    def found(cls, state: Path, files: AttemptFiles, changed: Callable[[], None]) -> Watched:
        """One whose order is on the disk. ``changed`` is called when a thread of it is done."""
        return cls(state, files, Order.of(files.read(ORDER)), changed)

    # Before it is started

    def launch(self, nursery: Nursery, link: Link) -> None:
        """Start it when everything is there and it is time; once."""
        if self.ended or (self.files / STARTED).exists() or monotonic_us() < self._launch_at:
            return
        stop = self.files.read(STOP)
        if stop is not None:
            self._close(stop["why"], stop["reason"])
        elif self._fault is not None:
            self._close("never started", self._fault)
        elif not self._fetched:
            self._apart(self._fetch, link)
        elif now_us() >= self.start.not_before:
            self._launch_at = monotonic_us() + AGAIN_US
            nursery.start(self.files.attempt)

    def _close(self, outcome: str, reason: str) -> None:
        """End it before it began; a supervisor that is just being made finds it claimed."""
        lock = self.files.lock()
        if lock is not None:
            if self.files.mark_started():
                self.files.take_secrets()
                self.files.write(RESULT, unbegun(self.start, now_us(), outcome, reason))
            os.close(lock)

    def _fetch(self, link: Link) -> None:
        directory = self.files / INPUTS
        directory.mkdir(mode=0o700, exist_ok=True)
        try:
            for each in self.start.inputs:
                if not (directory / each.name).exists():
                    link.fetch(self.files.attempt, each.name, directory / each.name)
            if self.start.image is not None:
                Podman(self._state).pull(self.start.image, self._registries)
            self._fetched = True
        except Refused as refused:
            self._fault = f"an input could not be fetched: {refused.message}"
        except OuvrageError as error:
            self._fault = error.message
        except OSError as error:
            self._fault = f"an input could not be kept: {error.strerror}"

    def _apart(self, step: Any, link: Link) -> None:
        """In a thread of its own, one at a time; a server that is away is asked again later."""
        if not self._busy.acquire(blocking=False):
            return

        def work() -> None:
            try:
                with contextlib.suppress(Away):
                    step(link)
            finally:
                self._busy.release()
                self._changed()

        threading.Thread(target=work, name=f"transfer-{self.files.attempt}", daemon=True).start()

    # While it runs

    @property
    def ended(self) -> bool:
        """Whether its result is there."""
        return (self.files / RESULT).exists()

    def look_after(self) -> None:
        """Where its supervisor is gone without a result, put down that it is lost."""
        if monotonic_us() < self._look_at or self.ended:
            return
        self._look_at = monotonic_us() + LOOK_US
        if not (self.files / STARTED).exists():
            return
        lock = self.files.lock()
        if lock is None:
            return
        try:
            if not self.ended:
                self.files.take_secrets()
                began = self.files.read(BEGAN)
                result = lost(self.start, began and began["at"], self._last_seen(), self._scrub())
                self.files.write(RESULT, result)
        finally:
            os.close(lock)

    def _last_seen(self) -> int:
        """The last sign of life on the disk."""
        latest = 0
        for path in (self.files / LOG, self._spool, self.files / STARTED):
            with contextlib.suppress(OSError):
                latest = max(latest, path.stat().st_mtime_ns // 1000)
        return latest

    def _scrub(self) -> list[str]:
        """In its supervisor's place. Its mounts went with it."""
        faults: list[str] = []
        if self.start.isolation == "podman":
            Podman(self._state).remove(container_name(self.files.attempt))
        inside = group(group_name(self._state, self.files.attempt))
        if not (inside.kill() and inside.remove()):
            faults.append("processes of the attempt could not be ended")
        faults += [f"process {pid} holds a GPU" for pid in scrub.holders(self.order.nodes)]
        if self.start.devices:
            faults.append("what the GPU's memory held before is not known any more")
        (self.files / "scratch.img").unlink(missing_ok=True)
        egress.sweep()
        return faults

    def events(self, outbox: Outbox) -> list[dict[str, Any]]:
        """What is to be told now."""
        attempt = self.files.attempt
        found: list[dict[str, Any]] = []
        began = None if outbox.told(attempt, "began") else self.files.read(BEGAN)
        if began is not None:
            found.append({"event": "began", "attempt": attempt, "at": began["at"]})
        now = monotonic_us()
        running = not self.ended and (self.files / BEGAN).exists()
        if running and (now >= self._progress_at or self._wellness_changed()):
            self._progress_at = now + PROGRESS_US
            found.append(self._progress())
        if self._sent and self.ended and not outbox.told(attempt, "ended"):
            found.append({"event": "ended", **self.files.read(RESULT)})
        return found

    def _wellness_changed(self) -> bool:
        """Have its service asked how it is; whether that is other than was told last."""
        if self._wellness is None:
            return False
        self._wellness.look()
        before, self._well_told = self._well_told, self._wellness.well
        return before != self._well_told

    def _progress(self) -> dict[str, Any]:
        reached = self._follower.look(monotonic_us())
        used = Reading(memory_bytes=None, cpu_us=None, processes=None, oom_kills=None)
        with contextlib.suppress(OuvrageError):
            used = group(group_name(self._state, self.files.attempt)).reading()
        told = {name: getattr(used, name, None) for name in UNREAD}
        network = self.files.read(NETWORK)
        if network is None:
            told["sent_bytes"] = told["received_bytes"] = 0
        else:
            told["sent_bytes"], told["received_bytes"] = egress.counted(network["number"])
        return {
            "event": "progress", "attempt": self.files.attempt, "at": now_us(),
            "unit": reached.unit, "units": reached.units, "unit_us": reached.unit_us,
            "idle_us": reached.idle_us, "used": told,
            "well": self._wellness.well if self._wellness else None,
            "ill_us": self._wellness.ill_us if self._wellness else 0,
        }  # fmt: skip

    def ship_log(self, link: Link) -> None:
        """Pass on what was appended."""
        try:
            size = (self.files / LOG).stat().st_size
        except FileNotFoundError:
            return
        if self._log_at is None:
            self._log_at = self._place(link, size)
        while self._log_at < size and not self._log_full:
            with open(self.files / LOG, "rb") as file:
                file.seek(self._log_at)
                data = file.read(_LOG_BLOCK)
            self._append(link, data)

    def _place(self, link: Link, size: int) -> int:
        """After a restart: ask up to where the server has it, by appending nothing at the end."""
        try:
            place = link.log(self.files.attempt, size, b"")
        except Gap as gap:
            return gap.offset
        self._log_full = place.full
        return size

    def _append(self, link: Link, data: bytes) -> None:
        try:
            place = link.log(self.files.attempt, self._log_at or 0, data)
        except Gap as gap:
            self._log_at = gap.offset
            return
        self._log_at, self._log_full = place.offset, place.full

    # Afterwards

    def send_rest(self, link: Link) -> None:
        """Send what came out and the run's spool, after which its end may be told."""
        if self.ended and not self._sent:
            self._apart(self._send, link)

    def _send(self, link: Link) -> None:
        try:
            self.ship_log(link)
        except Refused as refused:
            self._note(f"the log was not taken: {refused.message}")
        directory = self.files / OUTPUTS
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            self._offer(link, f"outputs/{path.name}", path)
        self._run_taken = self._spool.exists() and self._offer_run(link)
        self._sent = True

    def _offer(self, link: Link, place: str, path: Path) -> bool:
        """Whether the server took it. A refusal stays one, and is noted."""
        try:
            link.send(self.files.attempt, place, path)
        except Refused as refused:
            self._note(f"{place} was not taken: {refused.message}")
            return False
        return True

    def _offer_run(self, link: Link) -> bool:
        """Whether the server took what the meter wrote, as the facts that follow from it."""
        data = self._spool.read_bytes()
        try:
            link.facts(exported(read_lines(data), data))
        except OuvrageError as error:
            self._note(f"the run was not taken: {error.message}")
            return False
        return True

    def _note(self, text: str) -> None:
        with open(self.files / "notes.txt", "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def forget(self) -> None:
        """Remove all of it, as the server has what it wants; a spool that it did not take stays."""
        if self._run_taken:
            self._spool.unlink(missing_ok=True)
        self.files.forget()
