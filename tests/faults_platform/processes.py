"""A platform as it is installed, server and runner as processes that are killed, and who asks it things meanwhile.

Whoever asks repeats a request under its key until it is answered, as the command line does; so what was answered is known to
have happened, and what was not may have.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import httpx2

from ouvrage.adapters.clock import new_id
from tests.support.meter import SOURCES
from tests.support.server import NO_CA

PATIENCE_S = 240


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Process:
    """A command of ours that is killed and started again with the same words."""

    def __init__(self, log: Path, *words: str, **environment: str) -> None:
        self.words = [sys.executable, "-m", "ouvrage", *words]
        self.log = log
        self.environment = {**os.environ, "PYTHONPATH": str(SOURCES), **environment}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, stdin: bytes = b"") -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env=self.environment,
            )  # fmt: skip
        given: IO[bytes] | None = self.process.stdin
        assert given is not None
        given.write(stdin)
        given.close()

    def said(self) -> bytes:
        """Its first word on the standard output: a server says it once it is ready."""
        assert self.process is not None
        assert self.process.stdout is not None
        first = self.process.stdout.read(1)
        assert first, self.log.read_text()[-4000:]
        return first

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None


class Asker:
    """One who asks over HTTP, again and again until there is an answer. One to a thread."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self.token = token
        self._http = httpx2.Client(base_url=url, timeout=30, verify=NO_CA)

    def __call__(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        headers = {"Idempotency-Key": new_id()}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self._http.request(method, path, json=body, headers=headers)
                if answer.status_code not in (429, 503):
                    return answer
            except httpx2.TransportError:
                pass
            assert time.monotonic() < until, f"{method} {path}"
            threading.Event().wait(0.02)

    def good(self, method: str, path: str, body: Any = None) -> Any:
        answer = self(method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        return self.good("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self.good("POST", path, body)

    def all(self, path: str) -> list[Any]:
        """Every item of a list, page by page."""
        found: list[Any] = []
        cursor = ""
        while True:
            page = self.get(f"{path}?limit=200{cursor}")
            found += page["items"]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"

    def tenant(self, name: str) -> Asker:
        """A new tenant's administrator, who pays by invoice."""
        asked = {"name": name, "admin": "ann", "billing": "credit", "credit_limit": "1000"}
        made = self.post("/v1/organisations", asked)
        body = {"login": made["login"], "password": made["password"]}
        stranger = Asker(self.url)
        secret = stranger.post("/v1/login", body)["secret"]
        stranger.close()
        return Asker(self.url, secret)

    def close(self) -> None:
        self._http.close()
