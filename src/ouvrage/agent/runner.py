"""The node's runner: asks the server what to do, has it done, and reports what it saw.

Decides that an order is on the disk before anything follows from it, and that everything it knows can
be found again on the disk: killed at any moment and started again, it goes on where it was. While the
server is away attempts run on, and what there is to tell waits. It executes nothing itself; a
supervisor for each attempt does, and outlives it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from ouvrage.adapters import egress
from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.home import make_private
from ouvrage.adapters.podman import Podman
from ouvrage.adapters.sandbox_cgroup import group, standing
from ouvrage.agent.bell import Bell
from ouvrage.agent.enclosure import MOST_UIDS, STAGE, UIDS, Order, group_prefix, named
from ouvrage.agent.endings import unbegun
from ouvrage.agent.files import RESULT, AttemptFiles, attempts_in
from ouvrage.agent.inventory import inventory, nodes_of
from ouvrage.agent.link import Away, Link, Refused
from ouvrage.agent.nursery import Nursery
from ouvrage.agent.outbox import Outbox
from ouvrage.agent.placed import Placed
from ouvrage.agent.places import Places
from ouvrage.agent.probing.kept import KeptWatch
from ouvrage.agent.telemetry import Telemetry
from ouvrage.agent.tunnel import Tunnel, Within
from ouvrage.agent.watched import Watched
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND
from ouvrage.store.samples import write_whole
from ouvrage.wire.runner import (
    Ask,
    Enrol,
    Forget,
    Inventory,
    Report,
    Standing,
    Start,
    Stop,
)

_WAIT_S = 20.0
_LOOK_S = 1.0
_LOG_EVERY_US = SECOND // 4
_BACK_OFF_S = (0.2, 15.0)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this runner is set up. ``see`` are directories of the host that every sandbox sees.

    ``deny`` are networks of the owner's that no job may reach; ``watch``: the machine is watched over beside it. ``places``: Slurm
    gives out the places here, and its batch jobs meet the runner below this directory.
    """

    state: Path
    server: str
    name: str
    see: tuple[str, ...]
    deny: tuple[str, ...]
    registries: tuple[str, ...]
    ca: str | None
    watch: bool = False
    places: Path | None = None


class Runner:
    """One node. ``run`` returns when it was told to stop; attempts go on."""

    def __init__(self, settings: Settings, isolations: list[str]) -> None:
        self._settings = settings
        self._state = make_private(settings.state)
        self._isolations = isolations
        self._lock = _only_one(self._state)
        self._link = Link(settings.server, settings.ca)
        self._bell = Bell(self._state)
        self._placed: Placed | None = None
        if settings.places is not None:
            self._placed = Placed(Places(settings.places, settings.name))
            self._bell.hear(self._placed.places.bell)
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._watched: dict[str, Watched] = {}
        self._forgotten: list[str] = []
        self._outbox = Outbox(self._state / "outbox.ndjson")
        self._uids = _Uids(self._state / "uids.json")
        if "podman" in isolations:
            Podman(self._state).set_up()
        self._nursery = Nursery(self._state)
        self._shipped_us = 0
        self._away = _BackOff()

    def run(self, token: Callable[[], str]) -> None:
        """Enrol if that was not done, then serve. ``token`` gives the one-time token when asked."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        os.makedirs(STAGE, mode=0o755, exist_ok=True)
        self._recover()
        self._be_somebody(token)
        asking = threading.Thread(target=self._ask_again_and_again, name="orders", daemon=True)
        asking.start()
        self._serve_streams()
        telemetry = Telemetry(self._state, self._link)
        telemetry.start()
        given = self._settings
        watch = KeptWatch(self._state, given.name, given.server, given.ca)
        if given.watch:
            watch.start()
        while not self._stop.is_set():
            self._look()
            self._bell.wait(_LOOK_S)
        watch.stop()
        telemetry.stop()
        self._nursery.close()
        self._outbox.close()
        os.close(self._lock)
        _log.info("runner.stopped", attempts=len(self._watched))

    def stop(self) -> None:
        """Leave off soon; what runs goes on."""
        self._stop.set()
        self._bell.ring()

    # Who it is

    def _be_somebody(self, token: Callable[[], str]) -> None:
        path = self._state / "node.json"
        if not path.exists():
            told = None
            while told is None and not self._stop.is_set():
                message = Enrol(token=token(), inventory=self._inventory())
                try:
                    told = self._link.enrol(message)
                except Away as away:
                    self._pause("enrol", away)
            if told is None:
                return
            text = json.dumps({"node": told.node, "key": told.key}) + "\n"
            write_whole(path, text.encode())
            _log.info("runner.enrolled", node=told.node)
        self._link.use(json.loads(path.read_bytes())["key"])

    def _serve_streams(self) -> None:
        path = self._state / "node.json"
        if path.exists():
            key = json.loads(path.read_bytes())["key"]
            Tunnel(self._settings.server, self._settings.ca, key, self._running).start()

    def _running(self, attempt: str) -> Within | None:
        """An attempt while its command runs."""
        with self._guard:
            held = self._watched.get(attempt)
        return held.within() if held is not None and held.files.state() == "running" else None

    def _inventory(self) -> Inventory:
        return inventory(self._state, self._settings.name, self._isolations)

    def _recover(self) -> None:
        """Find what a runner before this one left: its attempts, and groups that belong to none."""
        for files in attempts_in(self._state / "attempts"):
            self._watched[files.attempt] = Watched.found(self._state, files, self._bell.ring)
        for number in egress.sweep():
            _log.warning("runner.orphan_network", number=number)
        prefix = group_prefix(self._state)
        for name in standing(prefix):
            if name.removeprefix(prefix) not in self._watched:
                orphan = group(name)
                _log.warning("runner.orphan", group=name, ended=orphan.kill() and orphan.remove())

    # Orders

    def _ask_again_and_again(self) -> None:
        told: Inventory | None = None
        while not self._stop.is_set():
            try:
                told = self._ask(told)
            except (Away, Refused) as trouble:
                told = None
                self._pause("orders", trouble)
            except Exception as error:  # noqa: BLE001 -- a full disk, say: deaf is worse than late
                _log.error("runner.orders_failed", exc_info=error)
                self._pause("orders", error)

    def _ask(self, told: Inventory | None) -> Inventory | None:
        """Ask once and do what is answered; the inventory that the server has then."""
        now = self._inventory()
        changed = told is None or now.model_dump(exclude={"disk_mib"}) != told.model_dump(
            exclude={"disk_mib"}
        )
        ask = Ask(inventory=now if changed else None, known=self._known(), wait_s=_WAIT_S)
        orders = self._link.orders(ask).orders
        self._away.over()
        failed: list[Exception] = []
        for order in orders:
            try:
                self._take(order)
            except Exception as error:  # noqa: BLE001 -- the others are not to suffer; it is repeated
                _log.error("runner.order_failed", attempt=order.attempt, exc_info=error)
                failed.append(error)
        self._bell.ring()
        if failed:
            self._pause("orders", failed[0])
        return now if changed else told

    def _known(self) -> list[Standing]:
        with self._guard:
            held = list(self._watched.values())
        return [
            Standing.model_validate({"attempt": each.files.attempt, "state": each.files.state()})
            for each in held
        ]

    def _take(self, order: Start | Stop | Forget) -> None:
        with self._guard:
            held = self._watched.get(order.attempt)
        if isinstance(order, Start):
            if held is None:
                self._keep(order)
        elif held is None:
            return
        elif isinstance(order, Stop):
            stop = {"why": order.why, "reason": order.reason, "grace_us": order.grace_us}
            held.files.ask_to_stop(stop)
        elif held.ended:
            with self._guard:
                self._forgotten.append(order.attempt)

    def _keep(self, start: Start) -> None:
        """Put it on the disk. What this node cannot do is an end of its own, told like any other."""
        files = AttemptFiles(self._state / "attempts", start.attempt)
        fault: str | None = None
        nodes: tuple[str, ...] = ()
        try:
            named([*start.inputs, *start.outputs, *start.volumes])
            nodes = nodes_of(start.devices)
            if (start.image is None) == (start.isolation == "podman"):
                fault = f"isolation {start.isolation} and image {start.image} do not go together"
            elif start.isolation not in self._isolations:
                fault = f"isolation {start.isolation} does not work on this node"
        except OuvrageError as error:
            fault = error.message
        except KeyError as error:
            fault = f"there is no GPU {error} on this node"
        order = Order(
            start=start,
            uid=self._uids.of(start.project),
            see=self._settings.see,
            nodes=nodes,
            deny=self._settings.deny,
            registries=self._settings.registries,
        )
        files.keep(order.as_json(), [pair.model_dump() for pair in start.secrets])
        if fault is not None and files.mark_started():
            files.take_secrets()
            files.write(RESULT, unbegun(start, now_us(), "never started", fault))
        with self._guard:
            self._watched[start.attempt] = Watched.found(self._state, files, self._bell.ring)
        _log.info("attempt.ordered", attempt=start.attempt, job=start.job, fault=fault)

    # Reports

    def _look(self) -> None:
        """One look at every attempt: its next step, then everything there is to tell."""
        self._forget()
        with self._guard:
            held = list(self._watched.values())
        now = monotonic_us()
        logs_due = now >= self._shipped_us + _LOG_EVERY_US
        if logs_due:
            self._shipped_us = now
        events: list[dict[str, Any]] = []
        if self._placed is not None:
            events += self._placed.look({each.files.attempt: each for each in held})
        for each in held:
            try:
                if self._placed is None or self._placed.may_start(each):
                    each.launch(self._nursery, self._link)
                each.look_after()
                events += each.events(self._outbox)
            except Exception as error:  # noqa: BLE001 -- one that cannot go on must not stop the others
                _log.error("attempt.failed", attempt=each.files.attempt, exc_info=error)
        try:
            self._outbox.add(events)
        except OSError as error:  # the disk is full: what is not on it is told to nobody yet
            _log.error("runner.not_noted", why=str(error))
            return
        if self._away.holds():
            return
        try:
            for each in held:
                self._pass_on(each, logs_due)
            self._send_events()
        except (Away, Refused) as trouble:
            self._away.longer()
            _log.warning("runner.not_told", why=str(trouble))

    def _pass_on(self, each: Watched, logs_due: bool) -> None:
        """What one attempt says and leaves. That the server refuses it holds up no other."""
        try:
            if each.ended:
                each.send_rest(self._link)
            elif logs_due:
                each.ship_log(self._link)
        except Refused as refused:
            _log.warning("attempt.not_told", attempt=each.files.attempt, why=refused.message)

    def _send_events(self) -> None:
        while waiting := self._outbox.waiting():
            had = self._link.events(Report.model_validate({"events": waiting}))
            self._outbox.had(had.sequence)
            if had.sequence < waiting[0]["sequence"]:
                return

    def _forget(self) -> None:
        with self._guard:
            names, self._forgotten = self._forgotten, []
            going = [self._watched.pop(name) for name in names if name in self._watched]
        for each in going:
            each.forget()
            self._outbox.forget(each.files.attempt)
            if self._placed is not None:
                self._placed.forget(each.files.attempt)

    def _pause(self, what: str, trouble: Exception) -> None:
        seconds = self._away.longer()
        _log.warning("runner.server_away", call=what, why=str(trouble), again_in_s=seconds)
        self._stop.wait(seconds)


class _BackOff:
    """How long a server that does not answer is left alone: longer each time, up to a limit."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._until_us = 0

    def longer(self) -> float:
        """Wait from now on; the time in seconds."""
        first, most = _BACK_OFF_S
        self._seconds = min(max(first, self._seconds * 2), most)
        self._until_us = monotonic_us() + round(self._seconds * SECOND)
        return self._seconds

    def holds(self) -> bool:
        """Whether it is still to be left alone."""
        return monotonic_us() < self._until_us

    def over(self) -> None:
        """It answered."""
        self._seconds, self._until_us = 0.0, 0


class _Uids:
    """As which user of this machine each project's commands run: no two projects share one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError):
            self._given = json.loads(path.read_bytes())

    def of(self, project: str) -> int:
        """The project's, given out now if it has none."""
        if project not in self._given:
            number = UIDS + len(self._given)
            if len(self._given) >= MOST_UIDS:
                raise RuntimeError("more projects than user ids")
            self._given[project] = number
            write_whole(self._path, (json.dumps(self._given) + "\n").encode())
        return self._given[project]


def _only_one(state: Path) -> int:
    """The lock of this state directory. Raises ``OuvrageError`` where a runner holds it."""
    fd = os.open(state / "runner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise OuvrageError(
            "agent/running", f"a runner already works with {state}", hint="stop it first"
        ) from error
    return fd
