"""How long named peers take to answer, and how far a time server's clock is: a few packets, each with its limit.

Decides how a peer is asked: ``host`` by an echo of ICMP, ``host:port`` by opening a connection and closing it again. A
time server is asked one question of SNTP (RFC 4330) and half the way there and back is taken off. Nobody is asked who was
not named.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable

from ouvrage.adapters.clock import monotonic_us, now_us, random_bytes
from ouvrage.health.links import PeerSeen

QUESTIONS = 4
WAIT_S = 1.0
_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_SINCE_1900_S = 2_208_988_800
_US = 1_000_000


def ask_peer(name: str, questions: int = QUESTIONS) -> PeerSeen:
    """Ask a peer some times, each for a second at most; one that cannot be found was not asked."""
    host, colon, port = name.rpartition(":")
    ask: Callable[[], int | None]
    try:
        if colon and port.isdecimal():
            ask = _connecting(host, int(port))
        else:
            ask = _echoing(socket.gethostbyname(name))
    except OSError:
        return PeerSeen(name=name, asked=0, answered=0, latency_us=None)
    times = [ask() for _ in range(questions)]
    answers = sorted(t for t in times if t is not None)
    middle = answers[len(answers) // 2] if answers else None
    return PeerSeen(name=name, asked=questions, answered=len(answers), latency_us=middle)


def _connecting(host: str, port: int) -> Callable[[], int | None]:
    place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]

    def ask() -> int | None:
        began = monotonic_us()
        with socket.socket(place[0], place[1]) as made:
            made.settimeout(WAIT_S)
            try:
                made.connect(place[4])
            except ConnectionRefusedError:
                pass  # an answer all the same
            except OSError:
                return None
        return monotonic_us() - began

    return ask


def _echoing(address: str) -> Callable[[], int | None]:
    """An echo over the kernel's own sockets for it where they may be used, else a raw one."""
    numbers = iter(range(1, 1 << 16))

    def ask() -> int | None:
        number = next(numbers)
        try:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
        except PermissionError:
            made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        with made:
            return _echo(made, address, number)

    return ask


def _echo(made: socket.socket, address: str, number: int) -> int | None:
    """How long one echo took; answers to others' questions, which a raw socket hears too, are left."""
    own = os.getpid() & 0xFFFF
    body = struct.pack("!HH", own, number) + random_bytes(16)
    began = monotonic_us()
    made.sendto(_packet(body), (address, 0))
    while (left := WAIT_S - (monotonic_us() - began) / _US) > 0:
        if not select.select([made], [], [], left)[0]:
            return None
        data = made.recv(2048)
        if made.type == socket.SOCK_RAW:
            data = data[(data[0] & 15) * 4 :]
        if data[0] == _ECHO_REPLY and data[8:] == body[4:]:
            return monotonic_us() - began
    return None


def _packet(body: bytes) -> bytes:
    head = struct.pack("!BBH", _ECHO_REQUEST, 0, 0)
    total = sum(struct.unpack(f"!{len(head + body) // 2}H", head + body))
    total = (total >> 16) + (total & 0xFFFF)
    total += total >> 16
    return struct.pack("!BBH", _ECHO_REQUEST, 0, ~total & 0xFFFF) + body


def clock_ahead_us(server: str) -> int | None:
    """By how much this clock is ahead of a time server's, None where it does not answer."""
    host, colon, port = server.rpartition(":")
    place = (host, int(port)) if colon and port.isdecimal() else (server, 123)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.settimeout(WAIT_S)
            began = now_us()
            made.sendto(b"\x23" + bytes(47), place)
            data, _ = made.recvfrom(512)
            ended = now_us()
    except OSError:
        return None
    if len(data) < 48 or data[1] == 0:  # stratum 0: it is not synchronised itself
        return None
    received, sent = (_moment(data[at : at + 8]) for at in (32, 40))
    return ((began - received) + (ended - sent)) // 2


def _moment(stamp: bytes) -> int:
    seconds, fraction = struct.unpack("!II", stamp)
    return (seconds - _SINCE_1900_S) * _US + (fraction * _US >> 32)
