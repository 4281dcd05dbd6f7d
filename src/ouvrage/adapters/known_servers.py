"""Which servers a person has signed in to: ``servers.toml`` in their home, readable by them alone.

Decides where the address and the token come from: the environment first (``OUVRAGE_URL``, ``OUVRAGE_TOKEN_FILE``,
``OUVRAGE_CA``), then the server signed in to last. A token never stands in an argument or an address.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ouvrage.adapters.home import make_private
from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.errors import OuvrageError

FILE = "servers.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A server signed in to: its address, the token, the login it is for, and the CA's file to trust."""

    url: str
    token: str
    login: str
    ca: str | None = None


def checked_url(text: str) -> str:
    """An address without path or secrets. ``OuvrageError`` ``server/address`` for others."""
    parts = urlsplit(text.strip())
    good = parts.scheme in ("http", "https") and parts.hostname and not parts.username
    if not good or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise OuvrageError(
            "server/address",
            f"{text!r} is no address of a server",
            hint="write https://HOST:PORT, with nothing behind",
        )
    if parts.scheme == "http" and not _local(parts.hostname or ""):
        raise OuvrageError(
            "server/no-tls",
            f"{text} would carry passwords and tokens in the clear",
            hint="use https:// where the server is another machine",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def known_servers(home: Path) -> list[Known]:
    """The servers signed in to, the latest last."""
    file = home / FILE
    if not file.exists():
        return []
    stated = load_toml(str(file), file.read_text("utf-8"), "servers/file").get("server", [])
    try:
        return [Known(**each) for each in stated]
    except TypeError as error:
        raise OuvrageError(
            "servers/file",
            f"{file} cannot be read",
            hint="remove it and sign in again: ouvrage login",
        ) from error


def keep_server(home: Path, known: Known) -> Path:
    """Make a server the one signed in to last; the file is replaced whole."""
    others = [each for each in known_servers(home) if each.url != known.url]
    return _write(home, [*others, known])


def forget_server(home: Path, url: str) -> Path:
    """Forget a server."""
    return _write(home, [each for each in known_servers(home) if each.url != url])


def _write(home: Path, known: list[Known]) -> Path:
    file = make_private(home) / FILE
    lines = ["# Servers signed in to; the last one is used. Written by `ouvrage login`."]
    for each in known:
        values: dict[str, Any] = {"url": each.url, "login": each.login, "token": each.token}
        if each.ca:
            values["ca"] = each.ca
        lines += ["", "[[server]]", *(f"{name} = {json.dumps(v)}" for name, v in values.items())]
    beside = file.with_name(f".{FILE}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as opened:
        opened.write("\n".join(lines) + "\n")
    beside.replace(file)
    return file


def token_in(file: Path) -> str:
    """The token in a file. ``OuvrageError`` ``token/file`` where there is none."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OuvrageError(
            "token/file",
            f"{file} holds no token that can be read",
            hint="OUVRAGE_TOKEN_FILE names a file with a token in it, and nothing else",
        ) from error
    if not text or len(text.split()) != 1:
        raise OuvrageError("token/file", f"{file} holds no token", hint="sign in: ouvrage login")
    return text
