"""``ouvrage ssh`` and ``ssh-proxy``: into a running job with OpenSSH's own client, and whatever is built on it.

Decides how a client knows where it is: the stream is the server's, which proved itself and let its asker in; through it this home hands the job's
sshd a host key of its own making, and its clients accept no other. A job is called ``JOB.ouvrage`` there, so that one pattern in a configuration means all.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import click

from ouvrage.adapters.home import home, make_private
from ouvrage.adapters.stream_client import Line
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.entering import entered
from ouvrage.cli.output import say_text
from ouvrage.cli.talking import talk
from ouvrage.wire import inside
from ouvrage.wire.inside import Done, Frames, Ssh

_BLOCK = 1 << 16
_SUFFIX = ".ouvrage"
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
USER = "job"


@click.command()
@click.argument("job", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--config", is_flag=True, help="Print what to put into ~/.ssh/config instead.")
@click.option(
    "--user",
    default=USER,
    show_default=True,
    help="The user, where the job's image has its own name for it.",
)
@click.pass_context
def ssh(
    ctx: click.Context, job: str | None, command: tuple[str, ...], *, config: bool, user: str
) -> None:
    """OpenSSH's client into JOB, which runs now; COMMAND in place of a shell.

    With the lines of --config in ~/.ssh/config, `ssh JOB.ouvrage`, scp, rsync and editors do the same.
    """
    known = _host_key().with_name("known_hosts")
    settings = [
        ("User", user),
        ("ProxyCommand", f"{shlex.quote(sys.executable)} -m ouvrage ssh-proxy %n %r"),
        ("UserKnownHostsFile", str(known)),
        ("GlobalKnownHostsFile", "/dev/null"),
        ("StrictHostKeyChecking", "yes"),
    ]
    if config:
        lines = [f"Host *{_SUFFIX}", *(f"  {name} {value}" for name, value in settings)]
        say_text("\n".join(lines))
        return
    if job is None:
        raise OuvrageError("ssh/where", "no job is named", hint="ouvrage ssh JOB")
    program = shutil.which("ssh")
    if program is None:
        raise OuvrageError("ssh/none", "there is no ssh here", hint="ouvrage shell needs none")
    options = [word for name, value in settings for word in ("-o", f"{name}={value}")]
    words = [program, *options, "--", f"{_named(job)}{_SUFFIX}", *command]
    ctx.exit(subprocess.run(words, check=False).returncode)


@click.command("ssh-proxy")
@click.argument("job")
@click.argument("user", required=False)
def ssh_proxy(job: str, user: str | None) -> None:
    """What OpenSSH's client calls as its ProxyCommand, to reach JOB as USER."""
    job = _named(job.removesuffix(_SUFFIX))
    with talk() as server:
        keys = [each["line"] for each in server.every("/v1/keys")]
    if not keys:
        raise OuvrageError(
            "ssh/no-key",
            "the server knows no public key of yours",
            hint="ouvrage key add ~/.ssh/id_ed25519.pub",
        )
    line = entered(job, Ssh(host_key=_host_key().read_text("ascii"), keys=keys, user=user))
    try:
        _shown(line)
    finally:
        line.close()


def _named(job: str) -> str:
    """A job's name or code, which goes through a shell of ssh's."""
    if not _JOB.fullmatch(job):
        raise OuvrageError("ssh/job", f"{job!r} is no job's name or code", hint="ouvrage jobs")
    return job


def _typed(line: Line) -> None:
    with contextlib.suppress(ConnectionError, OSError):
        while data := os.read(0, _BLOCK):
            line.send(data)
        line.end()


def _shown(line: Line) -> None:
    """Pass on what comes after the frame that says that the server starts, and from then on what is typed."""
    frames, done = Frames(), None
    with contextlib.suppress(BrokenPipeError):
        for piece in line.pieces():
            if done is None:
                sort, body = next(frames.take(piece), (0, b""))
                if sort != inside.DONE:
                    continue
                done = Done.model_validate_json(body)
                if done.fault:
                    raise OuvrageError("ssh/refused", done.fault, exit_code=1)
                threading.Thread(target=_typed, args=(line,), daemon=True).start()
                piece = frames.rest()
            _written(piece)


def _written(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _host_key() -> Path:
    """This home's host key for the jobs it enters, made when it is first needed; whole or not there."""
    directory = make_private(make_private(home()) / "ssh")
    file = directory / "host_key"
    if file.exists():
        return file
    program = shutil.which("ssh-keygen")
    if program is None:
        raise OuvrageError(
            "ssh/none", "there is no ssh-keygen here", hint="install OpenSSH's client"
        )
    with tempfile.TemporaryDirectory(dir=directory) as place:
        draft = Path(place, "key")
        words = [program, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(draft)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)
        public = subprocess.run(
            [program, "-y", "-f", str(file)], check=True, capture_output=True, text=True
        ).stdout.strip()
        Path(place, "known").write_text(f"*{_SUFFIX} {public}\n", "ascii")
        Path(place, "known").replace(directory / "known_hosts")
    return file
