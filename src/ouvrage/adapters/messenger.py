"""Telling somebody outside: a POST to a web address, or a command that gets the message.

Decides what counts as told: an answer of 2xx, or exit code 0, within the deadline. Whoever calls
keeps the message until it was told, so a listener may hear it twice and knows it by its id.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

DEADLINE_S = 10.0
Message = Mapping[str, Any]


def address_fault(url: str) -> str | None:
    """Why a text is no address to post to; None where it is one."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it does not begin with http:// or https://"
    if not parts.hostname or not url.isascii() or any(c <= " " for c in url):
        return "it names no host, or holds what must be escaped"
    return None


def post(url: str, message: Message, deadline_s: float = DEADLINE_S) -> str | None:
    """Post a message as JSON; None when it was taken, else why not."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=deadline_s)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        body = json.dumps(message, ensure_ascii=False).encode()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return None if 200 <= status < 300 else f"it answered {status}"


def call(command: str, message: Message, deadline_s: float = DEADLINE_S) -> str | None:
    """Give a message to a shell command, on standard input; None when it ended with 0, else why not."""
    known = {f"OUVRAGE_{name.upper()}": str(value) for name, value in message.items()}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(message, ensure_ascii=False).encode() + b"\n",
            env={**os.environ, **{name: _safe(text) for name, text in known.items()}},
            timeout=deadline_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else f"it ended with {done.returncode}"


def _safe(text: str) -> str:
    return text.replace("\0", "")
