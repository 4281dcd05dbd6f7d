"""How a server was asked to start and where it is to listen, judged before anything is loaded or written.

Decides which places can be listened at, that a server is reached from other machines only with TLS, that a certificate comes with its
key, and what a start is when it is repeated in a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from ouvrage.base.errors import OuvrageError


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
    no_agent: bool = False
    see: tuple[Path, ...] = ()
    rented: bool = False
    rate: str | None = None
    files: Path | None = None

    def arguments(self) -> list[str]:
        """The same as arguments of the command, less the address of the store."""
        words = ["--state", str(self.state), "--listen", self.listen, "--currency", self.currency]
        for name, value in (
            ("--tls", self.tls),
            ("--tls-certificate", self.tls_certificate),
            ("--tls-key", self.tls_key),
            ("--files", self.files),
        ):
            words += [name, str(value)] if value else []
        words += ["--behind-proxy"] if self.behind_proxy else []
        words += [word for path in self.see for word in ("--see", str(path))]
        words += ["--rented", "--rate", self.rate] if self.rented and self.rate else []
        words += ["--no-agent"] if self.no_agent else []
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


def checked(start: Start) -> Listen:
    """Where to listen. ``OuvrageError`` where the start cannot be as it was asked for."""
    listen = listen_of(start.listen)
    refuse_open_door(start, listen)
    if start.rented != bool(start.rate):
        raise OuvrageError(
            "rented/rate",
            "a rented machine and what it costs go together",
            hint="--rented --rate 0.44/h, or --rate PLAN for a rate plan's name or file",
        )
    if start.rate is not None:
        from ouvrage.server.starting import rented_at  # it loads much more than others need

        rented_at(start.rate)
    if start.tls and (start.tls_certificate or start.tls_key):
        raise OuvrageError(
            "tls/which",
            "--tls own and a certificate of yours exclude one another",
            hint="leave one of them out",
        )
    if bool(start.tls_certificate) != bool(start.tls_key):
        raise OuvrageError(
            "tls/pair", "a certificate needs its key", hint="--tls-certificate FILE --tls-key FILE"
        )
    return listen
