"""The filter of system calls: its table against libseccomp's, its program against an interpreter."""

from __future__ import annotations

import ctypes
import errno
import struct

import pytest

from ouvrage.adapters.seccomp import ABSENT, DENIED, JUDGED, MACHINES, NAMESPACES, NEWEST, program

ALLOW, KILL = 0x7FFF0000, 0x80000000


def judged(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Run the program as the kernel does: seccomp(2), classic BPF on struct seccomp_data."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, arch or MACHINES[machine], 0, *words)
    code = list(struct.iter_unpack("<HBBI", program(machine)))
    at = value = 0
    while True:
        kind, yes, no, k = code[at]
        at += 1
        if kind == 0x20:
            value = struct.unpack_from("<I", data, k)[0]
        elif kind == 0x06:
            return k
        else:
            holds = {0x15: value == k, 0x25: value > k, 0x45: bool(value & k)}[kind]
            at += yes if holds else no


def refused(error: int) -> int:
    return 0x00050000 | error


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_denied_and_absent(machine: str) -> None:
    column = list(MACHINES).index(machine)
    for table, error in ((DENIED, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for name, numbers in table.items():
            if numbers[column] is not None:
                assert judged(machine, numbers[column]) == refused(error), name


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_else_up_to_the_newest_is_allowed(machine: str) -> None:
    column = list(MACHINES).index(machine)
    tables = {**DENIED, **ABSENT, **JUDGED}
    special = {numbers[column] for numbers in tables.values()}
    for number in range(NEWEST + 1):
        if number not in special:
            assert judged(machine, number) == ALLOW
    for number in (NEWEST + 1, 0x40000000, 0x40000000 + 165, 0xFFFFFFFF):
        assert judged(machine, number) == refused(errno.ENOSYS)


def test_another_architecture_is_killed() -> None:
    assert judged("x86_64", 165, arch=0x40000003) == KILL  # i386, where 165 is getresuid


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_judged_by_its_arguments(machine: str) -> None:
    number = {name: numbers[list(MACHINES).index(machine)] for name, numbers in JUDGED.items()}
    eperm, family = refused(errno.EPERM), refused(errno.EAFNOSUPPORT)
    assert judged(machine, number["clone"], 17) == ALLOW
    assert judged(machine, number["clone"], 0x3D0F00) == ALLOW  # a thread of glibc's
    for bit in range(32):
        if NAMESPACES & 1 << bit:
            assert judged(machine, number["clone"], 17 | 1 << bit) == eperm
    for good in ((1, 1, 0), (2, 1, 6), (10, 2, 17), (16, 3, 0)):
        assert judged(machine, number["socket"], *good) == ALLOW
    for bad in ((16, 3, 9), (16, 3, 15), (17, 3, 0), (38, 5, 0), (40, 1, 0)):
        assert judged(machine, number["socket"], *bad) == family
    assert judged(machine, number["socketpair"], 1) == ALLOW
    assert judged(machine, number["socketpair"], 40) == family
    assert judged(machine, number["ioctl"], 1, 0x5401) == ALLOW
    for trick in (0x5412, 0x541C, 0x1_0000_5412):
        assert judged(machine, number["ioctl"], 1, trick) == eperm
    assert judged(machine, number["personality"], 0xFFFFFFFF) == ALLOW
    assert judged(machine, number["personality"], 0x0040000) == eperm


def test_the_numbers_are_those_of_libseccomp() -> None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp is not here to compare with")
    ask = library.seccomp_syscall_resolve_name_arch
    ask.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    compared = 0
    for name, numbers in {**DENIED, **ABSENT, **JUDGED}.items():
        for token, number in zip(MACHINES.values(), numbers, strict=True):
            told = ask(token, name.encode())
            if told != -1:  # newer than this libseccomp
                assert (None if told < 0 else told) == number, name
                compared += 1
    assert compared > 100


def test_an_architecture_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        program("riscv64")
