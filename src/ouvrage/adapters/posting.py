"""One POST to an address that a stranger named: delivered, or in words why not.

Decides where such a request may go. The name is looked up once and the connection made to what was found, so that a name cannot mean one thing when it
is judged and another when it is used; every address found must be one of the open Internet, or in a network that the owner allowed. No redirect is
followed, no proxy of the environment's used, and nothing of the answer is read but its status, within a bounded time: whoever answers a byte
at a time, or for ever that the real answer is yet to come, would hold up everybody else's.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ouvrage import __version__
from ouvrage.adapters.clock import monotonic_us
from ouvrage.base.time import SECOND

TIMEOUT_S, ANSWER_S = 10.0, 15.0
"""How long one step may take, and all of them from the connection to the answer's first line."""
LONGEST = 2000
_LOWEST_PORT = 1024
_WELL_KNOWN = frozenset((80, 443))
_AGENT = f"ouvrage/{__version__} (webhook)"
_MOST_READ = 16_384
_ANSWER = re.compile(rb"(?:\A|\r\n\r\n)HTTP/1\.[01] ([1-5]\d\d)[ \r]")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What came of it: the answer's ``status``, or None and why there was none."""

    status: int | None
    words: str


def signature(secret: str, body: bytes, at_s: int) -> str:
    """What proves that a body is ours, and of that second."""
    mac = hmac.new(secret.encode(), b"%d." % at_s + body, hashlib.sha256)
    return f"t={at_s},v1={mac.hexdigest()}"


def fault_of(url: str) -> str | None:
    """What is wrong with an address before anything is looked up; None for a good one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "it is no address"
    if (
        len(url) > LONGEST
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or "\\" in url
    ):
        return "it holds what no address holds"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "it begins with https:// and the name of a host"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "it may hold neither a user nor a fragment"
    if port is not None and port not in _WELL_KNOWN and port < _LOWEST_PORT:
        return f"ports below {_LOWEST_PORT} are other services', but 80 and 443"
    return None


def post(url: str, body: bytes, headers: Mapping[str, str], allowed: Sequence[Network]) -> Posted:
    """Send it once. ``allowed`` are networks beside the open Internet, and those to which plain HTTP may go."""
    fault = fault_of(url)
    if fault:
        return Posted(status=None, words=fault)
    parts = urlsplit(url)
    try:
        address = _reachable(parts, allowed)
        return _sent(parts, address, body, headers)
    except _Barred as barred:
        return Posted(status=None, words=str(barred))
    except (OSError, http.client.HTTPException, ValueError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return Posted(status=None, words=(words or type(error).__name__)[:200])


class _Barred(Exception):
    """It leads where nothing of ours goes."""


def _reachable(parts: SplitResult, allowed: Sequence[Network]) -> Address:
    """The address to connect to; all that the name means are judged, since any of them could have been taken."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    if not addresses:
        raise _Barred("its name means nothing")
    own = [_within(each, allowed) for each in addresses]
    for each, ours in zip(addresses, own, strict=True):
        if not ours and not is_open(each):
            raise _Barred(f"its name means {each}, which is no address of the open Internet")
    if parts.scheme == "http" and not all(own):
        raise _Barred("it must be https://, so that nobody between reads or changes what is sent")
    return addresses[0]


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == each.version and address in each for each in networks)


def is_open(address: Address) -> bool:
    """Whether an address is one of the open Internet, also where another stands inside it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_open(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def _sent(parts: SplitResult, address: Address, body: bytes, headers: Mapping[str, str]) -> Posted:
    assert parts.hostname is not None
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    line = http.client.HTTPConnection(parts.hostname, port, timeout=TIMEOUT_S)
    made = socket.create_connection((str(address), port), TIMEOUT_S)
    until_us = monotonic_us() + round(ANSWER_S * SECOND)
    try:
        if secure:
            made = ssl.create_default_context().wrap_socket(made, server_hostname=parts.hostname)
        line.sock = made
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        told = {"Content-Type": "application/json", "User-Agent": _AGENT, **headers}
        line.request("POST", target, body, {**told, "Connection": "close"})
        status = _status(made, until_us)
    finally:
        made.close()
    words = "a redirect, which is not followed" if 300 <= status < 400 else f"status {status}"
    return Posted(status=status, words=words)


def _status(made: socket.socket, until_us: int) -> int:
    """The answer's status, from its first line; what only announces it (1xx) is passed over. ``OSError``, ``ValueError``."""
    begun = b""
    while len(begun) < _MOST_READ:
        left = (until_us - monotonic_us()) / SECOND
        if left <= 0:
            break
        made.settimeout(left)
        piece = made.recv(_MOST_READ - len(begun))
        begun += piece
        for found in _ANSWER.finditer(begun):
            if not found[1].startswith(b"1"):
                return int(found[1])
        if not piece:
            raise ValueError("it closed without an answer")
        if not begun.startswith(b"HTTP/1."[: len(begun)]):
            raise ValueError("what it answers is no HTTP")
    raise TimeoutError(f"it gave no answer within {ANSWER_S:g} s")
