"""A server of ours, spoken to over HTTP: one request, its answer or the refusal as the server put it.

Decides how a token is sent (in a header alone), that every write carries a key under which it can be repeated, that what did not reach
the server or came back as busy is tried again under that same key, and that a redirect is never followed with a token. What is said is
``wire``'s.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import stamina
import stamina.instrumentation

from ouvrage import __version__
from ouvrage.adapters.clock import new_id
from ouvrage.base.errors import OuvrageError

stamina.instrumentation.set_on_retry_hooks(
    []
)  # by default each try would print a line among a verb's own

UNREACHABLE = "server/unreachable"
_TRIES = 3
_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a server is, the token to show (None: none), and the CA to trust (None: the system's)."""

    url: str
    token: str | None
    ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer that comes piece by piece."""

    headers: Mapping[str, str]
    pieces: Iterator[bytes]


class _Busy(Exception):
    """The server said that it could not answer just now; the refusal to tell if it stays so."""

    def __init__(self, refusal: OuvrageError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Talk:
    """A conversation with one server."""

    def __init__(self, server: Server, *, timeout_s: float = 30.0) -> None:
        self.server = server
        headers = {"User-Agent": f"ouvrage/{__version__}"}
        if server.token is not None:
            headers["Authorization"] = f"Bearer {server.token}"
        self._http = httpx2.Client(
            base_url=server.url,
            headers=headers,
            timeout=timeout_s,
            verify=_trust(server),
            trust_env=False,  # a proxy of the environment's would be shown the token
        )

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str, **query: Any) -> Any:
        """The answer to a question."""
        return self._asked("GET", path, query, None)

    def post(self, path: str, body: Any = None) -> Any:
        """The answer to something new, or to an order."""
        return self._asked("POST", path, {}, body)

    def patch(self, path: str, body: Any) -> Any:
        """The answer to a change."""
        return self._asked("PATCH", path, {}, body)

    def delete(self, path: str, **query: Any) -> Any:
        """The answer to an end."""
        return self._asked("DELETE", path, query, None)

    def every(self, path: str, **query: Any) -> Iterator[Any]:
        """All items of a list, part after part."""
        cursor: str | None = None
        while True:
            part = self.get(path, limit=_PAGE, cursor=cursor, **query)
            yield from part["items"]
            cursor = part["next"]
            if cursor is None:
                return

    def send_file(self, path: str, file: Path) -> Any:
        """Send a file's bytes to an address that takes them; sent again, it is the same request."""
        size = str(file.stat().st_size)
        with _reaching(self.server), file.open("rb") as content:
            return _read(
                self._http.put(
                    path, content=content, headers={"Content-Length": size}, timeout=None
                )
            )

    def post_bytes(self, path: str, content: bytes, **query: Any) -> Any:
        """The answer to bytes that count once however often they are sent."""
        return self._asked("POST", path, query, None, content)

    @contextmanager
    def stream(self, path: str, **query: Any) -> Iterator[Stream]:
        """An answer read as it comes; ``OuvrageError`` where it is refused, or where it breaks off."""
        given = {name: value for name, value in query.items() if value is not None}
        with _reaching(self.server), self._http.stream("GET", path, params=given) as answer:
            if not answer.is_success:
                answer.read()
                _read(answer)
            yield Stream(headers=dict(answer.headers), pieces=answer.iter_bytes())

    def _asked(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any,
        content: bytes | None = None,
    ) -> Any:
        headers = {} if method == "GET" else {"Idempotency-Key": new_id()}
        given = {name: value for name, value in query.items() if value is not None}
        try:
            for attempt in stamina.retry_context(
                on=(httpx2.TransportError, _Busy), attempts=_TRIES, timeout=None, wait_initial=0.1
            ):
                with attempt:
                    answer = self._http.request(
                        method, path, params=given, json=body, content=content, headers=headers
                    )
                    return _read(answer)
        except _Busy as busy:
            raise busy.refusal from busy
        except httpx2.TransportError as error:
            raise _unreachable(self.server, error) from error


@contextmanager
def _reaching(server: Server) -> Iterator[None]:
    """One try: what does not reach the server, or breaks off, is told as such."""
    try:
        yield
    except _Busy as busy:
        raise busy.refusal from busy
    except httpx2.TransportError as error:
        raise _unreachable(server, error) from error


def _unreachable(server: Server, error: Exception) -> OuvrageError:
    return OuvrageError(
        UNREACHABLE,
        f"{server.url} does not answer: {str(error) or type(error).__name__}",
        hint="ouvrage up starts a server here; ouvrage login names another",
        exit_code=1,
    )


def _trust(server: Server) -> ssl.SSLContext | bool:
    if not server.url.startswith("https:"):
        return ssl.SSLContext(
            ssl.PROTOCOL_TLS_CLIENT
        )  # never used: the system's list takes 0.1 s to read
    if server.ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(server.ca))
    except (OSError, ssl.SSLError) as error:
        raise OuvrageError(
            "server/ca",
            f"{server.ca} holds no certificate to trust",
            hint="name the file of its CA: ca.pem",
        ) from error


def _read(answer: httpx2.Response) -> Any:
    """The value of a good answer; the refusal of any other."""
    try:
        value = answer.json()
    except ValueError:
        value = None
    if answer.is_success and value is not None:
        return value
    refusal = refusal_of(answer.status_code, value)
    if answer.status_code == 503:
        raise _Busy(refusal)
    raise refusal


def refusal_of(status: int, value: Any) -> OuvrageError:
    """A refusal as the server put it, from an answer's status and JSON value."""
    told = value.get("error") if isinstance(value, dict) else None
    if not isinstance(told, dict):
        return OuvrageError(
            "server/answer",
            f"the answer (HTTP {status}) is not one of a server of ours",
            hint="check the address: OUVRAGE_URL",
            exit_code=1,
        )
    field = told.get("field")
    return OuvrageError(
        str(told.get("code")),
        str(told.get("message")),
        hint=told.get("hint"),
        where=(f"field: {field}",) if field else (),
        exit_code=1 if status >= 500 else 2,
    )
