"""OpenSSH's server inside a sandbox, for one connection: started there, as the tenant, on the stream itself.

Decides that nothing of it stands outside: it is the program of the tenant's own image, run as the job's user without any right, with a host key that its
asker made, and it ends with its connection. Whoever it lets in could have entered anyway (``server/routes/inside``); keys are what OpenSSH's clients
show, so they are asked for. Its files lie in the sandbox's ``/tmp`` while it runs.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ouvrage.adapters.bubblewrap import TMP
from ouvrage.adapters.enter import Entrance, become_one_of_them
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Ssh, frame

_PATH = "/usr/sbin:/usr/local/sbin:/sbin:/usr/bin:/bin"
_USERS = "/etc/passwd"
_LONGEST_USERS = 1 << 20
_OF_THE_LOGIN = frozenset(("HOME", "USER", "LOGNAME", "SHELL", "TERM", "MAIL", "PWD", "SHLVL", "_"))
_SETTINGS = """\
HostKey {at}/host
AuthorizedKeysFile {at}/keys
AuthenticationMethods publickey
StrictModes no
UsePAM no
PidFile none
PrintMotd no
PrintLastLog no
X11Forwarding no
PermitTunnel no
Subsystem sftp internal-sftp
LogLevel QUIET
{environment}
"""


def serve_ssh(stream: socket.socket, entrance: Entrance, wanted: Ssh) -> None:
    """Inside, in a fork: be the server's parent until it ends. Says first that it starts, or why it does not."""
    become_one_of_them(entrance)
    program = shutil.which("sshd", path=_PATH)
    fault = _fault(program, wanted.user)
    if program is None or fault is not None:
        stream.sendall(frame(inside.DONE, Done(code=1, fault=fault).model_dump_json().encode()))
        return
    at = Path(tempfile.mkdtemp(prefix=".ssh-", dir=TMP))
    try:
        _put(at / "host", wanted.host_key)
        _put(at / "keys", "".join(f"{line}\n" for line in wanted.keys))
        _put(
            at / "settings", _SETTINGS.format(at=at, environment=_environment(entrance.environment))
        )
        stream.sendall(frame(inside.DONE, Done(code=0).model_dump_json().encode()))
        child = os.fork()
        if not child:
            _become(program, at, stream)
        stream.close()
        os.waitpid(child, 0)
    finally:
        shutil.rmtree(at, ignore_errors=True)


def _fault(program: str | None, user: str | None) -> str | None:
    """Why OpenSSH could let nobody in here, in words; None where it can."""
    found = _account(os.getuid())
    if program is None or found is None:
        lacks = "sshd" if program is None else f"user of the number {os.getuid()}"
        return f"there is no {lacks} in the job's image; ouvrage shell and cp need none"
    name, shell = found
    if user not in (None, name):
        return f"the job's image calls its user {name}: ouvrage ssh --user {name} JOB, or ssh -l {name} JOB.ouvrage"
    if not os.access(shell or "/bin/sh", os.X_OK):
        return f"the job's image has no {shell}, its user's shell; ouvrage shell needs none"
    return None


def _account(number: int) -> tuple[str, str] | None:
    """The name and the shell of a user, read here: a lookup by the C library could load code of the image's."""
    try:
        with open(_USERS, "rb") as file:
            lines = file.read(_LONGEST_USERS).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(":")
        if len(fields) == 7 and fields[2] == str(number):
            return fields[0], fields[6].strip()
    return None


def _become(program: str, at: Path, stream: socket.socket) -> None:
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for number in (0, 1):
            os.dup2(stream.fileno(), number)
        words = [program, "-i", "-e", "-f", str(at / "settings")]
        os.execve(program, words, {"PATH": _PATH})  # noqa: S606 -- no shell is the point
    finally:
        os._exit(127)


def _put(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)


def _environment(given: Mapping[str, str]) -> str:
    """The job's own variables, those that the server's settings can say."""
    pairs = [
        f'{name}="{value}"'
        for name, value in given.items()
        if name.isidentifier() and name not in _OF_THE_LOGIN
        and value.isprintable() and not set(value) & set('"\\')
    ]  # fmt: skip
    return f"SetEnv {' '.join(pairs)}" if pairs else ""
