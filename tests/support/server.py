"""A server in a thread of the test's process: the real application on a real socket.

Passwords cost next to nothing here, and nobody is told to come back later; what tests those things sets its own settings.
"""

from __future__ import annotations

import atexit
import shutil
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import event

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.home import make_private
from ouvrage.server.context import Platform, Settings
from ouvrage.server.listening import Listen
from ouvrage.server.services.first_start import prepare
from ouvrage.server.serving import platform_of_state, server_of
from ouvrage.server.starting import bound, url_of

NO_CA = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody: to read the system's list takes longer than most tests."""

QUICK = Settings(
    password_cost=(8, 1, 1),
    requests_a_second=1e6, requests_at_once=1e6, strangers_a_second=1e6, strangers_at_once=1e6,
)  # fmt: skip


@dataclass(frozen=True)
class Client:
    """One who asks: every write gets a key of its own, unless one is given."""

    http: httpx2.Client
    token: str | None = None

    def __call__(self, method: str, path: str, json: Any = None, **more: Any) -> httpx2.Response:
        headers = dict(more.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if method != "GET":
            headers.setdefault("Idempotency-Key", new_id())
        return self.http.request(method, path, json=json, headers=headers, **more)

    def get(self, path: str, **more: Any) -> Any:
        """The answer to a GET that must succeed."""
        return _good(self("GET", path, **more))

    def post(self, path: str, json: Any = None, **more: Any) -> Any:
        """The answer to a POST that must succeed."""
        return _good(self("POST", path, json, **more))

    def patch(self, path: str, json: Any = None) -> Any:
        return _good(self("PATCH", path, json))

    def delete(self, path: str) -> Any:
        return _good(self("DELETE", path))


def _good(answer: httpx2.Response) -> Any:
    assert answer.status_code < 300, f"{answer.status_code} {answer.text}"
    return answer.json()


@dataclass(frozen=True)
class Running:
    """A running server."""

    url: str
    platform: Platform
    owner: Client
    password: str | None
    app: Any = None

    def client(self, token: str | None) -> Client:
        return replace(self.owner, token=token)

    def signed_in(self, login: str, password: str) -> Client:
        body = {"login": login, "password": password}
        return self.client(self.client(None).post("/v1/login", body)["secret"])

    def tenant(self, name: str, **more: Any) -> Client:
        """A new tenant with an administrator, as whom the client asks; it pays by invoice, unless told otherwise."""
        paying = {"billing": "credit", "credit_limit": "1000000"}
        made = self.owner.post(
            "/v1/organisations", {"name": name, "admin": "ann", **paying, **more}
        )
        return self.signed_in(made["login"], made["password"])


@dataclass(frozen=True)
class _Ready:
    """A state directory after its first start, to copy: it takes a third of a second to make."""

    state: Path
    password: str | None


_READY: list[_Ready] = []
FRESH_STORES: list[Callable[[], str]] = []
"""Where not empty: gives the address of a fresh database for every state directory, in place of a file in it."""
_STORES: dict[Path, str] = {}


def _first_start_of(settings: Settings) -> _Ready:
    if not _READY:
        directory = Path(tempfile.mkdtemp(prefix="ouvrage-first-start-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        make_private(directory / "state")
        with platform_of_state(directory / "state", None, settings) as made:
            password = prepare(made).password
        _READY.append(_Ready(directory / "state", password))
    return _READY[0]


def _careless(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


@contextmanager
def running(
    state: Path,
    *,
    settings: Settings = QUICK,
    store: str | None = None,
    copied: bool | None = None,
    listen: Listen | None = None,
    **world: Any,
) -> Iterator[Running]:
    """A server on a state directory; ``world`` replaces parts of the platform, such as its clock.

    ``copied``: a new state is a copy of one after its first start, made under the real clock (where ``world`` is the real one).
    """
    copied = not world if copied is None else copied
    ready = None
    if store is None and FRESH_STORES:
        store = _STORES.setdefault(state, FRESH_STORES[-1]())
    if store is None and copied and not state.exists():
        ready = _first_start_of(settings)
        shutil.copytree(ready.state, state)
    make_private(state)
    with platform_of_state(state, store, settings) as made:
        if store is None:  # tests kill clients, never the machine: the disk is not waited for
            event.listen(made.store.engine, "connect", _careless)
            made.store.engine.dispose()
        platform = replace(made, **world)
        started = prepare(platform)
        listen = listen or Listen(host="127.0.0.1", port=0)
        with bound(listen) as sock:
            server = server_of(platform, listen)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
            thread.start()
            url = url_of(listen, sock)
            try:
                trust = NO_CA
                if listen.certificate is not None:
                    trust = ssl.create_default_context(cafile=str(state / "tls" / "ca.pem"))
                with httpx2.Client(base_url=url, timeout=30, verify=trust) as http:
                    owner = Client(http, started.token_file.read_text("ascii").strip())
                    password = ready.password if ready else started.password
                    yield Running(url, platform, owner, password, server.config.app)
            finally:
                server.should_exit = True
                thread.join(60)
                assert not thread.is_alive()
