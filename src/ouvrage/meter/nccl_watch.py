"""Looks for NCCL's lines in what a command prints while it goes by.

Decides what is worth a closer look, for the price of one search in each piece: nothing about NCCL is even
imported before its name is seen. What the lines mean is decided in ``metering.nccl_log``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ouvrage.metering.nccl_log import NcclLog
    from ouvrage.model.around import RunCommunication

_SIGN = b"NCCL "
_LONGEST_LINE = 4_096


class NcclWatch:
    """Looks for NCCL's lines in what a command prints, for the price of one search in each piece."""

    def __init__(self) -> None:
        self._logs: dict[str, NcclLog] = {}
        self._rest: dict[str, bytes] = {}

    def look(self, stream: str, data: bytes) -> None:
        """A piece of what one stream printed."""
        held = self._rest.get(stream, b"")
        if _SIGN not in data and _SIGN not in held + data[: len(_SIGN)]:
            last = data.rfind(b"\n") + 1
            self._rest[stream] = (data[last:] if last else held + data)[-_LONGEST_LINE:]
            return
        *lines, rest = (held + data).split(b"\n")
        self._rest[stream] = rest[-_LONGEST_LINE:]
        log = self._log(stream)
        for line in lines:
            if _SIGN in line:
                log.take(line[:_LONGEST_LINE].decode("utf-8", "replace"))

    def _log(self, stream: str) -> NcclLog:
        from ouvrage.metering.nccl_log import NcclLog

        if stream not in self._logs:
            self._logs[stream] = NcclLog()
        return self._logs[stream]

    def said(self, run: str) -> tuple[RunCommunication, ...]:
        """What was seen on each stream."""
        found = (log.said(run, "output") for log in self._logs.values())
        return tuple(each for each in found if each)
