"""The supervisor: one process that touches no driver, asks its probes, and brings what they find to the disk.

Decides the order in which things happen in a round: facts and what must be remembered with them are on the disk before
anybody is shown them; the view comes after. What cannot be written stays and is tried again, while the heartbeat and the
probes go on. Facts are delivered by a process of their own, so that no server and no store is ever waited for here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.adapters.home import make_private
from ouvrage.agent.probing.alarming import Alerts
from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.core import Core
from ouvrage.agent.probing.exposition import exposed
from ouvrage.agent.probing.heart import Heart
from ouvrage.agent.probing.lanes import Lanes
from ouvrage.agent.probing.memory import Memory, memory_from, memory_json
from ouvrage.agent.probing.now import Dropped, write_now
from ouvrage.agent.probing.passing import Passing
from ouvrage.agent.probing.probes import DRIVER_LANES, KEPT_LANES
from ouvrage.agent.probing.readings import Readings
from ouvrage.agent.probing.repairs import Repairs
from ouvrage.agent.probing.settings import NO_METRICS, Settings
from ouvrage.agent.probing.spool import Spool
from ouvrage.agent.probing.verifying import epoch_in, hands_off, taken
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.health.xid import Rules
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import OK, WARN, CheckResult

_LONGEST_WAIT_S = 1.0
_DELIVER_FIRST_US, _DELIVER_LAST_US = 5 * SECOND, 5 * MINUTE
_SHOWN_EACH_US = 2 * SECOND
"""The view is written this often at most; at once where something was stated."""
_REMEMBERS_EACH_US = 30 * SECOND
"""What is only to be remembered is written this often at most: whoever is killed before reads the same lines again."""
_SAYS_US = 10 * MINUTE
"""So long it is said that something was dropped."""
_DELIVERS_WITHIN_US = 10 * MINUTE
"""After so long whoever delivers is ended and goes on anew: a server may answer byte by byte for ever."""
_LAST_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How a watch is started. ``deliver`` are the words of the process that takes facts away, empty: nobody does.

    ``repair`` are those of the process that does what follows from the verdicts, ``alert`` of the one that tells people.
    """

    state: Path
    node: str
    settings: Settings
    root: str = "/"
    deliver: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    alert: tuple[str, ...] = ()
    boot: str | None = None


class Supervisor:
    """One machine's watch. ``run`` returns when it was told to stop."""

    def __init__(self, watching: Watching, lanes: Lanes | None = None) -> None:
        self._state = make_private(watching.state)
        self._lock = _only_one(self._state)
        self._boot = watching.boot or _boot(watching.root)
        self._readings = Readings(self._state)
        self._spool = Spool(self._state, self._readings.give_room)
        memory = _remembered(self._spool, self._boot)
        rules = Rules(xids=xid_table(), bounds=thresholds())
        self.core = Core(
            watching.node, memory, rules, watching.settings, monotonic_us(),
            state=str(self._state),
        )  # fmt: skip
        self._lanes = lanes or Lanes(watching.root)
        self._heart = Heart(self._state, self._boot)
        self._delivery = _Delivery(self._spool, watching.deliver)
        self._repairs = Repairs(watching.repair)
        self._alerts = Alerts(watching.alert)
        self._passing = (self._delivery.process, self._repairs.process, self._alerts.process)
        self._metrics = watching.settings.metrics
        self._unwritten: list[Stated] = []
        self._stopping = False
        self._dropped_before = 0
        self._dropped_us: int | None = None
        self._unshown = False
        self._show_us = 0
        self._remember_us = 0

    def run(self) -> None:
        """Watch until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        self._heart.start()
        if self._metrics != NO_METRICS:
            exposed(self._state, self._metrics)
        self._repairs.resume()
        while not self._stopping:
            self.round()
        self._write()
        self._delivery.close()
        self._repairs.close()
        self._alerts.close()
        self._lanes.close()
        self._heart.stop()
        os.close(self._lock)

    def stop(self) -> None:
        """Leave off soon."""
        self._stopping = True

    def round(self) -> None:
        """Ask who is due, wait a little for answers, and bring what follows from them to the disk."""
        now = monotonic_us()
        self.core.epoch = epoch_in(self._state)
        words = taken(self._state)
        for asked in words:
            self.core.verify(asked.device, now, gone=asked.gone)
            self._remember_us = 0  # whoever is killed now must not forget it
        off = hands_off(self._state, now)
        if off:
            self._lanes.let_go(DRIVER_LANES)
        held = any(each.holds(now) for each in self._passing)
        for probe in self.core.due(now, KEPT_LANES if held else None):
            if off and probe.lane in DRIVER_LANES:
                self.core.later(probe, now + SECOND)
            else:
                self._lanes.ask(probe.name, self.core.question(probe))
        next_s = (self.core.next_us() - monotonic_us()) / SECOND
        wait_s = min(_LONGEST_WAIT_S, max(next_s, 0.2 if held else 0.0))
        answers = self._lanes.wait(wait_s)
        for answer in answers:
            self.core.answered(answer)
        if answers or self._unwritten or words:
            self._write()
        if self._unshown and (now := monotonic_us()) >= self._show_us:
            self._unshown, self._show_us = False, now + _SHOWN_EACH_US
            self._show(now_us(), now)
            self._alerts.shown(self.core.counting)
        now = monotonic_us()
        self._alerts.look(now, free=self._free())
        self._delivery.look(now, free=self._free())
        self._repairs.look(now, self.core.trouble, free=self._free(), counting=self.core.counting)

    def _free(self) -> bool:
        """Whether nothing runs that passes."""
        return self._lanes.resting and not any(each.runs for each in self._passing)

    def _write(self) -> None:
        """Facts with the memory of them, then the readings, then the view."""
        at, now = now_us(), monotonic_us()
        self._readings.take(self.core.understood, at, now)
        self._unwritten += self.core.take_facts()
        due = self.core.news and (now >= self._remember_us or self._stopping)
        if self._unwritten or due:
            try:
                self._spool.add(self._unwritten, memory_json(self.core.memory))
                self._show_us = now if self._unwritten else self._show_us
                self._unwritten, self.core.news = [], False
                self._remember_us = now + _REMEMBERS_EACH_US
            except OSError as error:
                self._tell(WARN, f"facts wait for room: {error.strerror}", at, now)
        self.core.dropped = Dropped(telemetry=self._readings.dropped, facts=0)
        if self._readings.dropped != self._dropped_before:
            self._dropped_before, self._dropped_us = self._readings.dropped, now
        if self._dropped_us is not None and now - self._dropped_us < _SAYS_US:
            self._tell(WARN, "the disk is full: readings are dropped, facts are kept", at, now)
        elif not self._unwritten:
            self._tell(OK, "every fact is on the disk", at, now)
        self._unshown = True

    def _show(self, at: int, now: int) -> None:
        """Replace the view; on a full disk readings make room for it."""
        for _ in range(2):
            try:
                write_now(self._state, self.core.view(at, now))
            except OSError:
                if not self._readings.give_room():
                    return
            else:
                return

    def _tell(self, verdict: str, words: str, at: int, now: int) -> None:
        rule = "" if verdict == OK else "agent-disk-full"
        result = CheckResult(check="agent", verdict=verdict, rule=rule, reasons=(words,))
        self.core.tell_of_itself(
            result, Answer(probe="agent", at_us=at, monotonic_us=now, took_us=0)
        )


class _Delivery:
    """Starts the process that takes facts away, where there are some, and leaves a longer pause after each failure."""

    def __init__(self, spool: Spool, words: Sequence[str]) -> None:
        self._spool = spool
        self._never = not words
        self.process = Passing(words)
        self._pause_us = _DELIVER_FIRST_US
        self._next_us = 0

    def look(self, now: int, *, free: bool) -> None:
        """Start it or see how it ended, where it is time; ``free``: nothing else that is passing runs."""
        self.process.end_after(
            now, _DELIVERS_WITHIN_US
        )  # it loses nothing: what was had stands on the disk
        code = self.process.ended()
        if code is not None:
            longer = min(2 * self._pause_us, _DELIVER_LAST_US)
            self._pause_us = _DELIVER_FIRST_US if code == 0 else longer
            self._next_us = now + self._pause_us
        waits = self._never or self.process.runs or now < self._next_us or self._spool.empty
        if not waits and self.process.start(now, free=free):
            self._next_us = now + _DELIVER_FIRST_US

    def close(self) -> None:
        """Let it finish what it began, and take away what came since, each for a while."""
        self.process.wait(_LAST_S)
        if not self._never and not self._spool.empty:
            self.process.start_now()
            self.process.wait(_LAST_S)


def deliver_words(state: Path, *words: str) -> tuple[str, ...]:
    """The process that takes the facts of a state directory away."""
    return (sys.executable, "-m", "ouvrage.agent.probing.deliver", "--state", str(state), *words)


def repair_words(state: Path, node: str, *words: str) -> tuple[str, ...]:
    """The process that does what follows from the verdicts of a state directory."""
    return (
        sys.executable, "-m", "ouvrage.agent.probing.repair", "--state", str(state), "--node", node, *words,
    )  # fmt: skip


def alert_words(state: Path) -> tuple[str, ...]:
    """The process that tells people what became of the machine of a state directory."""
    return (sys.executable, "-m", "ouvrage.agent.probing.alerting", "--state", str(state))


def _remembered(spool: Spool, boot: str) -> Memory:
    """What was remembered, in this boot; what cannot be understood any more is begun anew."""
    told: Any = spool.memory()
    if told is None:
        return Memory(boot=boot)
    try:
        return memory_from(told).of_boot(boot)
    except (KeyError, TypeError, ValueError, StopIteration):
        return Memory(boot=boot, number=int(told.get("number", 0)))


def _boot(root: str) -> str:
    path = Path(f"{root.rstrip('/')}/proc/sys/kernel/random/boot_id")
    try:
        return path.read_text("ascii").strip()
    except OSError as error:
        raise OuvrageError("agent/boot", f"{path} cannot be read: {error.strerror}") from error


def _only_one(state: Path) -> int:
    """The lock of this directory's watch. Raises ``OuvrageError`` where another holds it."""
    fd = os.open(state / "watch.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise OuvrageError(
            "agent/watching", f"a watch already works with {state}", hint="stop it first"
        ) from error
    return fd
