"""What a plug or a metrics page may make this machine do: nothing but read its own answer."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ouvrage.adapters.wall_meter import fetched


def test_a_redirect_is_not_followed():
    asked: list[str] = []

    class Sends(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302 if self.path == "/meter" else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with HTTPServer(("127.0.0.1", 0), Sends) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(OSError, match="302"):
            fetched(f"http://127.0.0.1:{server.server_port}/meter")
        server.shutdown()
    assert asked == ["/meter"]
