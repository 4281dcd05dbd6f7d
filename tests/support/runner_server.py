"""The server's side of the runner's wire, over a dictionary: the twin that the runner is tested against.

A real HTTP server on loopback. It keeps what it is told and says what it was set up to say; it can be
stopped and started again on the same port with everything it had, as a server that was restarted.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.metering.exchange import Exported, read_export
from ouvrage.wire.runner import Ask, Enrol, Forget, Report, Start, Stop
from ouvrage.wire.samples import Batch, decode

LOG_LIMIT = 1 << 20


@dataclass
class Kept:
    """Everything that a server would keep in its store."""

    tokens: set[str] = field(default_factory=set)
    keys: dict[str, str] = field(default_factory=dict)
    inventory: dict[str, Any] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    stops: dict[str, Stop] = field(default_factory=dict)
    forget: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)
    ever_known: set[str] = field(default_factory=set)
    events: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)
    inputs: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    runs: list[Exported] = field(default_factory=list)
    samples: list[Batch] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    failing: int = 0
    """So many requests are carried out and then answered with 503, as if the answer was lost."""


class RunnerServer:
    def __init__(self) -> None:
        self.kept = Kept(tokens={"once"})
        self.lock = threading.Condition()
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = self

        class Handler(_Handler):
            of = server

        self._http = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._http.server_address[1]
        self.up = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self.lock:
            self.up = False
            self.lock.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def order(self, start: Start) -> Start:
        with self.lock:
            self.kept.starts[start.attempt] = start
            self.lock.notify_all()
        return start

    def ask_to_stop(self, attempt: str, why: Any = "cancelled", grace_us: int = 0) -> None:
        with self.lock:
            self.kept.stops[attempt] = Stop(
                attempt=attempt, why=why, reason="by the test", grace_us=grace_us
            )
            self.lock.notify_all()

    def forget(self, attempt: str) -> None:
        with self.lock:
            self.kept.forget.add(attempt)
            self.lock.notify_all()

    def event(self, attempt: str, name: str) -> dict[str, Any] | None:
        found = [e for e in self.kept.events if (e["attempt"], e["event"]) == (attempt, name)]
        assert len(found) <= 1 or name == "progress", found
        return found[-1] if found else None

    def ended(self, attempt: str) -> dict[str, Any] | None:
        return self.event(attempt, "ended")

    def log(self, attempt: str) -> str:
        return self.kept.logs.get(attempt, b"").decode("utf-8", "replace")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is no news."""


class _Handler(BaseHTTPRequestHandler):
    of: RunnerServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.removeprefix("/v1/runner").split("/")[1:]]
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        kept = self.of.kept
        with self.of.lock:
            kept.requests.append(f"{self.command} {self.path}")
            if not self.of.up:
                self.close_connection = True
                return
            if parts[0] != "enrol" and self._node() is None:
                self._say(401, _error("token/unknown", "no such key"))
                return
            status, answer = self._answer(parts, query, body)
            if kept.failing and parts[0] != "orders":
                kept.failing -= 1
                status, answer = 503, _error("store/busy", "later")
        self._say(status, answer)

    def _node(self) -> str | None:
        return self.of.kept.keys.get(self.headers.get("Authorization", "").removeprefix("Bearer "))

    def _answer(self, parts: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        kept = self.of.kept
        if parts[0] == "enrol":
            return self._enrol(Enrol.model_validate_json(body))
        if parts[0] == "orders":
            return 200, self._orders(Ask.model_validate_json(body))
        if parts == ["v1", "samples"]:
            kept.samples.append(decode(body))
            return 200, {"result": "accepted", "sequence": kept.samples[-1].sequence}
        if parts == ["v1", "facts"]:
            kept.runs.append(read_export(body))
            return 200, {}
        if parts[0] == "events":
            return self._events(Report.model_validate_json(body))
        attempt, what = parts[1], parts[2]
        if what == "log":
            return self._log(attempt, int(query["offset"]), body)
        if what == "inputs":
            if parts[3] not in kept.inputs:
                return 404, _error("file/unknown", f"no file {parts[3]}")
            return 200, kept.inputs[parts[3]]
        kept.files["/".join([attempt, *parts[2:]])] = body
        return 200, {}

    def _enrol(self, message: Enrol) -> tuple[int, Any]:
        kept = self.of.kept
        if message.token not in kept.tokens:
            return 401, _error("token/unknown", "this token is not known")
        kept.tokens.discard(message.token)
        kept.inventory = message.inventory.model_dump()
        node, key = new_id(), new_id()
        kept.keys[key] = node
        return 200, {"node": node, "key": key}

    def _orders(self, ask: Ask) -> Any:
        kept, lock = self.of.kept, self.of.lock
        if ask.inventory is not None:
            kept.inventory = ask.inventory.model_dump()
        kept.known = {each.attempt: each.state for each in ask.known}
        kept.ever_known |= kept.known.keys()
        found = self._due()
        if not found and self.of.up:
            lock.wait(min(ask.wait_s, 0.5))
            found = self._due()
        return {"orders": [order.model_dump(mode="json") for order in found], "at": now_us()}

    def _due(self) -> list[Any]:
        kept = self.of.kept
        found: list[Any] = []
        for attempt, start in kept.starts.items():
            state = kept.known.get(attempt)
            if state is None and attempt not in kept.ever_known:
                found.append(start)
            elif attempt in kept.stops and state in ("starting", "running"):
                found.append(kept.stops[attempt])
            elif attempt in kept.forget and state == "ended":
                found.append(Forget(attempt=attempt))
        return found

    def _events(self, report: Report) -> tuple[int, Any]:
        last = len(self.of.kept.events)
        for event in report.events:
            if event.sequence <= last:
                continue
            if event.sequence != last + 1:
                return 409, _error("runner/gap", f"event {last + 1} is due")
            self.of.kept.events.append(event.model_dump(mode="json"))
            last += 1
        return 200, {"sequence": last}

    def _log(self, attempt: str, offset: int, data: bytes) -> tuple[int, Any]:
        held = self.of.kept.logs.get(attempt, b"")
        if offset > len(held):
            return 409, _error("log/gap", "bytes are missing", str(len(held)))
        held += data[len(held) - offset :]
        self.of.kept.logs[attempt] = held
        return 200, {"offset": len(held), "full": len(held) >= LOG_LIMIT}

    def _say(self, status: int, answer: Any) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _error(code: str, message: str, where: str | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": None, "field": where}}
