"""Mounts that only this process and its children see, and that go when the last of them goes.

Decides that nothing mounted for an attempt ever shows on the host: a process takes a mount namespace
of its own first, in which the host's later mounts still arrive and its own never leave. Whatever ends
that process, the kernel undoes its mounts. Only root may do this.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from functools import lru_cache
from typing import Any

_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND, _REC, _SLAVE = 1, 2, 4, 32, 4096, 16384, 1 << 19
_DETACH = 2
_LOOP_GET_FREE, _LOOP_CONFIGURE = 0x4C82, 0x4C0A
_AUTOCLEAR = 4
_TRIES = 32


@lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def keep_to_myself() -> None:
    """From now on this process's mounts are its own and its children's. ``OSError`` where refused."""
    _checked(_libc().unshare(_CLONE_NEWNS), "mount namespace")
    mount(None, "/", None, _REC | _SLAVE)


def enter_network(descriptor: int) -> None:
    """Move the calling thread into this network namespace."""
    _checked(_libc().setns(descriptor, _CLONE_NEWNET), "network namespace")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """``mount(2)``. ``OSError`` with the target as its file."""
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    result = _libc().mount(*words, ctypes.c_ulong(flags), os.fsencode(data) or None)
    _checked(result, target)


def tmpfs(target: str, bytes_: int, mode: int = 0o755) -> None:
    """Fresh memory of a limited size, without device nodes or set-user-id programs."""
    mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, f"size={bytes_},mode={mode:o}")


def bind(source: str, target: str, *, writable: bool) -> None:
    """Show a directory or file in a second place, with everything mounted below it."""
    mount(source, target, None, _BIND | _REC)
    if not writable:
        mount(None, target, None, _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV)


def image(file: str, target: str, kind: str, data: str) -> None:
    """Mount the file system in a file. Its loop device goes when it is unmounted."""
    loop, device = _attached(file)
    try:
        mount(device, target, kind, _NOSUID | _NODEV, data)
    finally:
        os.close(loop)


def _attached(file: str) -> tuple[int, str]:
    backing = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        # struct loop_config of linux/loop.h: file, block size, loop_info64 with its flags, reserved.
        config = struct.pack("<II5Q4I176x64x", backing, 0, 0, 0, 0, 0, 0, 0, 0, 0, _AUTOCLEAR)
        for _ in range(_TRIES):
            device = f"/dev/loop{fcntl.ioctl(control, _LOOP_GET_FREE)}"
            loop = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(loop, _LOOP_CONFIGURE, config)
            except OSError:  # somebody else was faster with this one
                os.close(loop)
                continue
            return loop, device
        raise OSError(16, "no loop device is free", file)
    finally:
        os.close(control)
        os.close(backing)


def attached(file: str) -> bool:
    """Whether a loop device still stands on a file: its file system is in use somewhere."""
    whole = os.path.realpath(file)
    for device in os.listdir("/sys/block"):
        if device.startswith("loop"):
            try:
                with open(f"/sys/block/{device}/loop/backing_file", encoding="utf-8") as told:
                    if told.read().strip() == whole:
                        return True
            except OSError:  # nothing stands on this one
                continue
    return False


def unmount(target: str) -> None:
    """Take it away now; what still holds it keeps only what it has open."""
    _checked(_libc().umount2(os.fsencode(target), _DETACH), target)
