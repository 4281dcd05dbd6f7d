"""Connections to what listens inside a sandbox, made from outside it by root.

Decides that only a network other than this process's own is ever entered: a process of the sandbox's group that
still stands in the machine's network, as bubblewrap itself does, is passed over. A thread of its own enters and ends
there, so that no other thread is ever in a tenant's network. A process's number may be given to another meanwhile: one
that is no longer listed once its network is held was not meant.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence

from ouvrage.adapters.own_mounts import enter_network

_HERE = "/proc/self/ns/net"
_LOOPBACK = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))


Listed = Callable[[], Sequence[int]]
"""Lists a sandbox's processes as they are now."""


def network_of(listed: Listed) -> int | None:
    """A descriptor of the network in which a sandbox's processes are; None where none has one of its own."""
    here = os.stat(_HERE)
    for pid in listed():
        with contextlib.suppress(OSError):
            space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            told = os.fstat(space)
            if (told.st_dev, told.st_ino) != (here.st_dev, here.st_ino) and pid in listed():
                return space
            os.close(space)
    return None


def connect_inside(listed: Listed, port: int, timeout_s: float) -> socket.socket:
    """A connection to a port on the loopback of a sandbox. ``OSError`` with the reason."""
    space = network_of(listed)
    if space is None:
        raise OSError("the sandbox has no network of its own that could be entered")
    done: list[socket.socket | OSError] = []

    def enter() -> None:
        try:
            enter_network(space)
            done.append(_connected(port, timeout_s))
        except OSError as error:
            done.append(error)

    thread = threading.Thread(target=enter, name="into-sandbox", daemon=True)
    thread.start()
    thread.join()
    os.close(space)
    found = done[0]
    if isinstance(found, OSError):
        raise found
    return found


def _connected(port: int, timeout_s: float) -> socket.socket:
    trouble: OSError | None = None
    for host, family in _LOOPBACK:
        made = socket.socket(family, socket.SOCK_STREAM)
        made.settimeout(timeout_s)
        try:
            made.connect((host, port))
        except OSError as error:
            made.close()
            trouble = trouble or error
            continue
        return made
    assert trouble is not None
    raise trouble
