"""``ouvrage up`` and ``ouvrage down``: this machine as a small cloud, from one command to its end.

Decides what is said on a start (the administrator's password on the first one, and never again), and that a detached server is
waited for until it answers. The server itself is ``server/serving.py``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.home import make_private
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.cli.server_extra import server_extra

_STATE = Path("/var/lib/ouvrage")
_STARTED_WITHIN = 60
_ENDED_WITHIN = 60

state_option = click.option(
    "--state",
    "state",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=_STATE,
    show_default=True,
    help="Where the platform keeps everything.",
)


@click.command()
@state_option
@click.option(
    "--listen",
    metavar="ADDRESS",
    default="127.0.0.1:8680",
    show_default=True,
    help="Where the server listens; port 0 takes any.",
)
@click.option(
    "--store",
    metavar="URL",
    envvar="OUVRAGE_SERVER_STORE",
    help="postgresql://… in place of a file in DIR.",
)
@click.option(
    "--files",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where logs and files of jobs lie, when several servers share a store (DIR of --state, else).",
)
@click.option(
    "--tls", type=click.Choice(["own"]), help="With a certificate of an authority of its own."
)
@click.option(
    "--tls-certificate",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With this certificate, its chain behind it (PEM).",
)
@click.option(
    "--tls-key",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its key.",
)
@click.option(
    "--behind-proxy", is_flag=True, help="A proxy on this machine adds HTTPS, and says who asks."
)
@click.option("--currency", metavar="CODE", default="EUR", help="The owner's, on the first start.")
@click.option(
    "--rented", is_flag=True, help="This machine is rented: its one buyer is its owner, at cost."
)
@click.option(
    "--rate", metavar="PLAN", help="What it costs: 0.44/h, or a rate plan's name or TOML file."
)
@click.option("--detach", is_flag=True, help="Return once the server answers; it runs on.")
@click.option("--no-runner", is_flag=True, help="Serve only: run no jobs on this machine.")
@click.option("--no-agent", is_flag=True, help="Do not watch over this machine's health.")
@click.option(
    "--see",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, path_type=Path),
    help="What every sandbox here sees, read-only, at the same path: programs, data.",
)
@json_option
def up(state: Path, detach: bool, as_json: bool, **given: Any) -> None:
    """Start the platform on this machine, and keep it running until Ctrl-C or `ouvrage down`.

    The first start makes the owner's organisation and an administrator, whose password is printed this once.
    """
    from ouvrage.server.listening import Start, checked

    given["files"] = given["files"] and given["files"].absolute()
    given["see"] = tuple(each.absolute() for each in given["see"])
    start = Start(state=state.absolute(), **given)
    checked(start)
    if detach:
        told = _start_behind(start)
        wrote()
        _say(told["url"], start.state, told["password"], as_json=as_json)
        return
    with server_extra():
        from ouvrage.server.serving import opened, serve  # takes a second to load

    with opened(start) as server:
        wrote()
        serve(server, lambda: _say(server.url, start.state, server.password, as_json=as_json))


def _say(url: str, directory: Path, password: str | None, *, as_json: bool) -> None:
    token, ca = directory / "owner.token", directory / "tls/ca.pem"
    own_ca = url.startswith("https:") and ca.exists()
    if as_json:
        say_json(
            {
                "url": url,
                "state": str(directory),
                "token_file": str(token),
                "ca": str(ca) if own_ca else None,
                "password": password,
            }
        )
    else:
        lines = [f"Ouvrage runs at {url}, with its state in {directory}"]
        if password is not None:
            lines.append(f"  sign in as admin with {password}    (shown this once)")
        trust = f" OUVRAGE_CA={ca}" if own_ca else ""
        lines += [
            f"  as its owner here:  export OUVRAGE_URL={url} OUVRAGE_TOKEN_FILE={token}{trust}",
            f"Next: ouvrage tenant create acme --admin ann      End it: ouvrage down --state {directory}",
        ]
        say_text("\n".join(lines))
    sys.stdout.flush()


def _start_behind(start: Any) -> Any:
    """Start the server in a session of its own; what it says once it is ready, or its refusal.

    The first start's password comes back through a pipe, and stands in no file.
    """
    make_private(start.state)
    command = [sys.executable, "-m", "ouvrage", "up", *start.arguments(), "--json"]
    # An address of a database may hold a password, which a list of processes would show.
    environment = dict(os.environ) | ({"OUVRAGE_SERVER_STORE": start.store} if start.store else {})
    log = start.state / "server.log"
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env=environment,
        )
    assert child.stdout is not None
    with child.stdout as said:
        told = _json_from(said.fileno())
    if told is None:
        raise OuvrageError(
            "server/not-started",
            f"the server was not ready within {_STARTED_WITHIN} s",
            hint=f"its words stand in {log}",
            exit_code=1,
        )
    if "error" in told:
        error = told["error"]
        raise OuvrageError(
            error["code"], error["message"], hint=error["hint"], where=tuple(error["where"])
        )
    return told


def _json_from(descriptor: int) -> Any:
    """The JSON value that a process prints, read until it is whole; None where it does not come in time."""
    text = b""
    while select.select([descriptor], [], [], _STARTED_WITHIN)[0]:
        piece = os.read(descriptor, 1 << 16)
        text += piece
        try:
            return json.loads(text)
        except ValueError:
            if not piece:
                return None
    return None


@click.command()
@state_option
@json_option
def down(state: Path, as_json: bool) -> None:
    """Stop the server that `ouvrage up` started. Jobs that run go on; their ends are reported when it is back."""
    with server_extra():
        from ouvrage.server.serving import running_pid

    directory = state.absolute()
    number = running_pid(directory)
    if number is not None:
        _stop(number)
    if as_json:
        say_json({"state": str(directory), "stopped": number})
    elif number is None:
        say_text(f"No server runs on {directory}.")
    else:
        say_text(
            f"Stopped the server on {directory}.\nStart it again: ouvrage up --state {directory}"
        )


def _stop(number: int) -> None:
    """Ask a process to end, and wait until it has."""
    try:
        process: Any = os.pidfd_open(number)
        signal.pidfd_send_signal(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except OSError as error:
        raise OuvrageError(
            "server/not-stopped",
            f"process {number} could not be told to end: {error.strerror}",
            hint="only the user who started the server may stop it",
        ) from error
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    ended = waiting.poll(_ENDED_WITHIN * 1000)
    os.close(process)
    if not ended:
        raise OuvrageError(
            "server/not-stopped",
            f"process {number} has not ended within {_ENDED_WITHIN} s",
            hint="look at its log: DIR/server.log",
            exit_code=1,
        )
    wrote()


COMMANDS = (up, down)
