"""The way to a Redfish service: sushy's connector with its surprises taken out.

Decides whom it speaks to: the host that was named and no other, whatever a redirect or a link in an answer says; a certificate
that is signed by an authority one trusts, or that is exactly the one that was pinned; within a deadline for the whole of
what is asked and a size for each answer; without proxies, and without a second try of its own.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from sushy import auth, connector, exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError as BrokenOff

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.cut_off import CutOff
from ouvrage.adapters.power_port import PowerFault

_LARGEST = 4 << 20
_PIECE = 64 << 10
_BUSY = (429, 502, 503, 504)

# What the library says of a machine is told through faults; its own lines would stand among a verb's.
logging.getLogger("sushy").addHandler(logging.NullHandler())
logging.getLogger("sushy").propagate = False


class _Watched(HTTPAdapter):
    """Tells ``watch`` of each connection before a byte is read from it, TLS's own among them."""

    def __init__(self, watch: Callable[[Any], None]) -> None:
        self._watch = watch
        super().__init__()

    def init_poolmanager(self, *given: Any, **named: Any) -> Any:
        """The pool, whose connections are told of."""
        super().init_poolmanager(*given, **named)
        watch = self._watch

        class Plain(HTTPConnection):
            def _new_conn(self) -> Any:
                made = super()._new_conn()
                watch(made)
                return made

        class Tls(HTTPSConnection):
            def _new_conn(self) -> Any:
                made = super()._new_conn()
                watch(made)
                return made

        class Plains(HTTPConnectionPool):
            ConnectionCls: Any = Plain

        class Tlses(HTTPSConnectionPool):
            ConnectionCls: Any = Tls

        watched: Any = {"http": Plains, "https": Tlses}
        self.poolmanager.pool_classes_by_scheme = watched


class _Pinned(_Watched):
    """Takes one certificate alone, by its SHA-256, whoever signed it."""

    def __init__(self, watch: Callable[[Any], None], sha256: str) -> None:
        self._sha256 = sha256
        super().__init__(watch)

    def init_poolmanager(self, *given: Any, **named: Any) -> Any:
        """The pool, in which the certificate's hash stands for every other check."""
        named |= {"assert_fingerprint": self._sha256, "assert_hostname": False}
        super().init_poolmanager(*given, **named)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """No authority is asked: ``assert_fingerprint`` is checked in any case."""
        super().cert_verify(conn, url, False, cert)


class _Session(requests.Session):
    """A session with one host, in which every request ends by ``until_us``."""

    def __init__(self, address: str, pin: str | None) -> None:
        super().__init__()
        self.trust_env = False
        self.until_us = 0
        self._origin = _origin(address)
        self._cut: CutOff | None = None
        self.mount("http://", _Watched(self._began))
        pinned = _Pinned(self._began, pin) if pin is not None else _Watched(self._began)
        self.mount("https://", pinned)

    def _began(self, connection: Any) -> None:
        if self._cut is not None:
            self._cut.watch(connection)

    def request(self, method: str, url: str, **named: Any) -> requests.Response:  # pyright: ignore[reportIncompatibleMethodOverride]  # sushy names everything
        """One exchange. Raises ``PowerFault``."""
        if _origin(url) != self._origin:
            raise PowerFault(
                "garbled", f"it points to another host, {urlsplit(url).netloc}, not followed"
            )
        left_s = (self.until_us - monotonic_us()) / 1_000_000
        if left_s <= 0:
            raise PowerFault("silent", "no whole answer within its time")
        named |= {"allow_redirects": False, "timeout": left_s, "stream": True}
        with CutOff(left_s) as self._cut:
            try:
                answer = super().request(method, url, **named)
                with answer:
                    self._read(answer)
            except (OSError, BrokenOff) as error:
                if self._cut.passed:
                    raise PowerFault("silent", "no whole answer within its time") from error
                raise
        if self._cut.passed:  # headers that were cut off look like headers that ended
            raise PowerFault("silent", "no whole answer within its time")
        if 300 <= answer.status_code < 400:
            to = urlsplit(answer.headers.get("Location", "")).netloc or "elsewhere"
            raise PowerFault(
                "garbled", f"it sends on to {to} (HTTP {answer.status_code}), not followed"
            )
        return answer

    def _read(self, answer: requests.Response) -> None:
        if "," in answer.headers.get("Content-Encoding", ""):
            raise PowerFault("garbled", "its answer is packed more than once")
        body = b""
        for piece in answer.iter_content(_PIECE):
            body += piece
            if len(body) > _LARGEST:
                raise PowerFault("garbled", f"its answer is longer than {_LARGEST >> 20} MiB")
            if monotonic_us() > self.until_us:
                raise PowerFault("silent", "no whole answer within its time")
        answer._content = body  # where the library keeps a body that was read whole


class Link(connector.Connector):
    """sushy's connector over such a session."""

    def __init__(self, address: str, *, pin: str | None, ca: str | None) -> None:
        trusted: Any = ca or True  # a file of authorities, or those of the system
        if ca is not None:
            _readable(ca)
        super().__init__(address, verify=trusted, server_side_retries=1)
        self._session.close()
        self._session = _Session(address, pin)
        self._session.headers["Connection"] = "close"  # as sushy does: some BMCs choke on kept ones

    def until(self, moment_us: int) -> None:
        """Let everything that is asked from now on end by a moment of the monotonic clock."""
        self._session.until_us = moment_us

    def _op(self, *given: Any, **named: Any) -> Any:
        """One request; the library's own repetition of what a busy server refused is left out."""
        named["server_side_retries_left"] = 0
        return super()._op(*given, **named)


def sign_in(user: str | None, password: str | None, *, session: bool) -> Any:
    """How a request shows who asks; ``session`` takes a token and gives it back, the other way leaves nothing behind."""
    if user is None:
        return _Nobody()
    if session:
        return auth.SessionAuth(username=user, password=password)
    told: Any = None if password is None else password.encode()  # the library's own is Latin-1
    return auth.BasicAuth(username=user.encode(), password=told)


def _readable(ca: str) -> None:
    """Raises ``PowerFault`` where a file of authorities is none."""
    try:
        ssl.create_default_context(cafile=str(Path(ca).expanduser()))
    except (OSError, ValueError, RuntimeError):  # ssl's own errors are among them
        raise PowerFault("untrusted", f"{ca} holds no authorities that can be read") from None


class _Nobody(auth.AuthBase):
    """For a service that asks for nobody's name."""

    def _do_authenticate(self) -> None:
        return

    def can_refresh_session(self) -> Any:
        """There is no session."""
        return False


def fault_of(error: Exception, busy_words: tuple[str, ...]) -> PowerFault:
    """What an error of the library means. ``busy_words`` in an answer say that it cannot just now."""
    words = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    if isinstance(error, exceptions.AccessError):
        return PowerFault("refused", "it does not take this user and password, or not for this")
    if isinstance(error, exceptions.HTTPError):
        told = (error.detail or words)[:300]
        if error.status_code in _BUSY or any(word in words for word in busy_words):
            return PowerFault("busy", f"it cannot just now: {told}")
        kind = "unsupported" if error.status_code in (404, 405, 501) else "failed"
        return PowerFault(kind, f"HTTP {error.status_code}: {told}")
    if isinstance(error, exceptions.ConnectionError):
        return _unreached(words)
    if isinstance(error, (exceptions.MissingActionError, exceptions.InvalidParameterValueError)):
        return PowerFault("unsupported", words)
    return PowerFault("garbled", words)


def _unreached(words: str) -> PowerFault:
    if "ingerprint" in words:
        return PowerFault("untrusted", "its certificate is not the one that was pinned")
    if "CERTIFICATE_VERIFY_FAILED" in words or "certificate" in words:
        return PowerFault(
            "untrusted", "its certificate is not signed by an authority that is trusted here"
        )
    if "imed out" in words or "imeout" in words:
        return PowerFault("silent", "no whole answer within its time")
    return PowerFault("silent", "nobody answers there")


def certificate_shown(address: str, seconds: float) -> str:
    """The SHA-256 of the certificate that a service shows, asked for without saying who asks; empty if it shows none."""
    _, host, port = _origin(address)
    try:
        shown = ssl.get_server_certificate((host, port or 443), timeout=seconds)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest()
    except (OSError, ValueError):
        return ""


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    return (
        parts.scheme,
        parts.hostname or "",
        parts.port or {"https": 443, "http": 80}.get(parts.scheme),
    )
