"""One GET of an outside record: what came back, or in words why nothing did.

Decides what counts as an answer: a status and a whole body within a deadline and a size, from the
host that was asked or one that the caller named. Everything else is a fault, and never an absence.
The deadline is for all of it, names, redirects and slow bytes included, so the exchange runs in a
thread that is left behind when time is up.
"""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ouvrage import __version__
from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError

_PIECE = 64 << 10
_MOST_REDIRECTS = 5
_AGENT = f"ouvrage/{__version__} (reads public records)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. ``body`` may be incomplete where there is a ``fault``.

    ``retry_after`` is what the other side says about when to ask again, as it wrote it.
    """

    address: str
    asked_us: int
    answered_us: int | None
    status: int | None
    body: bytes
    fault: str | None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far one question may go: seconds in all, bytes, and other hosts it may be sent on to."""

    deadline_s: float = 20.0
    limit_bytes: int = 4 << 20
    follow: frozenset[str] = field(default_factory=frozenset)

    @property
    def late(self) -> str:
        """What is said when time is up."""
        return f"no whole answer within {self.deadline_s:g} s"


class _Stopped(Exception):
    """The exchange ended without an answer; the words say why."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect on the same host, or to one that was named beforehand."""

    max_redirections = _MOST_REDIRECTS

    def __init__(self, follow: Iterable[str]) -> None:
        self._follow = {host.lower() for host in follow}

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The request to make next, or an end that says where it pointed."""
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.netloc != before.netloc and (after.hostname or "") not in self._follow:
            raise _Stopped(f"sent on to another host, {after.netloc} (HTTP {code}), not followed")
        if before.scheme == "https" and after.scheme != "https":
            raise _Stopped(f"sent on from https to {after.scheme} (HTTP {code}), not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Exchange:
    """What is known so far of one question; filled in by its thread, read when time is up."""

    def __init__(self, address: str, reach: Reach, headers: Mapping[str, str]) -> None:
        self.status: int | None = None
        self.body = b""
        self.fault: str | None = None
        self.retry_after: str | None = None
        self._address = address
        self._reach = reach
        self._headers = headers

    def run(self) -> None:
        """Ask, and turn whatever stands in the way into words."""
        try:
            self._ask()
        except _Stopped as stopped:
            self.fault = str(stopped)
        except http.client.HTTPException as error:
            self.fault = f"no HTTP answer: {type(error).__name__}"
        except urllib.error.URLError as error:
            late = isinstance(error.reason, TimeoutError)
            self.fault = self._reach.late if late else f"not reached: {error.reason}"
        except TimeoutError:
            self.fault = self._reach.late
        except (OSError, ValueError) as error:
            self.fault = f"not reached: {error}"

    def _ask(self) -> None:
        opener = urllib.request.build_opener(_Redirects(self._reach.follow))
        asking = urllib.request.Request(  # noqa: S310 - only http and https get here: see `get`
            self._address,
            headers={
                "User-Agent": _AGENT,
                "Accept": "application/rdap+json, application/json, text/html;q=0.5",
                "Accept-Encoding": "identity",
                **self._headers,
            },
        )
        try:
            response = opener.open(asking, timeout=self._reach.deadline_s)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            self.status = response.status
            self.retry_after = response.headers.get("Retry-After")
            self._read(response)

    def _read(self, response: Any) -> None:
        pieces: list[bytes] = []
        size = 0
        while piece := self._piece(response):
            pieces.append(piece)
            size += len(piece)
            self.body = b"".join(pieces)
            if size > self._reach.limit_bytes:
                self.body = self.body[: self._reach.limit_bytes]
                raise _Stopped(f"longer than {self._reach.limit_bytes} bytes")
        left = getattr(response, "length", None)
        if left:
            raise _Stopped(f"cut short: {left} of {size + left} bytes did not come")

    def _piece(self, response: Any) -> bytes:
        try:
            return response.read(_PIECE)
        except http.client.IncompleteRead as error:
            self.body += error.partial
            raise _Stopped(f"cut short after {len(self.body)} bytes") from error


def get(address: str, reach: Reach, headers: Mapping[str, str] | None = None) -> Answer:
    """Ask once. Raises ``OuvrageError`` ``web/address`` only where there is nobody to ask.

    ``headers`` are sent along, also where the same host sends the question on; no word of an answer
    or a fault repeats them.
    """
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise OuvrageError(
            "web/address", f"{address!r} is no web address", hint="it begins with https://"
        )
    exchange = _Exchange(address, reach, headers or {})
    worker = threading.Thread(target=exchange.run, name="ouvrage-get", daemon=True)
    asked = now_us()
    worker.start()
    worker.join(reach.deadline_s)
    late = worker.is_alive()
    return Answer(
        address=address,
        asked_us=asked,
        answered_us=None if late or exchange.status is None else now_us(),
        status=exchange.status,
        body=exchange.body,
        fault=reach.late if late else exchange.fault,
        retry_after=exchange.retry_after,
    )
