"""How fast this machine's network is: the link as the kernel lists it, and to a server that is named.

Nothing is contacted unless somebody names it. What comes through to a peer is what the network can at
least; the peer may be the slower one, unless it is said how fast it is.
"""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlsplit

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.web_address import address_fault
from ouvrage.base.errors import OuvrageError
from ouvrage.model.hosts import HostReading, reading

US = 1_000_000
CONNECTIONS = 4
LEAST = 1 << 20
_PIECE = 256 << 10
_LARGEST_POST = 16 << 20
_QUICK_US = 250_000
_SHARE = Fraction(9, 10)
NO_PEER = "not measured: --network-peer URL names a server to measure against"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A server to measure against: it answers a GET with many bytes and takes a POST.

    ``mbit`` is how fast its own line is, None where nobody says.
    """

    url: str
    mbit: int | None = None


def check_peer(peer: Peer) -> None:
    """Raise ``OuvrageError`` ``host/peer`` where there is nobody to ask."""
    if fault := address_fault(peer.url):
        raise OuvrageError(
            "host/peer",
            f"{peer.url!r} is no address of a server: {fault}",
            hint="--network-peer http://HOST:PORT/FILE",
        )


def link_readings(sys: str = "/sys") -> list[HostReading]:
    """The speed of each interface that has hardware behind it and says how fast it is."""
    try:
        names = sorted(os.listdir(f"{sys}/class/net"))
    except OSError:
        return []
    found: list[HostReading] = []
    for name in names:
        said = KeptFile(f"{sys}/class/net/{name}/speed", Room(0)).read()
        text = (said or b"").strip()
        if os.path.exists(f"{sys}/class/net/{name}/device") and text.isdigit() and int(text):
            speed = int(text)
            found.append(
                reading("net.link", "Mbit/s", "as the kernel lists it", speed, speed, part=name)
            )
    return found


def network_readings(peer: Peer | None, seconds: float) -> list[HostReading]:
    """Down and up, so many seconds each, over several connections."""
    if peer is None:
        return [reading(id, "Mbit/s", NO_PEER) for id in ("net.down", "net.up")]
    return [
        _timed("net.down", peer, seconds, _fetch),
        _timed("net.up", peer, seconds, _send),
    ]


class _Flow:
    """What one connection has moved so far; read when time is up, whether or not it has ended."""

    def __init__(self, peer: Peer, until_us: int) -> None:
        parts = urlsplit(peer.url)
        secure = parts.scheme == "https"
        make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        left_s = max(1.0, (until_us - monotonic_us()) / US)
        self.connection = make(parts.hostname or "", parts.port, timeout=left_s)
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.until = until_us
        self.moved = 0
        self.began = self.ended = 0
        self.fault: str | None = None

    @property
    def time_left(self) -> bool:
        """Whether to go on."""
        return monotonic_us() < self.until

    def count(self, size: int) -> None:
        """So many bytes more have moved by now."""
        self.moved += size
        self.ended = monotonic_us()

    def run(self, move: Callable[[_Flow], None]) -> None:
        """Move until the time is up, and turn whatever stands in the way into words."""
        try:
            move(self)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.fault = str(error) or type(error).__name__
        finally:
            self.connection.close()


def _fetch(flow: _Flow) -> None:
    """Read answers of a GET, one after another where they are short."""
    while flow.time_left:
        flow.connection.request("GET", flow.path, headers={"Accept-Encoding": "identity"})
        answer = flow.connection.getresponse()
        if answer.status != http.client.OK:
            raise ValueError(f"a GET was answered {answer.status}")
        flow.began = flow.began or monotonic_us()
        before = flow.moved
        while flow.time_left and (piece := answer.read1(_PIECE)):
            flow.count(len(piece))
        if flow.moved == before or not flow.time_left:
            return


def _send(flow: _Flow) -> None:
    """Post pieces, larger ones while they go quickly; what the server has not taken does not count."""
    size = _PIECE
    content = bytes(_LARGEST_POST)
    flow.began = monotonic_us()
    while flow.time_left:
        began = monotonic_us()
        flow.connection.request("POST", flow.path, memoryview(content)[:size])
        answer = flow.connection.getresponse()
        answer.read()
        if not http.client.OK <= answer.status < http.client.MULTIPLE_CHOICES:
            raise ValueError(f"a POST was answered {answer.status}")
        flow.count(size)
        if monotonic_us() - began < _QUICK_US:
            size = min(2 * size, _LARGEST_POST)


_LATE_S = 4
"""So much longer an answer under way may take on a busy machine."""


def _timed(id: str, peer: Peer, seconds: float, move: Callable[[_Flow], None]) -> HostReading:
    until = monotonic_us() + round(seconds * US)
    flows = [_Flow(peer, until) for _ in range(CONNECTIONS)]
    threads = [threading.Thread(target=each.run, args=(move,), daemon=True) for each in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.1, (until - monotonic_us()) / US + _LATE_S))
    moved = sum(each.moved for each in flows)
    if moved < LEAST:
        fault = next(
            (each.fault for each in flows if each.fault), f"only {moved} bytes came through"
        )
        return reading(id, "Mbit/s", f"{peer.url}: {fault}")
    began = min(each.began for each in flows if each.moved)
    took = max(1, max(each.ended for each in flows) - began)
    return _speed(id, peer, moved, took)


def _speed(id: str, peer: Peer, moved: int, took_us: int) -> HostReading:
    """At least what came through; exactly that where the peer's own line is known to be faster."""
    speed = Fraction(8 * moved, took_us)
    how = f"{moved // 1_000_000} MB in {took_us / US:.1f} s, {CONNECTIONS} connections, {peer.url}"
    if peer.mbit is not None and speed < peer.mbit * _SHARE:
        return reading(id, "Mbit/s", f"{how}, whose line has {peer.mbit} Mbit/s", speed, speed)
    return reading(id, "Mbit/s", f"{how}; the peer may be the slower one", speed, None)
