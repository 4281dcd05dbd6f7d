"""Where a metered program reports its units and spans: a datagram socket only its owner can reach.

Everything that arrives is untrusted: it is bounded, checked and, where it does not fit, counted and
dropped. The sender's process is the kernel's word, not the sender's. The message is the one that
``ouvrage.client`` sends: JSON, version 1, moments in nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ouvrage.adapters.clock import new_id

if TYPE_CHECKING:
    from ouvrage.meter.record import Record

LONGEST = 65_536
MOST_UNITS = 512
MOST_SPANS = 64
MOST_NAMES = 256
NAME_LENGTH = 64
MOST_AT_ONCE = 256
_COUNT = 10**12
_SLACK_US = 50_000
_CREDENTIALS = struct.calcsize("3i")


class Refused(ValueError):
    """A message that does not fit; the text says where."""


class Inbox:
    """The socket and what came through it.

    ``emitter`` is the latest (pid, tid) that reported. ``refused`` counts what was dropped.
    """

    def __init__(self) -> None:
        self._origin = 0
        self._names: set[str] = set()
        self.refused = 0
        self.emitter: tuple[int, int] | None = None
        self._socket: socket.socket | None = None
        self._directory = ""
        self.address = ""

    def open(self) -> None:
        """Create the socket. ``OSError`` where no private directory can be made for it."""
        base = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- the directory made in it is private
        if len(os.fsencode(base)) > 50:
            base = "/tmp"  # noqa: S108 -- a socket's path holds 107 bytes
        self._directory = os.path.join(base, f"ouvrage-{new_id()}")
        os.mkdir(self._directory, 0o700)
        self.address = os.path.join(self._directory, "meter")
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._socket.bind(self.address)
            self._socket.setblocking(False)
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        """The descriptor to poll, -1 where there is none."""
        return self._socket.fileno() if self._socket else -1

    def receive(self, record: Record, origin_us: int, now_us: Callable[[], int]) -> None:
        """Take what has arrived, at most ``MOST_AT_ONCE`` messages, into the record.

        The clock is asked for each: while one is taken in, the program may send the next.
        """
        self._origin = origin_us
        for _ in range(MOST_AT_ONCE):
            try:
                if self._socket is None:
                    return
                data, extra, flags, _ = self._socket.recvmsg(
                    LONGEST, socket.CMSG_SPACE(_CREDENTIALS)
                )
            except OSError:
                return
            try:
                if flags & socket.MSG_TRUNC:
                    raise Refused("longer than a message may be")
                self._take(record, data, _sender(extra), now_us())
            except Refused:
                self.refused += 1

    def _take(self, record: Record, data: bytes, pid: int, now_us: int) -> None:
        message = _message(data)
        tid = _whole(message.get("tid"), 1 << 31)
        if message.get("pid") != pid:
            tid = pid
        latest = now_us - self._origin + _SLACK_US
        units = _listed(message.get("units"), MOST_UNITS)
        marks = [self._unit(item, latest) for item in units]
        spans = self._spans(message, pid, tid, latest)
        for name, n, t in marks:
            record.mark(name, "code", pid, "count", n, t)
        if spans:
            record.spans(spans)
        self.emitter = (pid, tid)

    def _unit(self, item: Any, latest: int) -> tuple[str, int, int]:
        name, n, at = _listed(item, 3, exactly=True)
        return self._name(name), _whole(n, _COUNT), self._moment(at, latest)

    def _spans(self, message: dict[str, Any], pid: int, tid: int, latest: int) -> dict[str, Any]:
        sums = _listed(message.get("spans", []), MOST_SPANS)
        if not sums:
            return {}
        start = self._moment(message.get("from"), latest)
        end = self._moment(message.get("to"), latest)
        spans: list[dict[str, Any]] = []
        for item in sums:
            name, count, total = _listed(item, 3, exactly=True)
            total_us = _whole(total, 1 << 60) // 1000
            spans.append(
                {"name": self._name(name), "count": _whole(count, _COUNT), "total_us": total_us}
            )
        if end < start or sum(span["total_us"] for span in spans) > end - start + _SLACK_US:
            raise Refused("more time in spans than passed")
        cpu_us = _whole(message.get("cpu"), 1 << 60) // 1000
        return {"pid": pid, "tid": tid, "from": start, "to": end, "cpu_us": cpu_us, "spans": spans}

    def _moment(self, value: Any, latest: int) -> int:
        """A moment of the run, within it also where the two clocks were read a moment apart."""
        at = _whole(value, 1 << 63) // 1000 - self._origin
        if at > latest:
            raise Refused("a moment that is yet to come")
        return max(0, min(at, latest - _SLACK_US))

    def _name(self, value: Any) -> str:
        if not isinstance(value, str) or not value or len(value) > NAME_LENGTH:
            raise Refused("not a name")
        name = "".join(char if char.isprintable() else "\ufffd" for char in value)
        if name not in self._names:
            if len(self._names) >= MOST_NAMES:
                raise Refused("too many different names")
            self._names.add(name)
        return name

    def close(self) -> None:
        """Remove socket and directory."""
        if self._socket:
            self._socket.close()
            self._socket = None
        with contextlib.suppress(OSError):
            os.unlink(self.address)
        with contextlib.suppress(OSError):
            os.rmdir(self._directory)


def _message(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused("not JSON") from error
    if not isinstance(message, dict) or message.get("v") != 1:
        raise Refused("not a message of version 1")
    return message


def _sender(extra: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return struct.unpack("3i", data[:_CREDENTIALS])[0]
    raise Refused("no credentials")


def _whole(value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise Refused("not a whole number in its bounds")
    return value


def _listed(value: Any, most: int, *, exactly: bool = False) -> list[Any]:
    if not isinstance(value, list) or len(value) > most or (exactly and len(value) != most):
        raise Refused("not a list in its bounds")
    return value
