"""A server process: its state directory, and how it begins, serves and ends.

Decides that one server at a time uses a state directory (a lock that ends with the process), where it writes its process id and
address, and that SIGTERM ends it after the requests under way. Where it listens is ``starting``'s.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import structlog
import uvicorn

from ouvrage.adapters import clock
from ouvrage.adapters.home import make_private, source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.server.app import make_app
from ouvrage.server.context import Platform, Settings
from ouvrage.server.errors import CutOff
from ouvrage.server.listening import Listen, Start, checked
from ouvrage.server.own_runner import OwnRunner
from ouvrage.server.services.first_start import prepare
from ouvrage.server.starting import bound, settings_of, url_of, with_certificate
from ouvrage.server.work_limits import WorkLimits
from ouvrage.store.store import open_store
from ouvrage.wire.tunnel import STALLED_S

LOCK, PID, ADDRESS = "server.lock", "server.pid", "server.url"
GRACE_SECONDS = 20
KEEP_ALIVE_SECONDS = 60
"""An agent posts every ten seconds: it keeps its connection, and TLS its secrets."""


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
    directory: Path, store: str | None, settings: Settings, shared: Path | None = None
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
            shared_dir=None if shared is None else make_private(shared),
            limits=WorkLimits(several=opened.engine.dialect.name != "sqlite"),
        )


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
        proxy_headers=platform.settings.behind_proxy,
        forwarded_allow_ips="127.0.0.1,::1",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ws_ping_timeout=STALLED_S,
        **tls,
    )
    logging.getLogger("uvicorn.error").addFilter(_worth_telling)
    return _Server(config, platform)


def _worth_telling(record: logging.LogRecord) -> bool:
    """Whatever a service breaks off would fill the log with our own stack."""
    return record.exc_info is None or not isinstance(record.exc_info[1], CutOff)


def settle() -> None:
    """Take what stands for as long as the server out of the collector's rounds: each of them would hold up a request."""
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """A server that first tells whoever waits for something (orders, a log's next line) to stop waiting."""

    def __init__(self, config: uvicorn.Config, platform: Platform) -> None:
        super().__init__(config)
        self._wakes = platform.wakes

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, after the requests under way."""
        self._wakes.close()
        await super().shutdown(sockets)


def log_to_stderr() -> None:
    """Log as lines of JSON on standard error: events by name, with fields, and no secret among them."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A server that is ready: its platform, its socket, its address, and the first start's ``password``."""

    start: Start
    platform: Platform
    listen: Listen
    sock: socket.socket
    url: str
    password: str | None


@contextmanager
def opened(start: Start) -> Generator[Opened]:
    """Everything that a server needs, held until it ends; what must be refused is refused before anything is written."""
    listen = checked(start)
    with state_of(start.state):
        secured = with_certificate(start, listen)
        settings = settings_of(start, secured)
        with (
            platform_of_state(start.state, start.store, settings, start.files) as platform,
            bound(secured) as sock,
        ):
            password = prepare(platform, currency=start.currency).password
            yield Opened(
                start=start,
                platform=platform,
                listen=secured,
                sock=sock,
                url=url_of(secured, sock),
                password=password,
            )


def serve(server: Opened, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. ``ready`` is called once both would be heard and the files say where this is."""
    directory = server.platform.state_dir
    log_to_stderr()
    web = server_of(server.platform, server.listen)

    def end(_number: int, _frame: object) -> None:
        web.should_exit = (
            True  # before uvicorn listens to signals itself, and after: it raises them once more
        )

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    ca = server.listen.certificate if server.start.tls is None else directory / "tls/ca.pem"
    runner = (
        None
        if server.start.no_runner or server.platform.settings.slurm is not None
        else OwnRunner(
            server.platform, server.url, ca, server.start.see, watch=not server.start.no_agent
        )
    )
    try:
        (directory / ADDRESS).write_text(f"{server.url}\n", "ascii")
        (directory / PID).write_text(f"{os.getpid()}\n", "ascii")
        ready()
        if runner is not None:
            runner.start()
        settle()
        web.run(sockets=[server.sock])
    finally:
        if runner is not None:
            runner.stop()
        for name in (PID, ADDRESS):
            (directory / name).unlink(missing_ok=True)
