"""How a server was asked to start: where it listens, with which certificate, on which store.

Decides which places can be listened at, that a server is reachable from other machines only with TLS, and what a start is when it is
repeated in a process of its own.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.server.configuration import configured
from ouvrage.server.context import Settings
from ouvrage.server.tls import check_pair, own_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What `ouvrage up` was told; ``tls`` is ``own`` or None."""

    state: Path
    listen: str = "127.0.0.1:0"
    store: str | None = None
    tls: str | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    currency: str = "EUR"
    no_runner: bool = False

    def arguments(self, listen: str) -> list[str]:
        """The same as arguments of the command, less the address of the store."""
        words = ["--state", str(self.state), "--listen", listen, "--currency", self.currency]
        for name, value in (
            ("--tls", self.tls),
            ("--tls-certificate", self.tls_certificate),
            ("--tls-key", self.tls_key),
        ):
            words += [name, str(value)] if value else []
        words += ["--behind-proxy"] if self.behind_proxy else []
        return words + (["--no-runner"] if self.no_runner else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where a server listens, and the files of its certificate (None: plain HTTP)."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        """``http`` or ``https``."""
        return "https" if self.certificate else "http"


def listen_of(text: str) -> Listen:
    """``127.0.0.1:8680`` or ``[::1]:8680`` as a place to listen at. ``OuvrageError`` ``server/listen`` for others."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        ip_address("127.0.0.1" if bare == "localhost" else bare)
        number = int(port)
    except ValueError:
        number = -1
    if not colon or not 0 <= number < 65536:
        raise OuvrageError(
            "server/listen",
            f"{text!r} is no address to listen at",
            hint="write 127.0.0.1:8680 or [::1]:8680; 0.0.0.0:8680 for every network",
        )
    return Listen(host=bare, port=number)


def refuse_open_door(start: Start, listen: Listen) -> None:
    """Raise ``OuvrageError`` ``server/no-tls`` where tokens would cross a network in the clear."""
    local = listen.host == "localhost" or ip_address(listen.host).is_loopback
    if not local and not start.tls and not start.tls_certificate:
        raise OuvrageError(
            "server/no-tls",
            f"{listen.host} is reached from other machines, and passwords would travel in the clear",
            hint="give --tls own, or a certificate of yours: --tls-certificate FILE --tls-key FILE",
        )


def with_certificate(start: Start, listen: Listen) -> Listen:
    """The place with the certificate that was asked for, made where it is one of our own."""
    certificate, key = start.tls_certificate, start.tls_key
    if start.tls and (certificate or key):
        raise OuvrageError("tls/which", "--tls own and a certificate of yours exclude one another")
    if bool(certificate) != bool(key):
        raise OuvrageError(
            "tls/pair", "a certificate needs its key", hint="--tls-certificate FILE --tls-key FILE"
        )
    if start.tls:
        certificate, key = own_certificate(start.state, listen.host, now_us())
    if certificate and key:
        check_pair(certificate, key)
    return replace(listen, certificate=certificate, key=key)


def settings_of(start: Start, listen: Listen) -> Settings:
    """The settings of a server that was started so, with what ``server.toml`` says."""
    secure = listen.certificate is not None or start.behind_proxy
    return configured(start.state, secure=secure, behind_proxy=start.behind_proxy)


def bound(listen: Listen) -> socket.socket:
    """A socket that listens there, before anything is served, so that a taken port is told at once."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once; else each waits 40 ms for an acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((listen.host, listen.port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise OuvrageError(
            "server/listen",
            f"{listen.host}:{listen.port} cannot be listened at: {error.strerror}",
            hint="another program may have it: --listen 127.0.0.1:0 takes any free port",
        ) from error
    return sock


def url_of(listen: Listen, sock: socket.socket) -> str:
    """The address of a server on a socket."""
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"{listen.scheme}://{host}:{sock.getsockname()[1]}"
