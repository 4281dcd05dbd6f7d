"""``ouvrage shell`` and ``forward``: into a running attempt of one's own.

Decides how a terminal here becomes one inside the sandbox: its keys go through as they are, its size follows, its end is the command's,
exit code and all. A shell into a lease is a job that does nothing else and ends with the shell.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from ouvrage.adapters.stream_client import Line, dial
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.entering import entered, frames_of, in_address
from ouvrage.cli.output import say_bytes, say_text, wrote
from ouvrage.cli.talking import server_meant, talk
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Size, Terminal, frame

_BLOCK = 1 << 16
_LOOK_S = 0.5
_LEASED = "exec sleep 604800"


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("job", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--lease", metavar="LEASE", help="Start one in a lease of your own; it ends with the shell."
)
@click.option("--project", metavar="NAME", default="main", help="Whose lease it is (main).")
@click.pass_context
def shell(
    ctx: click.Context, job: str | None, command: tuple[str, ...], lease: str | None, project: str
) -> None:
    """A terminal inside JOB, which runs now; COMMAND in place of a shell.

    The exit code is the command's. `--` stands before a command with options of its own.
    """
    if lease is not None:
        words = ([job] if job else []) + list(command)
        ctx.exit(_in_lease(lease, project, words))
    if job is None:
        raise OuvrageError(
            "shell/where",
            "no job is named",
            hint="ouvrage shell JOB, or ouvrage shell --lease LEASE",
        )
    ctx.exit(_terminal(job, list(command)))


def _in_lease(lease: str, project: str, command: list[str]) -> int:
    """A job that holds a place in the lease, a terminal in it, and its end."""
    spec = {"name": "shell", "command": _LEASED, "grace": "1 s"}
    with talk() as server:
        made = server.post("/v1/jobs", {"project": project, "lease": lease, "spec": spec})
        try:
            _until_running(server, made["job"])
            return _terminal(made["job"], command)
        finally:
            server.post(f"/v1/jobs/{made['job']}/cancel", {"why": "its shell has ended"})
            wrote()


def _until_running(server: Any, job: str) -> None:
    told = False
    while (found := server.get(f"/v1/jobs/{job}"))["state"] != "running":
        if found["ended_us"]:
            raise OuvrageError("shell/not-started", f"it did not start: {found['reason']}")
        if not told and found["state"] == "waiting":
            say_text(server.get(f"/v1/jobs/{job}/explain")["words"], err=True)
            told = True
        threading.Event().wait(_LOOK_S)


def _terminal(job: str, command: list[str]) -> int:
    term = os.environ.get("TERM", "dumb")
    line = entered(job, Terminal(command=command, term=term or "dumb", size=_size()))
    try:
        with _raw(), _following_size(line):
            threading.Thread(target=_typed, args=(line,), daemon=True).start()
            done = _shown(line)
    finally:
        line.close()
    if done is None:
        raise OuvrageError(
            "shell/ended",
            "the stream has ended before the command did",
            hint="ouvrage job show",
            exit_code=1,
        )
    if done.fault:
        raise OuvrageError("shell/refused", done.fault, exit_code=1)
    return done.code


def _size() -> Size:
    """The terminal's own size: COLUMNS may be left over from another one, and does not follow."""
    try:
        columns, rows = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)


@contextmanager
def _raw() -> Iterator[None]:
    """Every key goes through as it is, where there are keys."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead counts
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def _following_size(line: Line) -> Iterator[None]:
    """Tell every new size. Not from the signal's handler: it may interrupt a thread that holds what sending needs."""
    reads, writes = os.pipe()

    def tell() -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while os.read(reads, _BLOCK):
                line.send(frame(inside.SIZE, _size().model_dump_json().encode()))

    before = signal.signal(signal.SIGWINCH, lambda *_: os.write(writes, b"w"))
    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(writes)
        thread.join(1)
        os.close(reads)


def _typed(line: Line) -> None:
    """Pass on what is typed; the end of a file is what the terminal makes of Ctrl-D."""
    with contextlib.suppress(ConnectionError, OSError):
        while data := os.read(0, _BLOCK):
            line.send(frame(inside.DATA, data))
        line.send(frame(inside.DATA, b"\x04"))


def _shown(line: Line) -> Done | None:
    """Show what the command shows; how it ended, None where nobody said."""
    for sort, body in frames_of(line):
        if sort == inside.DATA:
            say_bytes(body)
        elif sort == inside.DONE:
            return Done.model_validate_json(body)
    return None


# Ports


@click.command()
@click.argument("job")
@click.argument("ports", metavar="PORT[:LOCAL]")
def forward(job: str, ports: str) -> None:
    """Listen on a port of this machine's loopback for one inside JOB, until Ctrl-C."""
    inner, _, local = ports.partition(":")
    if (
        not inner.isdigit()
        or not (local or "0").isdigit()
        or not 0 < int(inner) < 65536 > int(local or 0)
    ):
        raise OuvrageError(
            "forward/port", f"{ports!r} is no pair of ports", hint="8888, or 8888:9999"
        )
    server, path = server_meant(), f"/v1/jobs/{in_address(job)}/ports/{inner}"
    try:
        listening = socket.create_server(("127.0.0.1", int(local or inner)))
    except OSError as error:
        raise OuvrageError(
            "forward/taken",
            f"127.0.0.1:{local or inner}: {error.strerror}",
            hint=f"{inner}:0 takes any free port",
        ) from error
    with listening:
        port = listening.getsockname()[1]
        say_text(f"http://127.0.0.1:{port} is port {inner} inside {job}; Ctrl-C ends it")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                each, _ = listening.accept()
                threading.Thread(
                    target=_joined, args=(each, lambda: dial(server, path)), daemon=True
                ).start()


def _joined(here: socket.socket, dialled: Callable[[], Line]) -> None:
    """One connection, joined to one inside."""
    with here:
        try:
            line = dialled()
        except OuvrageError as error:
            say_text(f"error[{error.code}]: {error.message}", err=True)
            return
        thread = threading.Thread(target=_sent, args=(here, line), daemon=True)
        thread.start()
        with contextlib.suppress(OSError):
            for piece in line.pieces():
                here.sendall(piece)
            here.shutdown(socket.SHUT_WR)
        thread.join(30)
        line.close()


def _sent(here: socket.socket, line: Line) -> None:
    with contextlib.suppress(OSError):
        while data := here.recv(_BLOCK):
            line.send(data)
        line.end()
