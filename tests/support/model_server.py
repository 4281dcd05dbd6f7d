"""A model server on this machine with a known pace: OpenAI's endpoints, vLLM's metrics, every fault.

Its answers have the shapes of real servers (vLLM, llama-cpp-python), and it counts tokens as words,
so that totals can be checked exactly. Nothing in it is a model.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BOUNDS = (0.001, 0.1, 1.0, 10.0)


@dataclass
class Manner:
    """How it answers. ``faults`` maps the number of a request (from 1, first prompts left out) to a
    fault; a token takes ``pace_s``. ``takes`` are the options it knows; others get 400."""

    pace_s: float = 0.0
    prefill_s: float = 0.0
    usage: bool = True
    stream: bool = True
    takes: frozenset[str] = frozenset({"stream_options", "ignore_eos"})
    completions: bool = True
    faults: dict[int, str] = field(default_factory=dict)
    warm_up: int = 2
    key: str | None = None
    extra: int = 1


class Model:
    """The server as tests see it."""

    def __init__(self, url: str, manner: Manner) -> None:
        self.url = url
        self.manner = manner
        self.over = threading.Event()
        self.arrived = threading.Condition()
        self.bodies: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.read = 0

    def metrics(self) -> str:
        """vLLM's page, with every name that is read and some that are not."""
        tags = '{engine="0",model_name="tiny"}'
        done = self.counts["done"]
        lines = [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{tags} {float(self.at_once)}",
            f"vllm:num_requests_waiting{tags} 0.0",
            f"vllm:prompt_tokens_total{tags} {float(self.counts['in'])}",
            f"vllm:generation_tokens_total{tags} {float(self.counts['out'])}",
            f'vllm:request_success_total{{engine="0",finished_reason="stop",model_name="tiny"}} {done}.0',
            f'vllm:request_success_total{{engine="0",finished_reason="abort",model_name="tiny"}} {self.counts["aborted"]}.0',
            "vllm:cache_config_info{block_size=\"16\"} 1.0",
        ]  # fmt: skip
        for name in ("time_to_first_token", "inter_token_latency", "e2e_request_latency"):
            for bound in (*BOUNDS, "+Inf"):
                below = 0 if bound == BOUNDS[0] else done
                lines.append(
                    f'vllm:{name}_seconds_bucket{{le="{bound}",model_name="tiny"}} {below}.0'
                )
        return "\n".join(lines) + "\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._say(200, self.model.metrics().encode(), "text/plain")
            with self.model.arrived:
                self.model.read += 1
                self.model.arrived.notify_all()
        elif self.path == "/v1/models":
            self._say(200, json.dumps({"object": "list", "data": [{"id": "tiny"}]}).encode())
        else:
            self._say(404, b"{}")

    def do_POST(self) -> None:
        model = self.model
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with model.arrived:
            model.bodies.append(body)
            number = len(model.bodies) - model.manner.warm_up
            model.at_once += 1
            model.most_at_once = max(model.most_at_once, model.at_once)
            model.arrived.notify_all()
        try:
            self._answer(body, model.manner.faults.get(number, ""))
        finally:
            with model.arrived:
                model.at_once -= 1
                model.arrived.notify_all()

    def _answer(self, body: dict[str, Any], fault: str) -> None:
        manner = self.model.manner
        chat = self.path.endswith("/chat/completions")
        strange = body.keys() & {"stream_options", "ignore_eos"} - manner.takes
        if manner.key and self.headers.get("Authorization") != f"Bearer {manner.key}":
            self._say(401, b'{"error": {"message": "Unauthorized"}}')
        elif not chat and not manner.completions:
            self._say(404, b'{"detail": "Not Found"}')
        elif strange:
            self._say(
                400, json.dumps({"error": {"message": f"unknown {sorted(strange)}"}}).encode()
            )
        elif fault.isdigit():
            self._say(int(fault), b'{"error": {"message": "too busy"}}')
        elif fault == "hang":
            self.model.over.wait(30)
        elif fault == "hang-up":
            self.close_connection = True
        else:
            self._complete(body, chat, fault)

    def _complete(self, body: dict[str, Any], chat: bool, fault: str) -> None:
        model = self.model
        prompt = body["messages"][0]["content"] if chat else body["prompt"]
        into, out = len(prompt.split()) + model.manner.extra, body["max_tokens"]
        usage = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}
        usage["prompt_tokens_details"] = {"cached_tokens": 1}
        if not model.manner.stream or not body["stream"]:
            whole = {"choices": [{"text": "a" * out, "finish_reason": "length"}], "usage": usage}
            self._say(200, json.dumps(whole).encode())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        model.over.wait(model.manner.prefill_s)
        if self._tokens(out, chat, fault):
            if model.manner.usage and "stream_options" in body:
                self._event({"choices": [], "usage": usage})
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")
            with model.arrived:
                model.counts.update({"done": 1, "in": into, "out": out})

    def _tokens(self, out: int, chat: bool, fault: str) -> bool:
        """Send the tokens; whether the answer came to its end."""
        if chat:
            self._event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for index in range(out):
            self.model.over.wait(self.model.manner.pace_s)
            if fault == "error" and index == 1:
                self._event({"error": {"message": "the engine died", "code": 500}})
                self._chunk(b"")
                return False
            if fault == "garbled" and index == 1:
                self._chunk(b"data: {not json\n\n")
            if fault == "cut" and index == 1:
                self.close_connection = True
                return False
            if fault == "drip":
                while not self.model.over.wait(0.02):
                    self._chunk(b": still here\n")
            said = {"delta": {"content": "x"}} if chat else {"text": "x"}
            self._event({"choices": [{**said, "index": 0, "finish_reason": None}]})
        return True

    def _event(self, value: Any) -> None:
        self._chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _say(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the tests look at what was asked."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what some tests are about."""


@contextmanager
def serving(**manner: Any) -> Iterator[Model]:
    """A running server for one test."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    model = handler.model = Model(f"http://127.0.0.1:{server.server_address[1]}", Manner(**manner))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield model
    finally:
        model.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
