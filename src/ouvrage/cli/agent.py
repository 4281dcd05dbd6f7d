"""``ouvrage agent run``: this machine watched, and with a server a node of a platform.

Decides that without a server the machine is watched alone, into this home's own store, and that with one the runner has
the watch beside it; where the one-time token comes from (a file or the standard input, never the command line,
which everybody on the machine can read) and how the runner's log looks. Whether an isolation works
here is found out by trying it, once for each kernel.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from ouvrage.adapters.home import home, make_private
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND, utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text

if TYPE_CHECKING:
    from ouvrage.agent.probing.alerts import Desk

CONFIGURATION = "agent.toml"
"""In the state directory: lists ``see``, ``deny`` and ``registries``, to which the flags add."""

_LISTS = ("see", "deny", "registries")
_NAME = re.compile(r"[^a-z0-9.-]+")

_LONGEST_NAME = 200


@click.group()
def agent() -> None:
    """One program on each machine: watches over it, and runs a platform's jobs, each in a sandbox."""


state_option = click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Where it keeps what it must not forget ($OUVRAGE_HOME/agent).",
)


def state_meant(state: Path | None) -> Path:
    """The agent's directory: the one that was named, else the home's."""
    return state.absolute() if state is not None else home() / "agent"


@agent.command()
@state_option
@click.option("--server", metavar="URL", help="Also run the jobs of this platform's server.")
@click.option(
    "--enrol-file",
    type=click.Path(path_type=Path),
    help="A file that holds the one-time token; - is the standard input.",
)
@click.option(
    "--name", "--node", "name", metavar="NAME", help="The node's name (the host's, else)."
)
@click.option("--no-watch", is_flag=True, help="With --server: run jobs only.")
@click.option(
    "--observer",
    is_flag=True,
    help="Others run this machine: watch it, ask nothing but a person to repair it.",
)
@click.option("--root", metavar="DIR", default="/", help="Watch a tree that stands in for /.")
@click.option("--report-to", metavar="URL", hidden=True, help="Watch alone, for this server.")
@click.option(
    "--see",
    multiple=True,
    metavar="DIR",
    type=click.Path(),
    help="A directory that every sandbox sees, read-only, at the same path.",
)
@click.option(
    "--deny",
    multiple=True,
    metavar="NETWORK",
    help="A network that no job reaches, beside the private ones.",
)
@click.option(
    "--registry",
    "registries",
    multiple=True,
    metavar="HOST",
    help="Where images may come from (the large public ones, else).",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    help="The authority that signed the server's certificate.",
)
@click.option(
    "--places",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Slurm gives out the places here: where its batch jobs meet the runner.",
)
@click.option("--with-parent", type=int, hidden=True, help="End when this process is gone.")
def run(
    state: Path | None,
    server: str | None,
    enrol_file: Path | None,
    name: str | None,
    no_watch: bool,
    observer: bool,
    root: str,
    report_to: str | None,
    see: tuple[str, ...],
    deny: tuple[str, ...],
    registries: tuple[str, ...],
    ca: str | None,
    places: Path | None,
    with_parent: int | None,
) -> None:
    """Watch this machine until told to stop, and with --server serve a platform.

    What it finds goes into this home's store, or to the server. Jobs that run when it is stopped go on; started again it finds them.
    """
    if with_parent is not None:
        end_with_the_parent()
        if os.getppid() != with_parent:
            return  # it was gone before the kernel could be asked
    place = state_meant(state)
    if server is None:
        _watch(place, name or host_name(), root, observer, report_to, ca)
        return
    from ouvrage.adapters.podman import REGISTRIES
    from ouvrage.agent.isolation import proven
    from ouvrage.agent.runner import Runner, Settings

    _log_to_stderr()
    kept = _kept(place / CONFIGURATION)
    settings = Settings(
        state=place,
        server=_address(server),
        name=name or host_name(),
        see=tuple(_seen(each) for each in (*kept["see"], *see)),
        deny=tuple(_network(each) for each in (*kept["deny"], *deny)),
        registries=registries or tuple(kept["registries"]) or REGISTRIES,
        ca=ca,
        watch=not no_watch,
        places=places and places.absolute(),
    )
    runner = Runner(settings, proven(settings.state))
    runner.run(lambda: _token(enrol_file))


def _watch(
    state: Path, node: str, root: str, observer: bool, report_to: str | None, ca: str | None
) -> None:
    """Watch alone; without a server to report to, into this home's store.

    What read the command makes room: the watch takes its process over, and carries nothing of the command line.
    """
    from ouvrage.agent.probing.settings import settings_in

    if not node.isprintable() or len(node) > _LONGEST_NAME:
        raise OuvrageError(
            "agent/name", f"{node[:40]!r} is no name of a machine", hint="--name NAME"
        )
    settings_in(state, root)  # what is not understood is refused before anything is let go
    words = ["--state", str(state), "--node", node, "--root", root]
    words += ["--home", str(home())] if report_to is None else ["--server", report_to]
    words += ["--ca", ca] if ca else []
    words += ["--observer"] if observer else []
    words += ["--alerts"] if _alerted(state) else []
    words += [f"--bmc={each}" for each in _bmc(node, root) or ()]
    words += ["--shown", _shown(state)]
    if report_to is None:
        _make_store(home())
    sys.stdout.flush()
    os.execv(  # noqa: S606 -- no shell is the point
        sys.executable, [sys.executable, "-m", "ouvrage.cli.watching", *words]
    )


def _make_store(own: Path) -> None:
    """Make this home's store, or bring it up to date, before there is a watch beside which that would weigh.

    A store that cannot be opened holds up no watch: its facts wait, and whoever takes them away says why.
    """
    from ouvrage.agent.probing.deliver import STORE
    from ouvrage.store.store import open_store

    with suppress(OuvrageError, OSError):
        open_store(make_private(own) / STORE).close()


def _alerted(state: Path) -> bool:
    """Whether anybody is to be told. What reads the table weighs: the watch stays small where there is none."""
    file = state / CONFIGURATION
    if not file.exists() or "alerts" not in load_toml(
        str(file), read_text(file, "agent"), "agent/config"
    ):
        return False
    from ouvrage.agent.probing.alerting import channels_in

    return bool(channels_in(state).names)


@agent.command("alert")
@state_option
@click.option("--test", is_flag=True, help="Send a test by every channel.")
@click.option(
    "--mail",
    type=click.File("rb"),
    help="A mail that came, as it came (- is the standard input): is it from a machine of yours?",
)
@json_option
def alert_(state: Path | None, test: bool, mail: BinaryIO | None, as_json: bool) -> int:
    """Whom this machine tells of its health, what waits, and whether a test arrives. Exit code 1: something did not."""
    from ouvrage.agent.probing.alerting import channels_in, desk_in, secret_in, try_out

    place = state_meant(state)
    channels = channels_in(place)
    if not channels.names:
        raise OuvrageError(
            "agent/no-alerts", f"nobody is told: {place / CONFIGURATION} has no table [alerts]",
            hint='[alerts] with webhook = "https://…" and secret = "file:PATH", or smtp, mail_to, mail_from and secret',
        )  # fmt: skip
    if mail is not None:
        return _is_ours(mail.read(), secret_in(channels, place), as_json=as_json)
    tried = try_out(host_name(), place, channels) if test else {}
    desk = desk_in(place)
    faults = {name: why for name, why in tried.items() if why is not None}
    if as_json:
        say_json({
            "channels": list(channels.names), "least": channels.least, "test": tried,
            "told": dict(desk.told), "given_up": desk.given_up,
            "waiting": [{"id": w.message["id"], "left": list(w.left), "tries": w.tries, "said": w.said} for w in desk.waiting],
        })  # fmt: skip
    else:
        say_text("\n".join(_alert_words(channels.names, tried, desk)))
    return int(bool(faults))


def _is_ours(mail: bytes, secret: str, *, as_json: bool) -> int:
    """Say whether a mail bears a signature under our secret, and of when. Exit code 1: it does not."""
    from ouvrage.agent.probing.mailing import signed_at

    found = signed_at(mail, secret)
    if as_json:
        id, at_s = found or (None, None)
        say_json({"signed": found is not None, "id": id, "at_us": at_s and at_s * SECOND})
    elif found is None:
        say_text(
            "Not ours: no signature under this secret fits this mail.\n\nBelieve nothing of it; look: ouvrage node watch"
        )
    else:
        say_text(
            f"Ours: message {safe(found[0])}, signed at {utc_text(found[1] * SECOND)}.\n\n"
            "An old mail sent again looks the same: hold the time against now."
        )
    return int(found is None)


def _alert_words(names: tuple[str, ...], tried: dict[str, str | None], desk: Desk) -> list[str]:
    waits = len(desk.waiting)
    first = f"Told by {' and '.join(names)}; " + (
        f"{waits} on their way" if waits else "nothing waits"
    )
    lines = [first + (f", {desk.given_up} given up" if desk.given_up else "") + "."]
    lines += [f"  {name}: {why or 'the test arrived'}" for name, why in tried.items()]
    lines += [f"  told last of {safe(place)}: {verdict}" for place, verdict in desk.told.items()]
    lines += [f"  {w.message['id']} waits: {safe(w.said)}" for w in desk.waiting[:5]]
    return [
        *lines,
        "",
        "A test: ouvrage agent alert --test" if not tried else "Now: ouvrage node watch",
    ]


def _bmc(node: str, root: str) -> tuple[str, str] | None:
    """The BMC that this home's ``remote.toml`` names for this machine, else the one that the kernel's driver finds."""
    if (home() / "remote.toml").exists():  # what reads it weighs: the watch stays small without
        from ouvrage.adapters.remote_config import remotes

        if node in remotes(home()):
            return str(home()), node
    return ("", "") if os.path.exists(f"{root.rstrip('/')}/dev/ipmi0") else None


def _shown(state: Path) -> str:
    return "ouvrage node watch" + (f" --state {state}" if state != home() / "agent" else "")


def _kept(file: Path) -> dict[str, list[str]]:
    """What the owner wrote into the agent's configuration; empty lists where there is none."""
    told = load_toml(str(file), read_text(file, "agent"), "agent/config") if file.exists() else {}
    told = {
        name: value for name, value in told.items() if name not in ("watch", "alerts")
    }  # the watch reads them
    for name, value in told.items():
        if name not in _LISTS or not isinstance(value, list) or not all(map(_is_text, value)):
            raise OuvrageError(
                "agent/config",
                f"{name} = {value!r} is not understood",
                where=(str(file),),
                hint=f"lists of texts, called {', '.join(_LISTS)}",
            )
    return {name: told.get(name, []) for name in _LISTS}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _log_to_stderr() -> None:
    """One line an event, as a service's log wants them."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.add_log_level,
            structlog.processors.LogfmtRenderer(key_order=("timestamp", "level", "event")),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def _token(file: Path | None) -> str:
    if file is None:
        raise OuvrageError(
            "agent/not-enrolled",
            "this node is not enrolled yet, and no token was given",
            hint="ouvrage node enrol prints one; --enrol-file FILE",
        )
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise OuvrageError("agent/token", f"{file} cannot be read: {error}") from error
    if not text.strip():
        raise OuvrageError("agent/token", f"{file} holds no token")
    return text.strip()


def _address(server: str) -> str:
    if not server.startswith(("http://", "https://")) or "@" in server:
        raise OuvrageError(
            "agent/server", f"{server!r} is no address of a server", hint="https://host:8680"
        )
    return server.rstrip("/")


def host_name() -> str:
    """This machine's name as a node's: the host's, in small letters."""
    return _NAME.sub("-", os.uname().nodename.lower()).strip("-.")[:63] or "node"


def _seen(path: str) -> str:
    whole = os.path.abspath(path)
    if not os.path.isdir(whole) or whole == "/":
        raise OuvrageError("agent/see", f"--see {path!r} is no directory that could be shown")
    return whole


def _network(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text, strict=False))
    except ValueError as error:
        raise OuvrageError(
            "agent/deny", f"--deny {text!r} is no network", hint="--deny 203.0.113.0/24"
        ) from error
