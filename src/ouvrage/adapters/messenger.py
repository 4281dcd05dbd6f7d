"""Telling somebody outside: a POST to a web address, or a command that gets the message.

Decides what counts as told: an answer of 2xx, or exit code 0, within the deadline, which is for all of
it: an answer that drips is left behind, a command that hangs is ended with what it started. Whoever calls
keeps the message until it was told, so a listener may hear it twice and knows it by its id.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

DEADLINE_S = 10.0
_STDERR = 2
Message = Mapping[str, Any]


def post(url: str, message: Message, deadline_s: float = DEADLINE_S) -> str | None:
    """Post a message as JSON; None when it was taken, else why not."""
    said: list[str | None] = []
    worker = threading.Thread(
        target=lambda: said.append(_post(url, message, deadline_s)), daemon=True
    )
    worker.start()
    worker.join(deadline_s)
    return said[0] if said else f"no whole answer within {deadline_s:g} s"


def _post(url: str, message: Message, deadline_s: float) -> str | None:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=deadline_s)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        body = json.dumps(message).encode()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        status = connection.getresponse().status
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return None if 200 <= status < 300 else f"it answered {status}"


def call(command: str, message: Message, deadline_s: float = DEADLINE_S) -> str | None:
    """Give a message to a shell command, on standard input; None when it ended with 0, else why not."""
    known = {f"OUVRAGE_{name.upper()}": str(value) for name, value in message.items()}
    try:
        child = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=_STDERR,  # standard output is for the answer of this program
            env={**os.environ, **{name: _safe(text) for name, text in known.items()}},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return str(error)
    try:
        child.communicate(json.dumps(message).encode() + b"\n", timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return f"it did not end within {deadline_s:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return None if child.returncode == 0 else f"it ended with {child.returncode}"


def _safe(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode()
