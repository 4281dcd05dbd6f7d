"""A server process: its state directory, its socket, and how it starts and ends.

Decides that one server at a time uses a state directory (a lock that ends with the process), that it is reachable from other machines
only with TLS, where it writes its process id and address, and that SIGTERM ends it after the requests under way.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any

import uvicorn

from ouvrage.adapters import clock
from ouvrage.adapters.home import make_private, source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.server.app import make_app
from ouvrage.server.context import Platform, Settings
from ouvrage.store.store import open_store

LOCK, PID, ADDRESS = "server.lock", "server.pid", "server.url"
GRACE_SECONDS = 20


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


def refuse_open_door(listen: Listen) -> None:
    """Raise ``OuvrageError`` ``server/no-tls`` where tokens would cross a network in the clear."""
    local = listen.host == "localhost" or ip_address(listen.host).is_loopback
    if not local and listen.certificate is None:
        raise OuvrageError(
            "server/no-tls",
            f"{listen.host} is reached from other machines, and passwords would travel in the clear",
            hint="give --tls own, or a certificate: --tls-certificate FILE --tls-key FILE",
        )


@contextmanager
def state_of(directory: Path) -> Generator[IO[bytes]]:
    """The state directory, made where it is missing, for this process alone. ``server/running`` where another has it."""
    try:
        make_private(directory)
        lock = (directory / LOCK).open("ab")
    except OSError as error:
        raise OuvrageError(
            "server/state",
            f"{directory} cannot be used: {error.strerror}",
            hint="name a directory that you may write to: --state DIR",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OuvrageError(
                "server/running",
                f"a server runs on {directory} already{_as_process(directory)}",
                hint=f"ouvrage down --state {directory}",
            ) from error
        yield lock


def _as_process(directory: Path) -> str:
    number = running_pid(directory)
    return f", as process {number}" if number else ""


def running_pid(directory: Path) -> int | None:
    """The process of the server that runs on a state directory, None where none does."""
    try:
        with (directory / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except FileNotFoundError:
        return None
    except OSError:
        pass  # held: a server runs
    try:
        return int((directory / PID).read_text("ascii"))
    except (OSError, ValueError):
        return None


@contextmanager
def platform_of_state(
    directory: Path, store: str | None, settings: Settings
) -> Generator[Platform]:
    """The platform of a state directory: its store opened and brought up to date, its source known."""
    with open_store(store or directory / "ouvrage.db") as opened:
        yield Platform(
            store=opened,
            source=source_id(directory),
            state_dir=directory,
            clock=clock.now_us,
            monotonic=clock.monotonic_us,
            ids=clock.new_id,
            chance=clock.random_bytes,
            settings=settings,
        )


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


def server_of(platform: Platform, listen: Listen) -> uvicorn.Server:
    """The server of a platform, to be run on sockets of the caller's."""
    tls: dict[str, Any] = {}
    if listen.certificate is not None:
        tls = {"ssl_certfile": str(listen.certificate), "ssl_keyfile": str(listen.key)}
    config = uvicorn.Config(
        make_app(platform),
        log_config=None,
        access_log=False,  # addresses may hold what no log should
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        **tls,
    )
    return _Server(config, platform)


class _Server(uvicorn.Server):
    """A server that first tells whoever waits for something (orders, a log's next line) to stop waiting."""

    def __init__(self, config: uvicorn.Config, platform: Platform) -> None:
        super().__init__(config)
        self._wakes = platform.wakes

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, after the requests under way."""
        self._wakes.close()
        await super().shutdown(sockets)


def serve(platform: Platform, listen: Listen, sock: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; the files that say where are there while it does."""
    directory = platform.state_dir
    server = server_of(platform, listen)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises it once more when it has ended
    try:
        (directory / ADDRESS).write_text(url_of(listen, sock) + "\n", "ascii")
        (directory / PID).write_text(f"{os.getpid()}\n", "ascii")
        server.run(sockets=[sock])
    finally:
        for name in (PID, ADDRESS):
            (directory / name).unlink(missing_ok=True)
