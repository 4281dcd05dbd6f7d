"""``ouvrage login``, ``logout`` and ``whoami``: a person and a server.

Decides how a password is asked for: at the terminal, or from standard input where a program holds it, and never as an argument. What
is kept of it is a token, in ``servers.toml``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.home import home
from ouvrage.adapters.known_servers import (
    Known,
    checked_url,
    forget_server,
    keep_server,
    known_servers,
)
from ouvrage.adapters.server_client import Server, Talk
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.cli.talking import server_meant


@click.command()
@click.argument("url", metavar="URL", required=False)
@click.option(
    "--login", "name", metavar="NAME", help="As whom: admin, or ann@acme. Else asked for."
)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--days", type=click.IntRange(1, 366), default=30, help="For how long.")
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The certificate that vouches for the server: its ca.pem.",
)
@json_option
def login(
    url: str | None,
    name: str | None,
    password_stdin: bool,
    days: int,
    ca: Path | None,
    as_json: bool,
) -> None:
    """Sign in to a server: a token for your password, kept in your home.

    \b
    ouvrage login https://gpu.example.org:8680 --login ann@acme
    """  # fmt: skip
    server = _server(url, ca)
    who = name or click.prompt("login", err=True)
    password = (
        sys.stdin.readline().rstrip("\r\n")
        if password_stdin
        else click.prompt("password", hide_input=True, err=True)
    )
    with Talk(server) as talk:
        body = {"login": who, "password": password, "days": days}
        made = talk.post("/v1/login", body)
    known = Known(
        url=server.url,
        token=made["secret"],
        login=made["login"],
        ca=str(server.ca) if server.ca else None,
    )
    file = keep_server(home(), known)
    wrote()
    if as_json:
        say_json(
            {"url": server.url, "login": made["login"], "expires": utc_text(made["expires_us"])}
        )
        return
    say_text(
        f"Signed in to {server.url} as {safe(made['login'])}, until {_day(made['expires_us'])}\n"
        f"  the token stands in {file}\nNext: ouvrage whoami"
    )


def _server(url: str | None, ca: Path | None) -> Server:
    if url is None:
        meant = server_meant(need_token=False)
        return Server(url=meant.url, token=None, ca=ca.absolute() if ca else meant.ca)
    return Server(url=checked_url(url), token=None, ca=ca.absolute() if ca else None)


@click.command()
@json_option
def logout(as_json: bool) -> None:
    """Sign out: the token is revoked at once, and forgotten here."""
    known = known_servers(home())
    if not known:
        raise OuvrageError("server/none", "signed in to no server", hint="ouvrage login URL")
    last = known[-1]
    server = Server(url=last.url, token=last.token, ca=Path(last.ca) if last.ca else None)
    with Talk(server) as talk:
        try:
            talk.post("/v1/logout")
        except OuvrageError as error:
            if error.code != "token/unknown":  # it has ended already
                raise
    forget_server(home(), last.url)
    wrote()
    if as_json:
        say_json({"url": last.url, "login": last.login})
    else:
        say_text(f"Signed out of {last.url}; the token of {safe(last.login)} is revoked.")


@click.command()
@json_option
def whoami(as_json: bool) -> None:
    """Who you are to the server, and what you may do."""
    server = server_meant()
    with Talk(server) as talk:
        me = talk.get("/v1/me")
    if as_json:
        say_json({"url": server.url, **me})
        return
    lines = [f"{safe(me['login'])} at {server.url}"]
    lines += [f"  {role_text(role)}" for role in me["roles"]] or ["  without a role"]
    if me["scopes"] is not None:
        until = f", until {_day(me['expires_us'])}" if me["expires_us"] else ""
        lines.append(f"  by a token for {', '.join(me['scopes'])}{until}")
    lines.append("Tokens: ouvrage token list      Projects: ouvrage project list")
    say_text("\n".join(lines))


def role_text(role: Any) -> str:
    """A role as it is read: ``tenant-user in acme/vision alone``."""
    where = f"/{role['project_name']} alone" if role["project"] else ""
    return f"{role['role']} in {safe(role['org_name'])}{where}"


def _day(at_us: int) -> str:
    return utc_text(at_us)[:10]


COMMANDS = (login, logout, whoami)
