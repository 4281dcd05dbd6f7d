"""One small process for each attempt, in a session of its own: it outlives the runner and the server.

Decides the order of an attempt's life: claim it, make what encloses it, start the command under the
meter, end it when its time is over or somebody asked, read what it used, scrub, and only then write
the result, whole. Whoever finds no result and no holder of the lock knows that this process died, and
the command with it: the kernel ends the sandbox with its parent. Nothing here is started twice.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ouvrage.adapters import egress, podman, scratch, scrub
from ouvrage.adapters.bubblewrap import exit_status
from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.adapters.sandbox_cgroup import Reading
from ouvrage.agent.bell import ring
from ouvrage.agent.enclosure import STAGE, Enclosure, Order, container_name
from ouvrage.agent.files import BEGAN, CONTAINER, LOG, ORDER, RESULT, STOP, WAKE, AttemptFiles
from ouvrage.agent.log import Log
from ouvrage.agent.outcome import Seen, outcome_of
from ouvrage.agent.progress import hardware_fault
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.meter.command import stand_beside
from ouvrage.meter.options import Options, read_options
from ouvrage.wire.runner import Start

_TICK_US = 1_000_000
_STATUS_BYTES = 4096
_NEVER = 1 << 62


def supervise(state: Path, attempt: str) -> None:
    """Execute an attempt whose order is on the disk, unless somebody does or did."""
    files = AttemptFiles(state / "attempts", attempt)
    lock = files.lock()
    if lock is None or (files / RESULT).exists() or not files.mark_started():
        return
    try:
        order = Order.of(files.read(ORDER))
        files.write(RESULT, Attempt(state, files, order, lock).execute())
        ring(state)
    except BaseException:
        (files / "supervisor.txt").write_text(traceback.format_exc(), "utf-8")
        raise


class Attempt:
    """One execution, from nothing to its result."""

    def __init__(self, state: Path, files: AttemptFiles, order: Order, lock: int) -> None:
        self._state = state
        self._files = files
        self._order = order
        self._lock = lock
        self._start = order.start
        self._enclosure = Enclosure.of(state, files, order)
        self._before = scrub.memory_in_use() if order.start.devices else {}
        self._status = b""
        self._stop: dict[str, Any] | None = None
        self._kill_at = self._limit_at = _NEVER
        self._began: int | None = None
        self._began_us = 0
        self._disk_bytes = 0
        self._killed = False

    def execute(self) -> dict[str, Any]:
        """The fields of ``wire.Ended`` without its place in the sequence."""
        fault: str | None = None
        self._files.tell_state("starting")
        used = Reading(memory_bytes=None, cpu_us=None, processes=None, oom_kills=None)
        wall_us = 0
        try:
            options_of(self._start)  # what the meter would refuse is refused before anything stands
            self._enclosure.make()
            self._stand_by()
            wall_us = monotonic_us() - self._began_us if self._began is not None else 0
        except OuvrageError as error:
            fault = error.message
        ended = now_us()
        self._files.tell_state("scrubbing")
        clean = self._enclosure.cgroup.kill()
        used = self._enclosure.cgroup.reading()
        self._look_at_disk()
        result = self._judged(fault, used)
        faults = [] if clean else ["processes of the attempt could not be ended"]
        faults += self._scrub()
        return {
            **result,
            "attempt": self._start.attempt,
            "ended": ended,
            "wall_us": wall_us,
            "isolation": self._start.isolation,
            "scrub": "failed" if faults else "clean",
            "scrub_detail": "; ".join(faults),
        }

    def _judged(self, fault: str | None, used: Reading) -> dict[str, Any]:
        began, code, number = exit_status(self._status)
        oom_kills = used.oom_kills
        if self._start.isolation == "podman" and began:
            directory = self._files / CONTAINER
            oom_kills = max(oom_kills or 0, podman.ran_out_of_memory(directory))
            if not podman.began(directory):
                fault = self._words_of_the_log()
                began = podman.NO_COMMAND in (fault or "")
        elif not began and self._began is not None:
            if self._killed or oom_kills:
                began, number = True, int(signal.SIGKILL)
            else:
                fault = fault or self._words_of_the_log()
                began, code = fault is not None and "execvp" in fault, 127
        outcome, cause, reason = outcome_of(
            Seen(
                began=began,
                exit_code=code if began else None,
                signal=number,
                oom_kills=oom_kills,
                memory_mib=self._start.memory_mib,
                stop=self._stop["why"] if self._stop else None,
                stop_reason=self._stop["reason"] if self._stop else "",
                fault=fault,
                hardware=self._hardware(),
            )
        )
        return {
            "began": self._began if began else None,
            "exit_code": code if began else None,
            "signal": number,
            "outcome": outcome,
            "cause": cause,
            "reason": reason,
            "used": self._used(used) | {"oom_kills": oom_kills},
        }

    def _hardware(self) -> str | None:
        if not self._start.devices:
            return None
        return hardware_fault(self._state / "spool" / f"{self._start.attempt}.ndjson")

    def _words_of_the_log(self) -> str | None:
        """Where the command was never started nobody else has written into the log."""
        with open(self._files / LOG, "rb") as file:
            words = file.read(2000).decode("utf-8", "replace").strip()
        return words.splitlines()[-1] if words else None

    def _used(self, used: Reading) -> dict[str, int | None]:
        way = self._enclosure.way
        sent, received = (0, 0) if way is None else egress.counted(way.number)
        return {
            "memory_bytes": used.memory_bytes,
            "cpu_us": used.cpu_us,
            "processes": used.processes,
            "disk_bytes": self._disk_bytes,
            "sent_bytes": sent,
            "received_bytes": received,
        }

    def _scrub(self) -> list[str]:
        """Leave nothing behind; what could not be done, in words."""
        faults: list[str] = []
        if self._start.isolation == "podman":
            name = container_name(self._start.attempt)
            if not podman.Podman(self._state).remove(name):
                faults.append("its container could not be removed")
        if not self._enclosure.cgroup.remove():
            faults.append("its control group could not be removed")
        if self._order.nodes:
            held = scrub.holders(self._order.nodes)
            faults += [f"process {pid} still holds a GPU" for pid in held]
        faults += scrub.above(self._before, self._start.devices)
        if self._enclosure.way and not egress.close_way(self._enclosure.way):
            faults.append("its network could not be removed")
        faults += self._enclosure.let_go()
        space = self._enclosure.space
        if space is not None:
            try:
                scratch.erase(space)
            except OSError as error:
                faults.append(f"its scratch space could not be erased: {error.strerror}")
        return faults

    # While the command runs

    def _stand_by(self) -> None:
        """Start the command and serve until it has ended."""
        log_read, log_write = os.pipe2(os.O_CLOEXEC)
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        secrets = self._files.take_secrets()
        pid = os.fork()
        if not pid:
            os.close(self._lock)  # it says that this process lives, not the meter
            _meter(
                self._start,
                self._state,
                log_write,
                status_write,
                self._starter(secrets, status_write),
            )
        os.close(log_write)
        os.close(status_write)
        log = Log(self._files / LOG, log_read, self._start.log_limit_bytes)
        self._began_us = monotonic_us()
        wake = os.open(self._files / WAKE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        ended = os.pidfd_open(pid)
        try:
            self._serve({ended: None, wake: self._woken, status_read: self._told}, log, ended)
            for words in self._enclosure.take_outputs():
                log.say(words)
        finally:
            for fd in (ended, wake, status_read):
                os.close(fd)
            log.close()
        os.waitpid(pid, 0)

    def _starter(self, secrets: Sequence[dict[str, str]], status: int) -> Callable[..., int]:
        """What the meter calls to start the command: a child that becomes bubblewrap."""

        def start(socket: str, actions: Sequence[Any], mask: Any, _own_session: bool) -> int:
            prepared = self._enclosure.prepared(secrets, socket, status)
            pid = os.fork()
            if pid:
                for fd in prepared.descriptors:
                    os.close(fd)
                if not prepared.tells:
                    os.write(status, b'{"child-pid": %d}\n' % pid)
                return pid
            try:
                _connect(actions)
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                self._enclosure.become(prepared)
            except BaseException:  # noqa: BLE001 -- a forked child must not return
                os.write(2, traceback.format_exc(-1).encode())
            os._exit(126)

        return start

    def _serve(self, served: dict[int, Callable[[int], bool] | None], log: Log, ended: int) -> None:
        poller = select.poll()
        for fd in (*served, log.pipe):
            poller.register(fd, select.POLLIN)
        self._woken(-1)
        while True:
            ready = [fd for fd, _ in poller.poll(self._wait_ms())]
            for fd in ready:
                act = served.get(fd)
                if act and not act(fd):
                    poller.unregister(fd)
            if log.pipe in ready and not log.carry():
                poller.unregister(log.pipe)
            if ended in ready:
                self._end_all(log)
                return
            self._look_at_time(log)

    def _end_all(self, log: Log) -> None:
        """The command has ended: what it left behind ends too, then its last words are taken."""
        self._enclosure.cgroup.kill()
        while log.carry() and select.select([log.pipe], [], [], 0)[0]:
            continue

    def _wait_ms(self) -> int:
        due = min(self._kill_at, self._limit_at, monotonic_us() + _TICK_US)
        return max(0, due - monotonic_us() + 999) // 1000

    def _told(self, fd: int) -> bool:
        """Bubblewrap says that the sandbox stands, or how the command ended; False when it is gone."""
        said = os.read(fd, _STATUS_BYTES)
        self._status += said
        if self._began is None and b"child-pid" in self._status:
            self._began, self._began_us = now_us(), monotonic_us()
            self._files.write(BEGAN, {"at": self._began})
            ring(self._state)
            self._files.tell_state("running")
            if self._start.time_limit_us is not None:
                self._limit_at = self._began_us + self._start.time_limit_us
        return bool(said)

    def _woken(self, fd: int) -> bool:
        """Somebody may have asked for the end."""
        if fd >= 0:
            with contextlib.suppress(BlockingIOError):
                os.read(fd, _STATUS_BYTES)
        if self._stop is None:
            asked = self._files.read(STOP)
            if asked is not None:
                self._ask(asked)
        return True

    def _ask(self, stop: dict[str, Any]) -> None:
        self._stop = stop
        self._limit_at = _NEVER
        self._kill_at = monotonic_us() + stop["grace_us"]
        self._files.tell_state("stopping")
        first = {"sandbox": 2, "podman": 1}.get(self._start.isolation, 0)
        for pid in commands_in(self._enclosure.cgroup.processes(), first):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _look_at_time(self, log: Log) -> None:
        now = monotonic_us()
        if now >= self._limit_at:
            limit = self._start.time_limit_us or 0
            words = f"its time limit of {limit / 1_000_000:g} s was over"
            log.say(f"{words}; asked to end")
            self._ask({"why": "time limit", "reason": words, "grace_us": self._start.grace_us})
        if now >= self._kill_at:
            self._kill_at = _NEVER
            self._killed = True
            log.say("still running at the end of its grace; killed")
            self._enclosure.cgroup.kill()
        self._look_at_disk()

    def _look_at_disk(self) -> None:
        space = self._enclosure.space
        if space is not None:
            self._disk_bytes = max(self._disk_bytes, space.used_bytes())


def _connect(actions: Sequence[Any]) -> None:
    """What ``posix_spawn`` would do with these actions."""
    for kind, *rest in actions:
        if kind == os.POSIX_SPAWN_DUP2:
            os.dup2(rest[0], rest[1])
        elif kind == os.POSIX_SPAWN_CLOSE:
            os.close(rest[0])


def _meter(
    start: Start, state: Path, output: int, status: int, starter: Callable[..., int]
) -> None:
    """The child that stands beside the command; it never returns."""
    try:
        end_with_the_parent()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["OUVRAGE_HOME"] = str(state)
        os.environ["TMPDIR"] = STAGE
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(start.devices)
        ending = stand_beside(options_of(start), start.attempt, starter)
        if start.isolation != "sandbox":  # bubblewrap says itself whether the command was started
            code = 128 + ending.signal if ending.signal else ending.exit_code
            os.write(status, b'{"exit-code": %d}\n' % (code or 0))
    except BaseException:  # noqa: BLE001 -- a forked child must not return
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(0)


def options_of(start: Start) -> Options:
    """The meter's options for an order. Raises ``OuvrageError``."""
    words = ["--quiet", "--label", safe(start.label)[:200] or "job"]
    if start.price is not None:
        words += ["--price", start.price]
    if start.unit is not None:
        words += ["--unit", start.unit]
    if start.unit_regex is not None:
        words += ["--unit-regex", start.unit_regex]
    return read_options([*words, "--", *start.command])


def commands_in(pids: Sequence[int], first: int) -> list[int]:
    """Of an attempt's processes the command itself.

    ``first`` is its number in a process namespace of its own: after bubblewrap's init, or as the
    first there is; 0 where it has none, then it is whoever has no parent among them.
    """
    found: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            text = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
            told = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            numbers = told["NSpid"].split()
            if first:
                found += [pid] if len(numbers) > 1 and numbers[-1] == str(first) else []
            elif int(told["PPid"]) not in pids:
                found.append(pid)
    return found
