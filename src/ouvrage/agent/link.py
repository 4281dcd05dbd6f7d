"""The runner's calls to the server, and what each kind of answer means for it.

Decides which answers are worth another try (none, or one that says the server cannot now) and which
are a refusal that stays one. Every call can be made again without harm: orders are repeated, events
carry their numbers, bytes their place. No call is waited for longer than its own limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from ouvrage.base.errors import OuvrageError
from ouvrage.wire.health import NodeDuties
from ouvrage.wire.runner import Ask, Enrol, Enrolled, LogPlace, Message, Orders, Received, Report

_ANSWER_S = 30.0
_KEEP_S = 50.0
"""Telemetry goes every ten seconds: the connection stays, a little shorter than the server keeps it."""
_CONNECT_S = 5.0
_BLOCK = 1 << 20
_OK, _CONFLICT = 200, 409
_LATER = frozenset((408, 425, 429, 500, 502, 503, 504))
BASE = "/v1/runner"
_GZIP = {"Content-Type": "application/gzip"}

Answer = TypeVar("Answer", bound=Message)


class Away(Exception):
    """The server did not answer, or said that it cannot now: the same call later."""


class Refused(OuvrageError):
    """The server's refusal; ``status`` is the HTTP status."""

    def __init__(self, status: int, told: Mapping[str, Any]) -> None:
        super().__init__(str(told["code"]), str(told["message"]), hint=told.get("hint"))
        self.status = status
        self.field = told.get("field")


class Gap(Exception):
    """The log ends before these bytes begin; it wants them from ``offset`` on."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class Link:
    """A server by its address; safe in several threads."""

    def __init__(self, address: str, ca: str | None = None) -> None:
        verify = ssl.create_default_context(cafile=ca) if ca else True
        limits = httpx2.Limits(
            max_connections=16, max_keepalive_connections=8, keepalive_expiry=_KEEP_S
        )
        timeout = httpx2.Timeout(_ANSWER_S, connect=_CONNECT_S)
        self._client = httpx2.Client(
            base_url=address, verify=verify, limits=limits, timeout=timeout, trust_env=False
        )

    def use(self, key: str) -> None:
        """Be this node from now on."""
        self._client.headers["Authorization"] = f"Bearer {key}"

    def enrol(self, message: Enrol) -> Enrolled:
        """Join, with the one-time token."""
        return _read(Enrolled, self._post("enrol", message, _ANSWER_S))

    def orders(self, message: Ask) -> Orders:
        """Ask what is to be done; the server may take ``wait_s`` to answer."""
        return _read(Orders, self._post("orders", message, message.wait_s + _ANSWER_S))

    def events(self, message: Report) -> Received:
        """Report; the answer says up to where it is had."""
        return _read(Received, self._post("events", message, _ANSWER_S))

    def log(self, attempt: str, offset: int, data: bytes) -> LogPlace:
        """Append to an attempt's log. Raises ``Gap`` where bytes before these are missing."""
        path = f"{BASE}/attempts/{attempt}/log"
        try:
            answer = self._call("PUT", path, params={"offset": offset}, content=data)
        except Refused as refused:
            if refused.status == _CONFLICT:
                raise Gap(_place_in(refused)) from refused
            raise
        return _read(LogPlace, answer)

    def fetch(self, attempt: str, name: str, target: Path) -> None:
        """Bring an input to the disk, whole or not at all."""
        path = f"{BASE}/attempts/{attempt}/inputs/{_quoted(name)}"
        draft = target.with_name(f".{target.name}.part")
        with _telling(), self._client.stream("GET", path) as answer:
            if answer.status_code != _OK:
                answer.read()
                _raise(answer)
            with open(draft, "wb") as file:
                for block in answer.iter_bytes(_BLOCK):
                    file.write(block)
        draft.chmod(0o644)  # the job's user reads it; nobody else gets to the directory
        draft.rename(target)

    def send(self, attempt: str, place: str, source: Path) -> None:
        """Send a file, with its hash, so that what arrives is known to be what was sent."""
        digest = hashlib.sha256()
        for block in _blocks(source):
            digest.update(block)
        path = f"{BASE}/attempts/{attempt}/{place}"
        params = {"sha256": digest.hexdigest()}
        headers = {"Content-Length": str(source.stat().st_size)}
        self._call("PUT", path, params=params, content=_blocks(source), headers=headers)

    def samples(self, content: bytes) -> None:
        """Send a batch of telemetry; one that is kept already is well too."""
        self._call("POST", "/v1/samples", content=content, headers=_GZIP)

    def facts(self, content: bytes) -> dict[str, Any]:
        """Send a file of facts, a run's or this node's own; what is known there already counts once. What is answered."""
        return self._call("POST", "/v1/facts", content=content, headers=_GZIP).json()

    def duties(self) -> NodeDuties:
        """What this node is to do about its own health."""
        return NodeDuties.model_validate_json(self._call("GET", f"{BASE}/health").content)

    def _post(self, name: str, message: Message, wait_s: float) -> httpx2.Response:
        headers = {"Content-Type": "application/json"}
        body = message.model_dump_json().encode()
        timeout = httpx2.Timeout(wait_s, connect=_CONNECT_S)
        return self._call("POST", f"{BASE}/{name}", content=body, headers=headers, timeout=timeout)

    def _call(self, method: str, path: str, **choices: Any) -> httpx2.Response:
        with _telling():
            answer = self._client.request(method, path, **choices)
        if answer.is_success:
            return answer
        _raise(answer)
        raise AssertionError("an answer that is no success raises")

    def close(self) -> None:
        """End all connections."""
        self._client.close()


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except httpx2.TransportError as error:
        raise Away(f"{type(error).__name__}: {error}") from error


def _raise(answer: httpx2.Response) -> None:
    if answer.status_code in _LATER:
        raise Away(f"HTTP {answer.status_code}")
    try:
        raise Refused(answer.status_code, answer.json()["error"])
    except (ValueError, KeyError, TypeError) as error:
        words = f"the server answered HTTP {answer.status_code}"
        told = {"code": "runner/refused", "message": words}
        raise Refused(answer.status_code, told) from error


def _place_in(refused: Refused) -> int:
    """Up to where the server has the log: a 409 says so in its field."""
    if not str(refused.field).isdigit():
        raise refused
    return int(str(refused.field))


def _read(kind: type[Answer], answer: httpx2.Response) -> Answer:
    return kind.model_validate_json(answer.content)


def _blocks(source: Path) -> Iterator[bytes]:
    with open(source, "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")
