"""A process beside a sandbox that lets somebody in: a terminal, or a file in or out.

Decides that what is done inside is done by a process that is inside altogether (``adapters/enter``), as the tenant's own program is:
a link or a ``..`` leads nowhere that the tenant could not go anyway, and even those are refused. This process itself stays outside, touches nothing of the tenant's, and passes
frames on. It ends when either side does, and what it let in ends with it.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import stat
import struct
import sys
import termios
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from ouvrage.adapters.beneath import open_below, put_below
from ouvrage.adapters.enter import Entrance, become_one_of_them, children_enter
from ouvrage.adapters.sandbox_cgroup import beside, group
from ouvrage.adapters.trees import LeftOut, Planting, entries_below, plant_below
from ouvrage.agent.entered_ssh import serve_ssh
from ouvrage.agent.supervisor import commands_in
from ouvrage.wire import inside
from ouvrage.wire.inside import (
    MOST_LEFT,
    Done,
    Entry,
    Frames,
    Put,
    Size,
    Ssh,
    Take,
    Terminal,
    Wanted,
    frame,
)

_BLOCK = 1 << 16
_HANGUP_S = 5.0
_TYPED_AHEAD = 1 << 18
"""Bytes that wait to be typed before no more are listened to."""
_FIRST = {"sandbox": 2, "podman": 1}
"""The number of the command among its sandbox's processes: bubblewrap has one of its own before it."""
_SHELL = ["/bin/sh", "-c", 'exec "$(command -v bash || echo /bin/sh)"']


def main(_arguments: Sequence[str]) -> int:
    """The process: what sandbox, and the stream's descriptor, come over standard input."""
    told = json.loads(sys.stdin.read())
    stream = socket.socket(fileno=told["stream"])
    try:
        _serve(stream, told)
    except (ConnectionError, BrokenPipeError):
        return 1
    except (OSError, ValueError, LookupError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        _say(stream, inside.DONE, Done(code=1, fault=words))
    return 0


def _serve(stream: socket.socket, told: dict[str, Any]) -> None:
    within = group(told["group"])
    pids = commands_in(within.processes(), _FIRST[told["isolation"]])
    if not pids:
        raise LookupError("the command does not run any more")
    entrance = Entrance.of(pids[0], beside(pids[0]))
    if not entrance.own_user() or pids[0] not in within.processes():
        raise LookupError("the sandbox could not be entered")
    frames = Frames()
    wanted, rest = _wanted(stream, frames)
    children_enter(entrance)
    if isinstance(wanted, Terminal):
        _terminal(stream, entrance, told["workdir"], wanted, frames, rest)
    elif isinstance(wanted, Ssh):
        _ssh(stream, entrance, wanted)
    else:
        _file(stream, entrance, told["workdir"], wanted, frames, rest)


def _wanted(
    stream: socket.socket, frames: Frames
) -> tuple[Terminal | Take | Put | Ssh, list[tuple[int, bytes]]]:
    """What is asked for, and what came right behind it."""
    got: list[tuple[int, bytes]] = []
    while not got:
        data = stream.recv(_BLOCK)
        if not data:
            raise ConnectionError("nobody asks any more")
        got += frames.take(data)
    (sort, body), *rest = got
    if sort != inside.WANTED:
        raise ValueError("the first frame says nothing that is wanted")
    try:
        return Wanted.model_validate_json(body).what, rest
    except ValidationError as error:
        raise ValueError("what is wanted could not be read") from error


def _say(stream: socket.socket, sort: int, told: Done) -> None:
    stream.sendall(frame(sort, told.model_dump_json().encode()))


# A terminal


def _terminal(
    stream: socket.socket,
    entrance: Entrance,
    workdir: str,
    wanted: Terminal,
    frames: Frames,
    rest: list[tuple[int, bytes]],
) -> None:
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        _be_inside(lambda: _run(entrance, workdir, wanted, theirs, stream.fileno()))
    theirs.close()
    try:
        master = _received(ours)
        carried = _Terminal(stream, master, child)
        for sort, body in rest:
            carried.take(sort, body)
        code = carried.until_over(frames)
    except ChildProcessError:
        code = _ended(child)
        raise OSError(f"the command could not be started (exit code {code})") from None
    _say(stream, inside.DONE, Done(code=code))


def _run(
    entrance: Entrance, workdir: str, wanted: Terminal, theirs: socket.socket, stream: int
) -> None:
    """Inside: a terminal of the sandbox's own, its other end handed out, then the command on it."""
    os.close(stream)
    become_one_of_them(entrance)
    os.setsid()
    master, slave = pty.openpty()
    _resize(master, wanted.size)
    told = array.array("i", [master])
    theirs.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, told)])
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    os.chdir(workdir)
    for number in (0, 1, 2):
        os.dup2(slave, number)
    os.closerange(3, 256)
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    command = wanted.command or _SHELL
    environment = {**entrance.environment, "TERM": wanted.term}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 -- no shell is the point
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _received(ours: socket.socket) -> int:
    """The descriptor that the child hands out. ``ChildProcessError`` where it ended without."""
    size = array.array("i").itemsize
    _, told, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(size))
    ours.close()
    if not told:
        raise ChildProcessError
    return array.array("i", told[0][2][:size])[0]


class _Terminal:
    """Passes between a stream and a terminal until the command on it has ended, or nobody is there.

    It never waits for the terminal to take what was typed: a program that reads nothing, or first wants to be read, would hold both up.
    """

    def __init__(self, stream: socket.socket, master: int, child: int) -> None:
        self._stream = stream
        self._master = master
        self._child = child
        self._typed = bytearray()
        self._shows = True
        os.set_blocking(master, False)

    def take(self, sort: int, body: bytes) -> None:
        if sort == inside.DATA:
            self._typed += body
        elif sort == inside.SIZE:
            _resize(self._master, Size.model_validate_json(body))

    def until_over(self, frames: Frames) -> int:
        """The command's exit code."""
        ended = os.pidfd_open(self._child)
        try:
            while ended not in (ready := self._ready(ended)):
                if ready.get(self._master, 0) & select.POLLOUT:
                    self._type()
                if ready.get(self._master, 0) & ~select.POLLOUT:
                    self._shows = self._shown()
                if self._stream.fileno() in ready:
                    self._hear(frames)
            while select.select([self._master], [], [], 0)[0] and self._shown():
                continue
        except ConnectionError:
            self._hang_up(ended)
            raise
        finally:
            os.close(ended)
        return _ended(self._child)

    def _ready(self, ended: int) -> dict[int, int]:
        """What there is to do, by descriptor. With much still to be typed, no more is listened to than that somebody hangs up."""
        asked = select.poll()
        asked.register(ended, select.POLLIN)
        asked.register(self._stream, select.POLLIN if len(self._typed) < _TYPED_AHEAD else 0)
        if self._shows:
            asked.register(self._master, select.POLLIN | (select.POLLOUT if self._typed else 0))
        return dict(asked.poll())

    def _type(self) -> None:
        with contextlib.suppress(OSError):
            del self._typed[: os.write(self._master, self._typed[:_BLOCK])]

    def _shown(self) -> bool:
        """Pass on what the terminal shows; False once nobody writes to it."""
        try:
            data = os.read(self._master, _BLOCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            self._stream.sendall(frame(inside.DATA, data))
        return bool(data)

    def _hear(self, frames: Frames) -> None:
        data = self._stream.recv(_BLOCK)
        if not data:
            raise ConnectionError("nobody is there any more")
        for sort, body in frames.take(data):
            with contextlib.suppress(OSError, ValidationError):
                self.take(sort, body)

    def _hang_up(self, ended: int) -> None:
        """As when a line is cut: its programs are told, and killed where they stay."""
        os.close(self._master)
        if not select.select([ended], [], [], _HANGUP_S)[0]:
            os.kill(self._child, signal.SIGKILL)


def _resize(terminal: int, size: Size) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


# OpenSSH


def _ssh(stream: socket.socket, entrance: Entrance, wanted: Ssh) -> None:
    child = os.fork()
    if not child:
        _be_inside(lambda: serve_ssh(stream, entrance, wanted))
    stream.close()  # its other end is to end when the server's does
    _ended(child)


# A file


def _file(
    stream: socket.socket,
    entrance: Entrance,
    workdir: str,
    wanted: Take | Put,
    frames: Frames,
    rest: list[tuple[int, bytes]],
) -> None:
    child = os.fork()
    if not child:
        _be_inside(lambda: _copied(entrance, workdir, wanted, stream, frames, rest))
    _ended(child)


def _copied(
    entrance: Entrance,
    workdir: str,
    wanted: Take | Put,
    stream: socket.socket,
    frames: Frames,
    rest: list[tuple[int, bytes]],
) -> None:
    """Inside: the file itself."""
    become_one_of_them(entrance)
    path = _below(wanted.path, workdir)
    try:
        if isinstance(wanted, Take):
            done = (_tree_out if wanted.tree else _out)(stream, workdir, path)
        elif wanted.tree:
            done = _tree_in(stream, workdir, path, frames, rest)
        else:
            done = _in(stream, workdir, path, wanted, frames, rest)
    except FileNotFoundError:
        done = Done(code=1, fault="it is not there")
    except (OSError, ValueError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        done = Done(code=1, fault=words)
    _say(stream, inside.DONE, done)


def _below(path: str, workdir: str) -> str:
    """A path as one below the scratch space; an absolute one must lie there."""
    return path.removeprefix(f"{workdir}/") if path.startswith("/") else path


def _out(stream: socket.socket, workdir: str, path: str) -> Done:
    with os.fdopen(open_below(workdir, path), "rb") as file:
        executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
        while data := file.read(_BLOCK):
            stream.sendall(frame(inside.DATA, data))
    return Done(code=0, executable=executable)


def _in(
    stream: socket.socket,
    workdir: str,
    path: str,
    wanted: Put,
    frames: Frames,
    rest: list[tuple[int, bytes]],
) -> Done:
    with put_below(workdir, path, executable=wanted.executable) as file:
        for sort, body in _coming(stream, frames, rest):
            if sort == inside.DATA:
                file.write(body)
            elif sort == inside.OVER:
                return Done(code=0)
    raise AssertionError


def _coming(
    stream: socket.socket, frames: Frames, rest: list[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """The frames that come. ``ConnectionError`` where they stop."""
    yield from rest
    while data := stream.recv(_BLOCK):
        yield from frames.take(data)
    raise ConnectionError("it broke off")


# A directory


def _tree_out(stream: socket.socket, workdir: str, path: str) -> Done:
    left: list[str] = []
    left_out = 0
    for each in entries_below(workdir, path):
        if isinstance(each, LeftOut):
            left_out += 1
            left += [f"{each.path} ({each.sort})"] if left_out <= MOST_LEFT else []
            continue
        directory = each.descriptor is None
        entry = Entry(path=each.path, directory=directory, executable=each.executable)
        stream.sendall(frame(inside.ENTRY, entry.model_dump_json().encode()))
        if each.descriptor is not None:
            with os.fdopen(each.descriptor, "rb") as file:
                while data := file.read(_BLOCK):
                    stream.sendall(frame(inside.DATA, data))
    return Done(code=0, left=left, left_out=left_out)


def _tree_in(
    stream: socket.socket,
    workdir: str,
    path: str,
    frames: Frames,
    rest: list[tuple[int, bytes]],
) -> Done:
    with plant_below(workdir, path) as planting:
        for sort, body in _coming(stream, frames, rest):
            if sort == inside.OVER:
                return Done(code=0)
            _planted(planting, sort, body)
    raise AssertionError


def _planted(planting: Planting, sort: int, body: bytes) -> None:
    if sort == inside.DATA:
        planting.write(body)
    elif sort == inside.ENTRY:
        told = Entry.model_validate_json(body)
        planting.entry(told.path, directory=told.directory, executable=told.executable)


# Both


def _be_inside(act: Any) -> None:
    """In the fork: do it, and never return."""
    code = 126
    try:
        act()
        code = 0
    except BaseException:  # noqa: BLE001 -- a forked child must not return
        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _ended(child: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
