"""The watch's view in Prometheus' text form, for whoever scrapes this machine.

Decides the names: one series for each check and part with the verdict as a number (0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN, as
``ouvrage check`` exits), its evidence where that is a number, the probes, and how long ago the heart beat. It only reads what
the watch wrote, on a thread of its own and on a bare socket: a server of the standard library would add five megabytes to
a program that must stay small, for one address that answers one word.
"""

from __future__ import annotations

import contextlib
import math
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ouvrage import __version__
from ouvrage.adapters.clock import monotonic_us
from ouvrage.agent.probing.heart import last_beat
from ouvrage.agent.probing.now import CheckNow, Now, read_now
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND
from ouvrage.health.ladder import runbook_of
from ouvrage.model.health import VERDICTS

_LONGEST, _PIECES, _PATIENCE_S = 2048, 4, 2.0
_HELP = {
    "ouvrage_agent_info": ("gauge", "The watch that answers: its node, boot and version."),
    "ouvrage_agent_heartbeat_age_seconds": ("gauge", "Since the watch's heart beat last; it beats each 5 s."),
    "ouvrage_agent_view_age_seconds": ("gauge", "Since the watch last wrote down what it sees."),
    "ouvrage_node_check_verdict": ("gauge", "What counts now: 0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN."),
    "ouvrage_node_check_info": ("gauge", "The rule that decided, the action that it asks for, its page of docs/runbooks."),
    "ouvrage_node_check_since_timestamp_seconds": ("gauge", "When the verdict began to count."),
    "ouvrage_node_check_latched": ("gauge", "1: it stays until it is verified."),
    "ouvrage_node_check_evidence": ("gauge", "A value that the verdict stands on, as it was read."),
    "ouvrage_probe_fault": ("gauge", "1: the probe's last look brought nothing."),
    "ouvrage_probe_duration_seconds": ("gauge", "How long its last look took."),
    "ouvrage_probe_interval_seconds": ("gauge", "How often it looks."),
    "ouvrage_probe_last_look_timestamp_seconds": ("gauge", "When it looked last."),
    "ouvrage_agent_dropped_total": ("counter", "What a full disk cost since the watch began."),
}  # fmt: skip
NAMES = tuple(_HELP)
"""Every name that a page may hold."""
Series = tuple[str, dict[str, str], float]


def page_of(now: Now | None, beat_age_us: int | None, now_us: int) -> str:
    """The page; ``now_us`` is since boot. ``beat_age_us`` None: the heart has not beaten; ``now`` None: nothing was looked at yet."""
    found: dict[str, list[Series]] = {}
    for each in _series(now, beat_age_us, now_us):
        found.setdefault(each[0], []).append(each)
    lines: list[str] = []
    for name, (sort, words) in _HELP.items():
        if name in found:
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {sort}"]
            lines += [_line(each) for each in found[name]]
    return "\n".join([*lines, ""])


def _series(now: Now | None, beat_age_us: int | None, now_us: int) -> Iterator[Series]:
    if beat_age_us is not None:
        yield "ouvrage_agent_heartbeat_age_seconds", {}, beat_age_us / SECOND
    if now is None:
        return
    node = {"node": now.node}
    yield "ouvrage_agent_info", {**node, "boot": now.boot, "version": __version__}, 1
    yield "ouvrage_agent_view_age_seconds", node, (now_us - now.monotonic_us) / SECOND
    for what, count in (("telemetry", now.dropped.telemetry), ("facts", now.dropped.facts)):
        yield "ouvrage_agent_dropped_total", {**node, "what": what}, count
    for probe in now.probes:
        about = {**node, "probe": probe.name}
        yield "ouvrage_probe_interval_seconds", about, probe.interval_s
        if probe.last_us is not None:
            yield "ouvrage_probe_fault", about, float(probe.fault is not None)
            yield "ouvrage_probe_duration_seconds", about, probe.took_us / SECOND
            yield "ouvrage_probe_last_look_timestamp_seconds", about, probe.last_us / SECOND
    for check in now.checks:
        if not check.shadow:
            yield from _checked(check, node)


def _checked(check: CheckNow, node: dict[str, str]) -> Iterator[Series]:
    about = {**node, "check": check.check, "device": check.device or ""}
    yield "ouvrage_node_check_verdict", about, VERDICTS.index(check.verdict)
    runbook = runbook_of(check.action) or "index"
    yield (
        "ouvrage_node_check_info",
        {**about, "code": check.code, "action": check.action, "runbook": runbook},
        1,
    )
    yield "ouvrage_node_check_since_timestamp_seconds", about, check.since_us / SECOND
    yield "ouvrage_node_check_latched", about, float(check.latched)
    for each in _numbers(check):
        yield "ouvrage_node_check_evidence", {**about, "name": each[0]}, each[1]


def _numbers(check: CheckNow) -> Iterator[tuple[str, float]]:
    """Evidence that is a number, the first of each name: a page may not say one series twice."""
    seen: set[str] = set()
    for each in check.evidence:
        with contextlib.suppress(ValueError, OverflowError):
            value = float(each.value)
            if each.name not in seen and math.isfinite(value):
                seen.add(each.name)
                yield each.name, value


def _line(series: Series) -> str:
    name, labels, value = series
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    number = str(int(value)) if float(value).is_integer() else repr(float(value))
    return f"{name}{{{inner}}} {number}" if inner else f"{name} {number}"


def _escaped(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def page_in(state: Path) -> str:
    """The page of a state directory, now."""
    beat, now_mono = last_beat(state), monotonic_us()
    try:
        now = read_now(state)
    except OuvrageError:
        now = None
    told = None if beat is None else max(0, now_mono - int(beat["monotonic_us"]))
    return page_of(now, told, now_mono)


class Exposition(threading.Thread):
    """Answers ``GET /metrics`` on one address until the process ends."""

    def __init__(self, state: Path, address: str) -> None:
        super().__init__(name="metrics", daemon=True)
        self._state = state
        host, _, port = address.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host.strip("[]"), int(port)), family=family)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._socket.getsockname()[1]

    def run(self) -> None:
        """One after the other: who is slow is left after a moment."""
        while True:
            with contextlib.suppress(OSError):
                line, _ = self._socket.accept()
                with line:
                    line.settimeout(_PATIENCE_S)
                    line.sendall(self._answer(_asked(line)))

    def _answer(self, asked: bytes) -> bytes:
        words = asked.split(b" ")
        if len(words) < 2 or words[0] not in (b"GET", b"HEAD"):
            return _told("405 Method Not Allowed", "only GET\n")
        if words[1].partition(b"?")[0] != b"/metrics":
            return _told("404 Not Found", "/metrics\n")
        return _told("200 OK", page_in(self._state), body=words[0] == b"GET")


def _asked(line: socket.socket) -> bytes:
    """The first line of a request, read to the end of its head."""
    held = b""
    for _ in range(_PIECES):
        more = line.recv(_LONGEST)
        held += more
        if not more or b"\r\n\r\n" in held:
            break
    return held.partition(b"\r\n")[0]


def _told(status: str, text: str, *, body: bool = True) -> bytes:
    content = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + (content if body else b"")


def exposed(state: Path, address: str) -> Exposition | None:
    """Begin to answer; None, and a word of it, where the address cannot be had: the watch goes on without."""
    try:
        made = Exposition(state, address)
    except (OSError, ValueError, OverflowError) as error:
        sys.stderr.write(f"ouvrage agent: no metrics at {address}: {error}\n")
        return None
    made.start()
    return made
