"""Lines of the kernel's log, whoever printed them: raw records, dmesg, the journal, syslog.

Decides which lines are the kernel's own. A program can write a line that looks like the driver's to any other
log, so that a line counts only where its shape says that it is the kernel's; a bare line (``dmesg -t``) counts only
in a text in which no line has any shape. A date without its year is never made into a moment. What the lines mean is
``driver_lines``' to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, cast

BOOT, WALL = "boot", "wall"

_KMSG = re.compile(r"(\d{1,4}),(\d{1,19}),(\d{1,19}),[^;]*;(.*)")
_LEVELS = re.compile(r"([a-z0-9]+) *:([a-z]+) *: ?(.*)")
_SINCE_BOOT = re.compile(r"\[ *(\d{1,12})\.(\d{6})\](?:\[ *[TC]\d+\])? ?(.*)")
_CTIME = re.compile(r"\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ?(.*)")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([,.])(\d{1,6})\d*(Z|[+-]\d\d:?\d\d) (.*)"
)  # dmesg writes a comma, syslog a point
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (.*)")
_FROM_KERNEL = re.compile(r"\S+ kernel: ?(.*)")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_TEXT_KEPT = 4096
"""Characters of a message; the kernel writes none that is longer than half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """One message of the kernel. ``at_us`` is microseconds since boot or since 1970, as ``clock`` says.

    ``sequence`` is the record's number where the raw log gives it; ``raw`` the line as it stood.
    """

    text: str
    at_us: int | None
    clock: str | None
    sequence: int | None
    raw: str


def lines_in(text: str) -> list[str]:
    """The lines of a log. Only a line feed ends one: whatever else some call a new line, a program may have written into
    its own, so that what follows looks like the kernel's.
    """
    return text.split("\n")


def kernel_lines(lines: Iterable[str]) -> Iterator[KernelLine]:
    """The kernel's own messages among some lines, in their order."""
    bare: list[str] = []
    shaped = False
    for raw in lines:
        line = raw.rstrip("\r\n").lstrip("\0")  # a machine that lost its power leaves NULs behind
        if not line or line.startswith((" ", "\t")):
            continue  # what follows a raw record, or a message's further lines
        found = _shape(line)
        if found is None:
            bare.append(line)
            continue
        shaped = True
        if isinstance(found, KernelLine):
            yield found
    if not shaped:
        yield from (_line(line, line) for line in bare if line.startswith("NVRM: "))


def _line(
    text: str, raw: str, at_us: int | None = None, clock: str | None = None,
    sequence: int | None = None,
) -> KernelLine:  # fmt: skip
    return KernelLine(text=text[:_TEXT_KEPT], at_us=at_us, clock=clock, sequence=sequence, raw=raw)


def _shape(line: str) -> KernelLine | bool | None:
    """The message; True where the line has a shape and is not the kernel's; None without any shape."""
    if line[0] == "[":
        return _bracketed(line, line)
    if line[0] == "{":
        return _journal(line)
    if kmsg := _KMSG.fullmatch(line):
        return _record(kmsg, line)
    if iso := _ISO.fullmatch(line):
        return _iso(iso, line)
    if syslog := _SYSLOG.fullmatch(line):
        return _told_by(syslog[1], line, None, None)
    levels = _LEVELS.fullmatch(line)
    if levels is not None and levels[3].startswith("["):
        return _bracketed(levels[3], line) if levels[1] == "kern" else True
    return None


def _record(found: re.Match[str], raw: str) -> KernelLine | bool:
    """A record of ``/dev/kmsg``: what programs write there has another facility than 0."""
    if int(found[1]) >> 3:
        return True
    text = _ESCAPED.sub(lambda m: chr(int(m[1], 16)), found[4])
    return _line(text, raw, int(found[3]), BOOT, int(found[2]))


def _bracketed(line: str, raw: str) -> KernelLine | None:
    if since := _SINCE_BOOT.fullmatch(line):
        at_us = int(since[1]) * 1_000_000 + int(since[2])
        told = _FROM_KERNEL.fullmatch(since[3])  # the journal's form with its host
        return _line(told[1] if told else since[3], raw, at_us, BOOT)
    if wall := _CTIME.fullmatch(line):
        return _line(wall[2], raw, _moment(wall[1], "%a %b %d %H:%M:%S %Y"), WALL)
    return None


def _iso(found: re.Match[str], raw: str) -> KernelLine | bool:
    zone = found[4].replace(":", "").replace("Z", "+0000")
    whole = _moment(f"{found[1]}{zone}", "%Y-%m-%dT%H:%M:%S%z")
    at_us = None if whole is None else whole + int(found[3].ljust(6, "0"))
    if found[2] == ",":
        return _line(found[5], raw, at_us, WALL)
    return _told_by(found[5], raw, at_us, WALL)


def _told_by(rest: str, raw: str, at_us: int | None, clock: str | None) -> KernelLine | bool:
    """A line of syslog: the kernel's only where it is told to come from it."""
    told = _FROM_KERNEL.fullmatch(rest)
    if told is None:
        return True
    since = _SINCE_BOOT.fullmatch(told[1])
    if since is None:
        return _line(told[1], raw, at_us, clock)
    return _line(since[3], raw, int(since[1]) * 1_000_000 + int(since[2]), BOOT)


def _journal(line: str) -> KernelLine | bool | None:
    """One entry of ``journalctl -o json``."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    entry = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    text = entry.get("MESSAGE")
    if entry.get("_TRANSPORT") != "kernel" or not isinstance(text, str):
        return True
    at = entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP")
    at_us = int(at) if isinstance(at, str) and at.isdecimal() and at.isascii() else None
    return _line(text, line, at_us, BOOT if at_us is not None else None)


def _moment(text: str, form: str) -> int | None:
    try:
        told = datetime.strptime(text, form)  # noqa: DTZ007 -- dmesg gives no zone; only differences count
    except ValueError:
        return None
    if told.tzinfo is None:
        told = told.replace(tzinfo=timezone.utc)
    return int(told.timestamp()) * 1_000_000
