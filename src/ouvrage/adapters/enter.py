"""One more process in a sandbox that stands: in all its namespaces, as its user, under its limits and its filter.

Decides the order, on which the sandbox depends: the group and the namespaces are entered as root from outside, the user's last; then every
right is dropped for good, and only then anything of the tenant's is looked at. What enters has nothing open but what it was handed. Linux
refuses all this to a process with threads, so it is for a fork of a process that has one.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters import bubblewrap, seccomp

_SPACES = ("net", "ipc", "uts", "cgroup", "mnt")
_SET_DEATH, _SET_FILTER, _NO_NEW_RIGHTS, _DROP_BOUND, _AMBIENT, _AMBIENT_CLEAR = (
    1,
    22,
    38,
    24,
    47,
    4,
)
_FILTER = 2
_CAPSET_VERSION = 0x20080522
_OPEN_FILES = 65_536
_LONGEST_ENVIRONMENT = 1 << 20


class _Program(ctypes.Structure):
    """``struct sock_fprog`` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """Everything about a sandbox that is looked up outside, before anything is entered.

    ``spaces`` are descriptors of its namespaces by their names in /proc; ``environment`` is its command's own.
    """

    spaces: Mapping[str, int]
    environment: Mapping[str, str]
    join: Callable[[], None]

    @classmethod
    def of(cls, pid: int, join: Callable[[], None]) -> Entrance:
        """That of a process of the sandbox; ``join`` puts the caller into its control group."""
        names = (*_SPACES, "user", "pid")
        spaces = {n: os.open(f"/proc/{pid}/ns/{n}", os.O_RDONLY | os.O_CLOEXEC) for n in names}
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read(_LONGEST_ENVIRONMENT).split(b"\0")
        pairs = (os.fsdecode(word).partition("=") for word in words if b"=" in word)
        return cls(spaces=spaces, environment={name: value for name, _, value in pairs}, join=join)

    def own_user(self) -> bool:
        """Whether the sandbox has users of its own; one without is never entered."""
        theirs, ours = os.fstat(self.spaces["user"]), os.stat("/proc/self/ns/user")
        return (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino)


_LIBC: Any = ctypes.CDLL(None, use_errno=True)


def children_enter(entrance: Entrance) -> None:
    """From now on this process's children are born among the sandbox's processes; it stays outside itself."""
    _checked(_LIBC.setns(entrance.spaces["pid"], 0), "setns pid")


def become_one_of_them(entrance: Entrance) -> None:
    """In a fork: enter, and drop every right. Ends with the process outside that made it."""
    code = seccomp.program()
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(kept, ctypes.c_void_p))
    entrance.join()
    os.setgroups([])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for name in (*_SPACES, "user"):
        _checked(_LIBC.setns(entrance.spaces[name], 0), f"setns {name}")
    _checked(_LIBC.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0), "no new rights")
    capability = 0
    while _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0) == 0:
        capability += 1
    os.setresgid(bubblewrap.USER, bubblewrap.USER, bubblewrap.USER)
    os.setresuid(bubblewrap.USER, bubblewrap.USER, bubblewrap.USER)
    _LIBC.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    _no_rights()
    _checked(_LIBC.prctl(_SET_DEATH, signal.SIGKILL, 0, 0, 0), "parent's death")
    _checked(_LIBC.prctl(_SET_FILTER, _FILTER, ctypes.byref(program), 0, 0), "filter")


def _no_rights() -> None:
    """``capset(2)`` with nothing in any set: two structs of three words each."""
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked(_LIBC.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
