"""A server that speaks OpenAI's HTTP interface: one request, timed token by token.

Decides what is asked (a prompt of so many tokens, so many tokens back, streamed, with the server's
own count of both) and how an answer ended: every way in which one can fail has a name, and none
passes for a success. The count of tokens is the server's ``usage``; where it gives none, or more
than the request allows, the pieces that came are counted and called that. A connection of its own for each request, as from people who
do not know of each other. No proxy is used, and the key is sent and never told.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from ouvrage import __version__
from ouvrage.adapters.clock import monotonic_us
from ouvrage.base.errors import OuvrageError

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
_PIECE = 65_536
_LONGEST_LINE = 4 << 20
_MOST_ADDED = 1 << 16
"""Tokens that a server's own words around a prompt may come to, beyond one for each byte sent."""
_WORDS = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
]
"""Short common words: most tokenizers know each as one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where and how to ask. ``words_ppm`` are words for a million tokens, ``extra`` tokens that
    the server adds to every prompt; both were found by asking. ``settings`` are sent as they are."""

    url: str
    model: str
    path: str = COMPLETIONS
    key: str | None = field(default=None, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    words_ppm: int = 1_000_000
    extra: int = 0

    def body(self, number: int, tokens_in: int, tokens_out: int) -> bytes:
        """The request, the same every time. Each begins with words of its own, so that no server
        has seen the beginning of a prompt before and answers from its cache."""
        words = max(1, (tokens_in - self.extra) * self.words_ppm // 1_000_000)
        prompt = " ".join(_text_of(number, words))
        asked: dict[str, Any] = {"model": self.model, "max_tokens": max(1, tokens_out)}
        if self.path == CHAT:
            asked["messages"] = [{"role": "user", "content": prompt}]
        else:
            asked["prompt"] = prompt
        return json.dumps({**asked, "stream": True, "temperature": 0, **self.settings}).encode()


def _text_of(number: int, words: int) -> Iterator[str]:
    block = 0
    while words > 0:
        for byte in sha256(b"%d/%d" % (number, block)).digest()[:words]:
            yield _WORDS[byte % len(_WORDS)]
        words, block = words - 32, block + 1


def checked_url(text: str) -> str:
    """The address of a server without a slash at its end, or without ``/v1``. ``OuvrageError``."""
    try:
        parts = urlsplit(text)
        proper = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, proper = None, False
    if not parts or not proper or parts.query or parts.fragment or not _plain(text):
        told = (
            text if "@" not in text else "what was given (not shown, since it may hold a password)"
        )
        raise OuvrageError(
            "inference/server", f"{told!r} is no address of a server",
            hint="--server http://127.0.0.1:8000",
        )  # fmt: skip
    if parts.username is not None:
        raise OuvrageError(
            "inference/key-in-address", "the address holds a user or a password, which would be kept",
            hint="--api-key-file FILE sends a key and records none",
        )  # fmt: skip
    return text.rstrip("/").removesuffix("/v1").rstrip("/")


def _plain(text: str) -> bool:
    return text.isprintable() and text.isascii() and " " not in text


def connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    """A connection to the server of an address, not yet opened."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout_s)


def path_at(url: str, path: str) -> str:
    """The path of an endpoint below the server's address."""
    return urlsplit(url).path + path


def models(endpoint: Endpoint, timeout_s: float) -> list[str]:
    """The models that a server names. ``OSError`` or ``ValueError`` where it does not."""
    line = connection(endpoint.url, timeout_s)
    with contextlib.closing(line):
        try:
            line.request("GET", path_at(endpoint.url, "/v1/models"), headers=_headers(endpoint))
            answer = line.getresponse()
            data = answer.read(1 << 20)
        except http.client.HTTPException as error:
            raise OSError(f"no HTTP answer: {type(error).__name__}") from error
    if answer.status != 200:
        raise ValueError(f"HTTP {answer.status}")
    said: Any = json.loads(data)
    listed: Any = said.get("data") if isinstance(said, dict) else None
    entries: list[Any] = listed if isinstance(listed, list) else []
    found = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    return [name for name in found if isinstance(name, str) and name]


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "User-Agent": f"ouvrage/{__version__}",
    }
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    return headers


class _Ended(Exception):
    """The answer is over; the status says how."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Exchange:
    """One request and what came of it; moments are on the monotonic clock, None until known.

    ``run`` asks in the calling thread; ``stop`` ends it from another, with the status it gives.
    """

    def __init__(self, endpoint: Endpoint, body: bytes, timeout_us: int, *, asked_out: int) -> None:
        self.status = ""
        self.http: int | None = None
        self.words = ""
        self.sent: int | None = None
        self.first: int | None = None
        self.last: int | None = None
        self.ended: int | None = None
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self.tokens_cached: int | None = None
        self.counted: str | None = None
        self.disbelieved = False
        self.timeout_us = timeout_us
        self._endpoint = endpoint
        self._body = body
        self._most_out = max(1, asked_out) + 1  # some count the mark of the end
        self._socket: socket.socket | None = None
        self._stopped = ""
        self._pieces = 0
        self._finished = False

    def run(self) -> None:
        """Ask, read to the end, and leave nothing open."""
        self.sent = monotonic_us()
        line = connection(self._endpoint.url, self.timeout_us / 1_000_000)
        try:
            status = self._ask(line)
        except _Ended as ended:
            status = ended.status
        except TimeoutError:
            status = "timeout"
        except (OSError, http.client.HTTPException) as error:
            self.words = str(error)[:200] or type(error).__name__
            status = "unreachable" if self.http is None else "cut"
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            # Whatever shape an answer has, its request ends and has a name.
            self.words, status = type(error).__name__, "garbled"
        finally:
            line.close()
        self.ended = monotonic_us()
        self.status = self._stopped or status
        self._count()

    def stop(self, status: str) -> None:
        """End it now: whoever reads gets an end of file."""
        self._stopped = self._stopped or status
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def overdue(self) -> bool:
        """Whether it has lasted longer than it may, however steadily bytes drip in."""
        late = self.sent is not None and monotonic_us() - self.sent > self.timeout_us
        return late and self.ended is None

    def _ask(self, line: http.client.HTTPConnection) -> str:
        where = path_at(self._endpoint.url, self._endpoint.path)
        line.connect()
        self._socket = line.sock
        if self._stopped:
            raise _Ended(self._stopped)
        line.request("POST", where, body=self._body, headers=_headers(self._endpoint))
        answer = line.getresponse()
        self.http = answer.status
        if answer.status != 200:
            self.words = answer.read(2000).decode("utf-8", "replace")
            return "refused"
        if "event-stream" in (answer.headers.get("Content-Type") or ""):
            for data in _events(answer):
                self._hear(data)
            return "ok" if self._finished else "cut"
        data = answer.read(_LONGEST_LINE)
        self._hear_whole(data)
        return "ok"

    def _hear(self, data: bytes) -> None:
        """One event of a stream."""
        if data == b"[DONE]":
            self._finished = True
            return
        said = _object(data)
        self._usage(said)
        choices = said.get("choices") or []
        if not isinstance(choices, list):
            raise _Ended("garbled")
        for choice in choices:
            if not isinstance(choice, dict):
                raise _Ended("garbled")
            if _words_of(choice):
                self.last = monotonic_us()
                self.first = self.first or self.last
                self._pieces += 1
            self._finished = self._finished or choice.get("finish_reason") is not None

    def _hear_whole(self, data: bytes) -> None:
        """An answer that came in one piece: there is no first token to time."""
        said = _object(data)
        if not isinstance(said.get("choices"), list):
            raise _Ended("garbled")
        self._usage(said)

    def _usage(self, said: Mapping[str, Any]) -> None:
        if said.get("error") is not None:
            self.words = json.dumps(said["error"])[:200]
            raise _Ended("failed")
        usage = said.get("usage")
        if not isinstance(usage, dict):
            return
        self.tokens_in = self._believed(usage, "prompt_tokens", len(self._body) + _MOST_ADDED)
        self.tokens_out = self._believed(usage, "completion_tokens", self._most_out)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and self.tokens_in is not None:
            self.tokens_cached = self._believed(details, "cached_tokens", self.tokens_in)

    def _believed(self, said: Mapping[str, Any], name: str, most: int) -> int | None:
        """A count that can be; one that cannot is not known, and told of."""
        value = said.get(name)
        if value is None:
            return None
        if type(value) is int and 0 <= value <= most:
            return value
        self.disbelieved = True
        return None

    def _count(self) -> None:
        """Whose count the tokens are."""
        if self.tokens_out is not None:
            self.counted = "usage"
        elif self._pieces:
            self.tokens_out, self.counted = self._pieces, "chunks"


def _events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The data of each server-sent event, as soon as its line is complete."""
    rest = b""
    while piece := answer.read1(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise _Ended("garbled")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _Ended("garbled") from error
    if not isinstance(said, dict):
        raise _Ended("garbled")
    return said


def _words_of(choice: Mapping[str, Any]) -> bool:
    """Whether a piece holds text, in any of the places where servers put it."""
    delta = choice.get("delta")
    places: tuple[Any, ...] = (choice.get("text"),)
    if isinstance(delta, dict):
        names = ("content", "reasoning_content", "reasoning", "tool_calls")
        places = (*places, *(delta.get(name) for name in names))
    return any(places)
