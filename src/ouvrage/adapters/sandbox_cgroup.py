"""A control group of our own around one attempt: its limits, its end, and what it used, exactly.

One port for both of the kernel's interfaces: v1 (also mounted beside an empty v2, as Debian's hybrid
is) and v2. Decides which files hold which limit, and that figures are read before the group goes,
because they go with it. The groups stand below ``ouvrage`` at the top of what is mounted, not below
whoever runs us, so that a runner that was restarted finds those of its predecessor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ouvrage.adapters.waiting import until
from ouvrage.base.errors import OuvrageError

PARENT = "ouvrage"
PERIOD_US = 100_000
PPM = 1_000_000
_V1 = ("memory", "cpu", "cpuacct", "cpuset", "pids", "freezer")
_V2 = frozenset(("memory", "cpu", "cpuset", "pids"))
_PATIENCE_US = 5_000_000
_FREEZE_US = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``cpus`` are numbers of cores (empty: all), ``quota_ppm`` millionths of a core (None: none)."""

    memory_bytes: int
    cpus: tuple[int, ...]
    quota_ppm: int | None
    pids: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a group used. ``memory_bytes`` and ``processes`` are its highest; None where not told.

    Memory counts what the kernel charges to the group: also the pages of files it keeps for it.
    """

    memory_bytes: int | None
    cpu_us: int | None
    processes: int | None
    oom_kills: int | None


class Group(Protocol):
    """One group, whichever interface it stands behind."""

    def create(self, limits: Limits) -> None:
        """Make it, with its limits. Raises ``OuvrageError``."""
        ...

    def join(self) -> None:
        """Move the calling process in; for a child that is about to become the command."""
        ...

    def processes(self) -> list[int]:
        """The processes in it now, by our numbers."""
        ...

    def freeze(self, frozen: bool) -> None:
        """Stop every process where it stands, or let all go on."""
        ...

    def reading(self) -> Reading:
        """What it has used so far."""
        ...

    def kill(self) -> bool:
        """End everything in it; whether it is empty afterwards."""
        ...

    def remove(self) -> bool:
        """Take it away; False where something still holds it."""
        ...


def version() -> str:
    """``v1``, ``v2``, or ``none`` where this machine offers no group with every limit."""
    mounts = _mounts()
    if all(name in mounts for name in _V1) and os.access(mounts["memory"], os.W_OK):
        return "v1"
    top = mounts.get("unified", "")
    told = set(_read(f"{top}/cgroup.controllers").split())
    return "v2" if top and told >= _V2 and os.access(top, os.W_OK) else "none"


def group(name: str) -> Group:
    """The group of this name, made or not. Raises ``OuvrageError`` ``sandbox/no-cgroup``."""
    mounts, found = _mounts(), version()
    if found == "v1":
        return GroupV1(name, mounts)
    if found == "v2":
        return GroupV2(name, mounts["unified"])
    raise OuvrageError(
        "sandbox/no-cgroup",
        "no control groups with memory, cpu, cpuset and pids can be made here",
        hint="run the agent as root, in a service with Delegate=yes, not in a container without them",
    )


def standing(prefix: str) -> list[str]:
    """The names with this beginning of the groups that stand here now, of whichever runner."""
    mounts = _mounts()
    top = mounts.get("pids") if version() == "v1" else mounts.get("unified")
    with contextlib.suppress(OSError):
        names = [entry.name for entry in os.scandir(f"{top}/{PARENT}") if entry.is_dir()]
        return sorted(name for name in names if name.startswith(prefix))
    return []


def beside(pid: int) -> Callable[[], None]:
    """What moves the calling process, which has one thread, to where another is: a container's own group below ours. Looked up now."""
    mounts, files = _mounts(), list[str]()
    for line in _read(f"/proc/{pid}/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        mount = mounts.get(kinds.split(",")[0] if kinds else "unified")
        file = f"{mount}{path}/{'tasks' if kinds else 'cgroup.procs'}"
        if mount is not None and path.startswith(f"/{PARENT}/"):
            files.append(file)

    def join() -> None:
        for file in files:
            _write(file, 0)

    if not files:
        raise LookupError("its control group could not be found")
    return join


class GroupV1:
    """A directory in each of six hierarchies; of five where nothing limits the share of a core."""

    def __init__(self, name: str, mounts: dict[str, str]) -> None:
        self._at = {kind: f"{mounts[kind]}/{PARENT}/{name}" for kind in _V1}
        self._all = sorted({f"{mount}/{PARENT}/{name}" for mount in mounts.values()})

    def create(self, limits: Limits) -> None:
        """Make the directories; cpuset wants its cores and memory before it takes anybody."""
        if limits.quota_ppm is None:
            self._at.pop("cpu", None)
        with _told("made"):
            for directory in self._at.values():
                os.makedirs(directory, mode=0o755, exist_ok=True)
            self._cpuset(limits.cpus)
            memory = self._at["memory"]
            _write(f"{memory}/memory.limit_in_bytes", limits.memory_bytes)
            with contextlib.suppress(FileNotFoundError):
                _write(f"{memory}/memory.memsw.limit_in_bytes", limits.memory_bytes)
            if limits.quota_ppm is not None:
                _write(f"{self._at['cpu']}/cpu.cfs_period_us", PERIOD_US)
                quota = limits.quota_ppm * PERIOD_US // PPM
                _write(f"{self._at['cpu']}/cpu.cfs_quota_us", quota)
            _write(f"{self._at['pids']}/pids.max", limits.pids)

    def _cpuset(self, cpus: Iterable[int]) -> None:
        own = self._at["cpuset"]
        parent = os.path.dirname(own)
        top = os.path.dirname(parent)
        for directory, above in ((parent, top), (own, parent)):
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not _read(f"{directory}/{name}"):
                    _write(f"{directory}/{name}", _read(f"{above}/{name}"))
        if cpus:
            _write(f"{own}/cpuset.cpus", ",".join(map(str, cpus)))

    def join(self) -> None:
        """Into each, by its only thread: for that the kernel need not stop every fork of the machine.

        There is one for the share of a core only where that is limited; all others must be there.
        """
        for kind, directory in self._at.items():
            if kind != "cpu" or os.path.isdir(directory):
                _write(f"{directory}/tasks", 0)

    def processes(self) -> list[int]:
        """Those of the freezer's, which is what kills."""
        return _below(self._at["freezer"])

    def freeze(self, frozen: bool) -> None:
        """Ask, and wait a little: a process in the middle of a fault stops when that is over."""
        path = f"{self._at['freezer']}/freezer.state"
        _write(path, "FROZEN" if frozen else "THAWED")
        if frozen:
            until(lambda: _read(path) == "FROZEN", _FREEZE_US)

    def reading(self) -> Reading:
        """From memory, cpuacct and pids."""
        memory = self._at["memory"]
        told = _pairs(f"{memory}/memory.oom_control")
        spent = _number(f"{self._at['cpuacct']}/cpuacct.usage")
        return Reading(
            memory_bytes=_number(f"{memory}/memory.max_usage_in_bytes"),
            cpu_us=None if spent is None else spent // 1000,
            processes=_number(f"{self._at['pids']}/pids.peak"),
            oom_kills=told.get("oom_kill"),
        )

    def kill(self) -> bool:
        """Frozen, so that nothing can fork past the signal; then killed, then let go to die."""
        return until(self._kill_once, _PATIENCE_US)

    def _kill_once(self) -> bool:
        if not self.processes():
            return True
        with contextlib.suppress(OSError):
            self.freeze(True)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.freeze(False)
        return not self.processes()

    def remove(self) -> bool:
        """Every directory, also those that a container's runtime made in other hierarchies."""
        return until(lambda: not [at for at in self._all if not _removed(at)], _PATIENCE_US)


class GroupV2:
    """One directory with every controller."""

    def __init__(self, name: str, top: str) -> None:
        self._top = top
        self._at = f"{top}/{PARENT}/{name}"

    def create(self, limits: Limits) -> None:
        """Hand the controllers down, then make the directory."""
        with _told("made"):
            parent = os.path.dirname(self._at)
            os.makedirs(parent, mode=0o755, exist_ok=True)
            for directory in (self._top, parent):
                missing = _V2 - set(_read(f"{directory}/cgroup.subtree_control").split())
                if missing:
                    words = " ".join(f"+{name}" for name in sorted(missing))
                    _write(f"{directory}/cgroup.subtree_control", words)
            os.makedirs(self._at, mode=0o755, exist_ok=True)
            _write(f"{self._at}/memory.max", limits.memory_bytes)
            with contextlib.suppress(FileNotFoundError):
                _write(f"{self._at}/memory.swap.max", 0)
            if limits.quota_ppm is not None:
                quota = limits.quota_ppm * PERIOD_US // PPM
                _write(f"{self._at}/cpu.max", f"{quota} {PERIOD_US}")
            if limits.cpus:
                _write(f"{self._at}/cpuset.cpus", ",".join(map(str, limits.cpus)))
            _write(f"{self._at}/pids.max", limits.pids)

    def join(self) -> None:
        """Into the one."""
        _write(f"{self._at}/cgroup.procs", 0)

    def processes(self) -> list[int]:
        """As the kernel lists them."""
        return _below(self._at)

    def freeze(self, frozen: bool) -> None:
        """Ask, and wait a little until it says so."""
        _write(f"{self._at}/cgroup.freeze", int(frozen))
        if frozen:
            events = f"{self._at}/cgroup.events"
            until(lambda: _pairs(events).get("frozen") == 1, _FREEZE_US)

    def reading(self) -> Reading:
        """``memory.peak`` since 5.19, ``pids.peak`` since 6.1: None before."""
        return Reading(
            memory_bytes=_number(f"{self._at}/memory.peak"),
            cpu_us=_pairs(f"{self._at}/cpu.stat").get("usage_usec"),
            processes=_number(f"{self._at}/pids.peak"),
            oom_kills=_pairs(f"{self._at}/memory.events").get("oom_kill"),
        )

    def kill(self) -> bool:
        """``cgroup.kill`` since 5.14; before that one after the other, frozen."""
        return until(self._kill_once, _PATIENCE_US)

    def _kill_once(self) -> bool:
        if not self.processes():
            return True
        try:
            _write(f"{self._at}/cgroup.kill", 1)
        except FileNotFoundError:
            self._kill_each()
        return not self.processes()

    def _kill_each(self) -> None:
        self.freeze(True)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.freeze(False)

    def remove(self) -> bool:
        """The directory."""
        return until(lambda: _removed(self._at), _PATIENCE_US)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OuvrageError(
            "sandbox/no-cgroup",
            f"the control group could not be {what}: {error.filename}: {error.strerror}",
            hint="ouvrage doctor --isolation says what this machine lacks",
        ) from error


def _below(directory: str) -> list[int]:
    """The processes of a group and of those in it."""
    return [
        pid
        for at, _, names in os.walk(directory)
        if "cgroup.procs" in names
        for pid in _numbers(f"{at}/cgroup.procs")
    ]


def _removed(directory: str) -> bool:
    try:
        for at, _, _ in os.walk(directory, topdown=False):
            os.rmdir(at)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _mounts() -> dict[str, str]:
    """Mount point of each v1 controller, and of v2 under ``unified``; as this process sees them."""
    found: dict[str, str] = {}
    for line in _read("/proc/self/mounts").splitlines():
        words = line.split(" ")
        if words[2] == "cgroup":
            for option in words[3].split(","):
                found.setdefault(option, words[1])
        elif words[2] == "cgroup2":
            found.setdefault("unified", words[1])
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path)
    return int(text) if text.isdigit() else None


def _numbers(path: str) -> list[int]:
    return [int(word) for word in _read(path).split() if word.isdigit()]


def _pairs(path: str) -> dict[str, int]:
    lines = (line.split() for line in _read(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _write(path: str, value: object) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))
