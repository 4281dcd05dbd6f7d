"""The server that a verb talks to, and how what it answers is printed.

Decides which server that is: the one in the environment, else the one signed in to last.
"""

from __future__ import annotations

import os
from pathlib import Path

from ouvrage.adapters.home import home
from ouvrage.adapters.known_servers import checked_url, known_servers, token_in
from ouvrage.adapters.server_client import Server, Talk
from ouvrage.base.errors import OuvrageError


def server_meant(address: str | None = None, *, need_token: bool = True) -> Server:
    """The server to talk to: the one at ``address``, else the one in the environment, else the last. ``OuvrageError`` ``server/none`` where none is named and none was signed in to."""
    known = known_servers(home())
    named = address or os.environ.get("OUVRAGE_URL")
    url = checked_url(named) if named else (known[-1].url if known else None)
    if url is None:
        raise OuvrageError(
            "server/none",
            "no server is named, and none was signed in to",
            hint="ouvrage up starts one here; ouvrage login https://HOST:PORT signs in to another",
        )
    entry = next((each for each in known if each.url == url), None)
    file = os.environ.get("OUVRAGE_TOKEN_FILE")
    token = token_in(Path(file)) if file else (entry.token if entry else None)
    if token is None and need_token:
        raise OuvrageError(
            "token/none",
            f"not signed in to {url}",
            hint=f"ouvrage login {url}, or OUVRAGE_TOKEN_FILE",
        )
    ca = os.environ.get("OUVRAGE_CA") or (entry.ca if entry else None)
    return Server(url=url, token=token, ca=Path(ca) if ca else None)


def talk(address: str | None = None) -> Talk:
    """A conversation with the server meant; use it in a ``with``."""
    return Talk(server_meant(address))
