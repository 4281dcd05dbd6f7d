"""The filter of system calls for a sandbox, as the classic BPF program that the kernel takes.

Decides what a tenant's program may ask the kernel: everything that a program of its own needs, and
nothing that mounts, enters or makes namespaces, loads code into the kernel, reads other processes'
secrets or reaches a socket family that no network namespace holds (a virtual machine's vsock). A call
newer than this table does not exist (ENOSYS). Written out here rather than asked of libseccomp, whose
binding no package index offers: a program of two hundred instructions can be read and tested whole.

Numbers: Linux 6.17, ``arch/x86/entry/syscalls/syscall_64.tbl`` and ``scripts/syscall.tbl`` (arm64).
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

NEWEST = 469
"""``file_setattr``: the last call of Linux 6.17, the same number on both architectures."""

_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7
MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}

DENIED: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458),
    "open_tree_attr": (467, 467), "unshare": (272, 97), "setns": (308, 268),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "syslog": (103, 116),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None), "_sysctl": (156, None),
    "create_module": (174, None), "get_kernel_syms": (177, None), "query_module": (178, None),
    "nfsservctl": (180, 42), "lookup_dcookie": (212, 18), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "kcmp": (312, 272), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip
"""Answered with EPERM: the number on x86_64 and on arm64, None where it has none."""

ABSENT: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
"""Answered with ENOSYS, so that libraries take the older way.

``clone3`` has its flags in memory, where a filter cannot look; io_uring carries out calls past it.
"""

JUDGED: dict[str, tuple[int, int]] = {
    "clone": (56, 220),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "personality": (135, 92),
}
"""Allowed or not by their arguments."""

NAMESPACES = 0x7E020080
"""CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} of ``clone``."""

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TERMINAL_TRICKS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put words into a terminal as if its user had typed them."""

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH = 0, 4

Instruction = tuple[int, int, int, int]


@lru_cache(maxsize=2)
def program(machine: str | None = None) -> bytes:
    """The program for this machine. ``ValueError`` for an architecture without a table."""
    machine = machine or os.uname().machine
    if machine not in MACHINES:
        raise ValueError(f"no table of system calls for {machine}")
    column = list(MACHINES).index(machine)
    code = [
        _load(_ARCH), (_JUMP_EQUAL, 1, 0, MACHINES[machine]), _return(_KILL),
        _load(_NUMBER), (_JUMP_ABOVE, 0, 1, NEWEST), _refuse(errno.ENOSYS),
    ]  # fmt: skip
    for table, error in ((DENIED, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for numbers in table.values():
            number = numbers[column]
            if number is not None:
                code += _when(number, [_refuse(error)])
    for name, judge in _JUDGES.items():
        code += _when(JUDGED[name][column], judge)
    code.append(_return(_ALLOW))
    return b"".join(struct.pack("<HBBI", *each) for each in code)


def profile() -> dict[str, Any]:
    """The same rules in the words of an OCI runtime, which looks names up by itself.

    ``personality`` is not in it: the runtime's library compares an argument only once in a rule.
    """
    rules: list[dict[str, Any]] = [
        {"names": sorted(DENIED), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM},
        {"names": sorted(ABSENT), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
    ]
    bits = (1 << place for place in range(32) if NAMESPACES & 1 << place)
    rules += [_rule("clone", errno.EPERM, 0, "SCMP_CMP_MASKED_EQ", bit, bit) for bit in bits]
    rules += [
        _rule("ioctl", errno.EPERM, 1, "SCMP_CMP_MASKED_EQ", 0xFFFFFFFF, trick)
        for trick in _TERMINAL_TRICKS
    ]
    for name, good in (("socket", (_UNIX, _INET, _INET6, _NETLINK)), ("socketpair", (_UNIX,))):
        bad = [family for family in range(max(good)) if family not in good]
        rules += [_rule(name, errno.EAFNOSUPPORT, 0, "SCMP_CMP_EQ", family) for family in bad]
        rules += [_rule(name, errno.EAFNOSUPPORT, 0, "SCMP_CMP_GT", max(good))]
    routes = _rule("socket", errno.EAFNOSUPPORT, 0, "SCMP_CMP_EQ", _NETLINK)
    routes["args"].append({"index": 2, "value": 0, "op": "SCMP_CMP_NE"})
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [*rules, routes]}


def _rule(
    name: str, error: int, place: int, compare: str, value: int, second: int = 0
) -> dict[str, Any]:
    argument = {"index": place, "value": value, "valueTwo": second, "op": compare}
    return {"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": [argument]}


def descriptor(machine: str | None = None) -> int:
    """The program in a file of memory, to be handed to ``bwrap --seccomp``; close it afterwards."""
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(fd, program(machine))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def _argument(place: int) -> Instruction:
    """The low half of an argument; what is compared here are ints in the kernel."""
    return _load(16 + 8 * place)


def _return(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)


def _refuse(error: int) -> Instruction:
    return _return(_ERROR | error)


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    """``then`` where the call is this one; each of its ways ends in a return."""
    return [(_JUMP_EQUAL, 0, len(then), number), *then]


def _only(place: int, values: Iterable[int], error: int) -> list[Instruction]:
    """Allow these values of an argument, refuse all others."""
    code = [_argument(place)]
    for value in values:
        code += [(_JUMP_EQUAL, 0, 1, value), _return(_ALLOW)]
    return [*code, _refuse(error)]


_JUDGES: dict[str, list[Instruction]] = {
    "clone": [_argument(0), (_JUMP_SET, 0, 1, NAMESPACES), _refuse(errno.EPERM), _return(_ALLOW)],
    "socket": [
        _argument(0), (_JUMP_EQUAL, 0, 4, _NETLINK),
        _argument(2), (_JUMP_EQUAL, 0, 1, 0), _return(_ALLOW), _refuse(errno.EAFNOSUPPORT),
        *_only(0, (_UNIX, _INET, _INET6), errno.EAFNOSUPPORT),
    ],
    "socketpair": _only(0, (_UNIX,), errno.EAFNOSUPPORT),
    "ioctl": [
        _argument(1),
        *(word for trick in _TERMINAL_TRICKS for word in _when(trick, [_refuse(errno.EPERM)])),
        _return(_ALLOW),
    ],
    "personality": _only(0, (0, 0xFFFFFFFF), errno.EPERM),
}  # fmt: skip
