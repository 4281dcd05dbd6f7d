"""From how a server was asked to start to what it needs: a certificate, settings, a socket.

Decides that a certificate of our own is made where it is missing and that any other is tried before it is used; a taken port is told
before anything is served.
"""

from __future__ import annotations

import socket
from dataclasses import replace

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import parse_price, written
from ouvrage.base.time import HOUR
from ouvrage.server.configuration import configured
from ouvrage.server.context import Rented, Settings
from ouvrage.server.listening import Listen, Start
from ouvrage.server.tls import check_pair, own_certificate


def with_certificate(start: Start, listen: Listen) -> Listen:
    """The place with the certificate that was asked for, made where it is one of our own."""
    certificate, key = start.tls_certificate, start.tls_key
    if start.tls:
        certificate, key = own_certificate(start.state, listen.host, now_us())
    if certificate and key:
        check_pair(certificate, key)
    return replace(listen, certificate=certificate, key=key)


def settings_of(start: Start, listen: Listen) -> Settings:
    """The settings of a server that was started so, with what ``server.toml`` says."""
    secure = listen.certificate is not None or start.behind_proxy
    settings = configured(start.state, secure=secure, behind_proxy=start.behind_proxy)
    return settings if start.rate is None else replace(settings, rented=rented_at(start.rate))


def rented_at(rate: str) -> Rented:
    """What a rented machine costs, from a price such as ``0.44/h``, or a rate plan's name or file."""
    named = written(rate)
    if named is None:
        _, plan = frozen_plan(rate)
        return Rented(plan=plan, rate=None, currency=None)
    hourly = parse_price(rate).cost_of(HOUR)
    _, plan = frozen_plan("per-second")
    return Rented(plan=plan, rate=decimal_text(hourly), currency=named.currency)


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
