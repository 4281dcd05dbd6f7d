"""A process, all that descends from it, and what they used.

The caller is a child subreaper, so whatever loses its parent becomes the caller's own child and
stays in the tree. Descendants are found by listing ``/proc``: only numbers not seen before are
read. Nothing is listed while no process or thread was born, which the kernel tells in one small
file, or while no thread of the tree ran. Because a number may be given again between two listings,
everything is looked at anew every 30 seconds; because listing costs with the size of the host, the
others take at most a thousandth of a core. The first does not put off the second: what a command
starts in its first second is part of it from then on.

Each thread's time on a core is read first, to the nanosecond. A thread that did not run since it was
last read used nothing, wrote nothing, started nobody and sleeps where it slept: of a process none of
whose threads ran nothing else is read. Its memory alone can shrink meanwhile (the kernel takes pages
away), so it is looked at every ``AFRESH`` samples all the same.

At most ``PROCESSES`` processes are read a sample and at most ``DETAIL`` threads (delay, switches,
state), in turn; what is not read keeps its last value, so a sum over a very large tree lags and
never invents. Whatever is gone is noticed at the next listing.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from ouvrage.adapters.clock import monotonic_us, own_cpu_us
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.socket_waits import SocketWaits

TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PROCESSES = 48
DETAIL = 64
STATUS = 8
AFRESH = 10
_RESCAN_US = 30_000_000
_SCAN_LATEST_US = 10_000_000
_SCAN_SHARE = 1000

Values = dict[str, "int | None"]


class Rising:
    """A sum over processes that must never fall.

    A parent read before, and its child after, the child was reaped make the sum too small for one
    reading: it is held once. Where it stays smaller (a child nobody waits for takes its figures
    along) the loss is added from then on.
    """

    __slots__ = ("_last", "_lost", "held")

    def __init__(self) -> None:
        self._last = self._lost = 0
        self.held = False

    def take(self, raw: int) -> int:
        """The value to report when the processes say ``raw``."""
        value = raw + self._lost
        if value < self._last:
            if self.held:
                self._lost += self._last - value
            self.held = not self.held
        else:
            self.held = False
            self._last = value
        return self._last


class Task:
    """A thread: its processor time and delay, switches and state as last read."""

    __slots__ = (
        "asleep",
        "at_network",
        "blocked",
        "cpu_us",
        "delay_us",
        "involuntary",
        "ran",
        "running",
        "said",
        "schedstat",
        "status",
        "tid",
        "voluntary",
    )

    def __init__(self, directory: str, tid: int, room: Room) -> None:
        self.tid = tid
        self.schedstat = KeptFile(f"{directory}/schedstat", room, 128)
        self.status = KeptFile(f"{directory}/status", room, 4096)
        self.cpu_us = self.delay_us = self.voluntary = self.involuntary = 0
        self.asleep = self.at_network = self.blocked = self.running = False
        self.ran = True
        self.said = b""

    def read_delay(self) -> bool:
        """Read the time on a core and waiting for one; False when the thread is gone.

        ``said`` is another object than before where the thread ran, or where the kernel does not
        tell; ``ran`` stays until its state is read.
        """
        data = self.schedstat.read()
        if data is None:
            return False
        if data != self.said or self.untold:
            self.said = data
            self.ran = True
            words = data.split(None, 2)
            self.cpu_us, self.delay_us = int(words[0]) // 1000, int(words[1]) // 1000
        return True

    @property
    def untold(self) -> bool:
        """Whether the kernel keeps no account of its time on a core."""
        return self.said.startswith(b"0 ")

    @property
    def restless(self) -> bool:
        """Whether its state may be another than the one that was read."""
        return self.ran or not self.asleep or self.untold

    def read_status(self) -> None:
        """Read state and context switches, where they can be read."""
        self.ran = False
        data = self.status.read()
        if data is None:
            return
        at = data.find(b"\nState:\t")
        state = data[at + 8 : at + 9]
        self.blocked, self.asleep, self.running = state == b"D", state == b"S", state == b"R"
        at = data.rfind(b"\nvoluntary_ctxt_switches:")
        if at >= 0:
            words = data[at:].split()
            self.voluntary, self.involuntary = int(words[1]), int(words[3])

    def close(self) -> None:
        """Give back both descriptors."""
        self.schedstat.close()
        self.status.close()


class Process:
    """One process of the tree and what it said last."""

    __slots__ = (
        "blkio",
        "blocked",
        "directory",
        "faults",
        "io",
        "pid",
        "read_bytes",
        "rss",
        "stat",
        "stirred",
        "system",
        "tasks",
        "threads",
        "user",
        "written",
        "zombie",
    )

    def __init__(self, pid: int, root: str, room: Room) -> None:
        self.pid = pid
        self.directory = f"{root}/{pid}"
        self.stat = KeptFile(f"{self.directory}/stat", room, 1024)
        self.io = KeptFile(f"{self.directory}/io", room, 512)
        self.tasks: dict[int, Task] = {}
        self.user = self.system = self.faults = self.rss = self.threads = self.blkio = 0
        self.read_bytes: int | None = None
        self.written: int | None = None
        self.blocked = self.zombie = False
        self.stirred = True

    @property
    def restless(self) -> bool:
        """Whether it must be read though none of its threads that are known ran."""
        return self.stirred or len(self.tasks) != self.threads

    def read(self) -> bool:
        """Read what the process used, reaped children included; False when it is gone."""
        self.stirred = False
        data = self.stat.read()
        if data is None:
            return False
        words = data[data.rfind(b")") + 2 :].split()
        self.zombie = words[0] in (b"Z", b"X")
        self.blocked = words[0] == b"D"
        self.faults = int(words[9]) + int(words[10])
        self.user = int(words[11]) + int(words[13])
        self.system = int(words[12]) + int(words[14])
        self.threads = int(words[17])
        self.rss = int(words[21])
        self.blkio = int(words[39])
        self._read_io()
        return True

    def _read_io(self) -> None:
        data = self.io.read()
        at = data.find(b"\nread_bytes: ") if data else -1
        if data is not None and at >= 0:
            words = data[at:].split(None, 4)
            self.read_bytes, self.written = int(words[1]), int(words[3])

    def close(self) -> None:
        """Give back every descriptor."""
        self.stat.close()
        self.io.close()
        for task in self.tasks.values():
            task.close()


class ProcessTree:
    """The tree under ``me``, without ``me`` itself."""

    def __init__(self, me: int, room: Room, root: str = "/proc") -> None:
        self._me = me
        self._root = root
        self._room = room
        self._lock = threading.Lock()
        self._members: dict[int, Process] = {}
        self._seen: set[int] = set()
        self._apart: set[int] = set()
        self._scan_due = self._rescan_due = 0
        self._turn = 0
        self._gone_cpu = self._gone_delay = self._gone_voluntary = self._gone_involuntary = 0
        self._reaped_user_us = self._reaped_system_us = self._reaped_faults = 0
        self._reaped_read = self._reaped_written = 0
        self._rising: dict[str, Rising] = {}
        self._births = Births(room, root)
        self._blkio_told = _delay_accounting(root)
        self._sockets = SocketWaits(root)
        self._stirred = self._changed = True
        self._last_sums: Values = {}
        self._resting: list[Task] = []
        self.thinned = False

    def add(self, pid: int) -> None:
        """Count this process in from now on."""
        with self._lock:
            if pid not in self._members:
                self._members[pid] = Process(pid, self._root, self._room)
                self._changed = True

    def leave_out(self, pid: int) -> None:
        """A child of ours that is no part of the tree: the meter's own helper."""
        with self._lock:
            self._apart.add(pid)

    def apart(self, start: Callable[[], int]) -> int:
        """Start a child of ours that is no part of the tree, and give its number."""
        with self._lock:
            pid = start()
            self._apart.add(pid)
            return pid

    def is_apart(self, pid: int) -> bool:
        """Whether this is a child of ours that is no part of the tree and was not waited for yet."""
        return pid in self._apart

    def living(self) -> int:
        """How many processes of the tree are alive, zombies not counted."""
        with self._lock:
            self._discover(monotonic_us(), everything=True)
            return sum(p.read() and not p.zombie for p in self._members.values())

    def reap(self, pid: int) -> tuple[int, resource.struct_rusage]:
        """Wait for a child of ours that has ended: its status, and the kernel's own account.

        Read for the last time just before, since afterwards its figures are gone.
        """
        with self._lock:
            if pid in self._apart:
                self._apart.discard(pid)
                _, status, usage = os.wait4(pid, 0)
                return status, usage
            process = self._members.pop(pid, None) or Process(pid, self._root, self._room)
            process.read()
            self._read_task_delays(process)
            _, status, usage = os.wait4(pid, 0)
            self._reaped_user_us += round(usage.ru_utime * 1_000_000)
            self._reaped_system_us += round(usage.ru_stime * 1_000_000)
            self._reaped_faults += process.faults
            self._reaped_read += process.read_bytes or 0
            self._reaped_written += process.written or 0
            self._forget(process)
            return status, usage

    def read(self) -> Values:
        """Every counter and gauge of the tree."""
        with self._lock:
            self._turn += 1
            if not self._at_rest():
                self._read_all()
            return self._last_sums

    def _at_rest(self) -> bool:
        """Whether nothing has to be read but each thread's time on a core, and none of them ran."""
        if self._changed or self._turn % AFRESH == 0 or len(self._resting) > DETAIL:
            return False
        return all(task.schedstat.read() == task.said for task in self._resting)

    def _read_all(self) -> None:
        now = monotonic_us()
        self._read_delays()
        ran = any(process.stirred for process in self._members.values())
        if self._stirred and now >= min(self._scan_due, self._rescan_due):
            self._stirred = False
            if now >= self._rescan_due:
                self._discover(now, everything=True)
            elif self._births.any():
                self._discover(now, everything=False)
        self._read_processes()
        self._list_missing_tasks()
        self._read_states()
        self._last_sums = self._sums()
        tasks = self._tasks()
        self._resting = [task for _, task in tasks]
        self._changed = (
            ran
            or self._stirred
            or any(process.restless for process in self._members.values())
            or any(task.restless for _, task in tasks)
            or any(rising.held for rising in self._rising.values())
        )

    def _read_delays(self) -> None:
        """Every thread's time on a core, which tells whose process is worth a closer look."""
        tasks = self._tasks()
        many = len(tasks) > DETAIL
        self.thinned = self.thinned or many
        for index in _in_turn(len(tasks), self._turn * DETAIL, DETAIL):
            process, task = tasks[index]
            before = task.said
            if not task.read_delay():
                self._forget_task(process.tasks.pop(task.tid))
                process.stirred = True
            elif task.said is not before:
                process.stirred = True
        for process in self._members.values():
            process.stirred |= many or process.restless
            self._stirred |= process.stirred

    def _tasks(self) -> list[tuple[Process, Task]]:
        return [(p, task) for p in self._members.values() for task in p.tasks.values()]

    def _read_processes(self) -> None:
        members = [
            process
            for process in self._members.values()
            if process.stirred or self._turn % AFRESH == 0
        ]
        self.thinned = self.thinned or len(members) > PROCESSES
        for index in _in_turn(len(members), self._turn * PROCESSES, PROCESSES):
            if not members[index].read():
                self._forget(self._members.pop(members[index].pid))

    def _discover(self, now: int, *, everything: bool) -> None:
        began = own_cpu_us()
        if everything:
            self._seen = set(self._members)
            self._rescan_due = now + _RESCAN_US
        try:
            present = {int(name) for name in os.listdir(self._root) if name.isdecimal()}
        except OSError:
            return
        fresh = present - self._seen - self._apart - {self._me}
        parents = {pid: self.parent_of(pid) for pid in fresh}
        for pid in self._members.keys() - present:
            self._forget(self._members.pop(pid))
        self._seen &= present
        self._seen |= parents.keys()
        found = True
        while found:
            found = False
            for pid, parent in list(parents.items()):
                if parent == self._me or parent in self._members:
                    del parents[pid]
                    if pid not in self._members:
                        process = self._members[pid] = Process(pid, self._root, self._room)
                        process.read()
                    found = True
        if not everything:
            self._scan_due = now + min((own_cpu_us() - began) * _SCAN_SHARE, _SCAN_LATEST_US)

    def parent_of(self, pid: int) -> int:
        """The parent of any process; 0 where there is none to be found."""
        data = KeptFile(f"{self._root}/{pid}/stat", Room(0), 512).read()
        return int(data[data.rfind(b")") + 2 :].split(None, 2)[1]) if data else 0

    def _read_task_delays(self, process: Process) -> None:
        self._list_tasks(process)
        for task in process.tasks.values():
            task.read_delay()

    def _list_tasks(self, process: Process) -> None:
        if process.threads == 1:
            present = {process.pid}
        else:
            try:
                present = {int(name) for name in os.listdir(f"{process.directory}/task")}
            except OSError:
                return
        for tid in process.tasks.keys() - present:
            self._forget_task(process.tasks.pop(tid))
        for tid in sorted(present - process.tasks.keys()):
            process.tasks[tid] = Task(f"{process.directory}/task/{tid}", tid, self._room)

    def _list_missing_tasks(self) -> None:
        """The threads of a process that has others than are known, and what they say first."""
        fresh: list[tuple[Process, Task]] = []
        for process in self._members.values():
            if process.threads != len(process.tasks):
                known = set(process.tasks)
                self._list_tasks(process)
                fresh += [
                    (process, task) for task in process.tasks.values() if task.tid not in known
                ]
        for process, task in fresh[:DETAIL]:
            if not task.read_delay():
                self._forget_task(process.tasks.pop(task.tid))

    def _read_states(self) -> None:
        """State and switches of threads that ran, or were not asleep when last seen."""
        tasks = [(process, task) for process, task in self._tasks() if task.restless]
        self._sockets.begin()
        for index in _in_turn(len(tasks), self._turn * STATUS, STATUS):
            process, task = tasks[index]
            task.read_status()
            task.at_network = task.asleep and self._sockets.waits(process.pid, task.tid)

    def _forget(self, process: Process) -> None:
        self._changed = True
        for task in process.tasks.values():
            self._forget_task(task)
        process.close()

    def _forget_task(self, task: Task) -> None:
        """A thread's delay and switches die with it in the kernel; here they stay in the sum."""
        task.close()
        self._gone_cpu += task.cpu_us
        self._gone_delay += task.delay_us
        self._gone_voluntary += task.voluntary
        self._gone_involuntary += task.involuntary

    def _sums(self) -> Values:
        members = self._members.values()
        tasks = [task for _, task in self._tasks()]
        user, system, faults, blkio, rss = _summed(_USED, members, 5)
        cpu_us, delay_us, voluntary, involuntary, running, at_network = _summed(_TIMED, tasks, 6)
        io_told = all(p.read_bytes is not None for p in members)
        read, written = _summed(_MOVED, members, 2) if io_told else (0, 0)
        sums = {
            "cpu_user_us": self._reaped_user_us + TICK_US * user,
            "cpu_system_us": self._reaped_system_us + TICK_US * system,
            "major_faults": self._reaped_faults + faults,
            "run_delay_us": self._gone_delay + delay_us,
            "delay_cpu_us": self._gone_cpu + cpu_us,
            "ctx_voluntary": self._gone_voluntary + voluntary,
            "ctx_involuntary": self._gone_involuntary + involuntary,
            "blkio_delay_us": TICK_US * blkio,
        }
        if io_told:
            sums["read_bytes"] = self._reaped_read + read
            sums["write_bytes"] = self._reaped_written + written
        values: Values = {name: self._rising_sum(name, raw) for name, raw in sums.items()}
        if not self._blkio_told:
            values["blkio_delay_us"] = None
        if not io_told:
            values["read_bytes"] = values["write_bytes"] = None
        alive = [p for p in members if not p.zombie]
        values["rss_bytes"] = PAGE * rss
        values["processes"] = len(alive)
        values["threads"] = sum([p.threads for p in alive])
        values["blocked"] = sum(
            [p.blocked or any(task.blocked for task in p.tasks.values()) for p in members]
        )
        values["running"] = running
        if self._sockets.told:
            values["at_network"] = at_network
        return values

    def _rising_sum(self, name: str, raw: int) -> int:
        return self._rising.setdefault(name, Rising()).take(raw)


_USED = attrgetter("user", "system", "faults", "blkio", "rss")
_MOVED = attrgetter("read_bytes", "written")
_TIMED = attrgetter("cpu_us", "delay_us", "voluntary", "involuntary", "running", "at_network")


def _summed(
    fields: Callable[[Any], tuple[int, ...]], things: Iterable[Any], count: int
) -> list[int]:
    """The sum of each of ``count`` fields over all things."""
    rows = [(0,) * count, *[fields(thing) for thing in things]]
    return [sum(column) for column in zip(*rows, strict=True)]


class Births:
    """Whether a process or thread was born since this was last asked, as ``/proc/loadavg`` tells.

    Its last word is the number given out last in this PID namespace. Where it is missing, or stands
    at nought as where something else than the kernel writes that file, the answer is always yes.
    """

    def __init__(self, room: Room, root: str = "/proc") -> None:
        self._file = KeptFile(f"{root}/loadavg", room, 128)
        self._last = b""

    def any(self) -> bool:
        """Yes where it cannot be told."""
        words = (self._file.read() or b"").split()
        last = words[4] if len(words) == 5 else b"0"
        same = last == self._last and last != b"0"
        self._last = last
        return not same


def _in_turn(total: int, start: int, most: int) -> list[int]:
    if total <= most:
        return list(range(total))
    return [(start + step) % total for step in range(most)]


def _delay_accounting(root: str) -> bool:
    """Whether the kernel counts time blocked on block I/O at all (off by default since 5.14)."""
    return (KeptFile(f"{root}/sys/kernel/task_delayacct", Room(0)).read() or b"1").strip() == b"1"


class ThreadClock:
    """The processor time and delay of one thread at a time, as one rising account.

    ``follow`` may name another thread later: its figures are then added from that moment on.
    """

    def __init__(self, room: Room, root: str = "/proc") -> None:
        self._root = root
        self._room = room
        self._file: KeptFile | None = None
        self._who: tuple[int, int] | None = None
        self._base = (0, 0)
        self._last = (0, 0)

    def follow(self, pid: int, tid: int) -> None:
        """Follow this thread unless another one is followed and alive."""
        if (pid, tid) == self._who or (self._file and self._file.read() is not None):
            return
        if self._file:
            self._file.close()
        self._file = KeptFile(f"{self._root}/{pid}/task/{tid}/schedstat", self._room, 128)
        fresh = self._raw() or (0, 0)
        if self._who is not None:
            self._base = (self._last[0] - fresh[0], self._last[1] - fresh[1])
        self._who = (pid, tid)

    def _raw(self) -> tuple[int, int] | None:
        data = self._file.read() if self._file else None
        words = data.split() if data else ()
        return (int(words[0]) // 1000, int(words[1]) // 1000) if len(words) > 1 else None

    def read(self) -> Values:
        """``emitter_cpu_us`` and ``emitter_run_delay_us``; None while no thread is known."""
        raw = self._raw()
        if raw is None:
            return {"emitter_cpu_us": None, "emitter_run_delay_us": None}
        self._last = (raw[0] + self._base[0], raw[1] + self._base[1])
        return {"emitter_cpu_us": self._last[0], "emitter_run_delay_us": self._last[1]}
