"""The other end of the network programs: sends a file, swallows one, or thinks before it answers.

    python -m bench.verdicts.server HOST FILE THINK_SECONDS

Prints the port it was given. It stands outside the metered run and is never what holds it up, but
for ``/think``, which is asked for by programs that wait for a service.
"""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    content = b""
    think_s = 0.3

    def do_GET(self) -> None:
        """The file, or a short answer after a while."""
        if self.path.startswith("/think"):
            time.sleep(self.think_s)
            body = b"yes"
        else:
            body = self.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Swallow a body sent in chunks."""
        while size := int(self.rfile.readline(), 16):
            self.rfile.read(size + 2)
        self.rfile.readline()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what it does is the client's to tell."""


class Server(ThreadingHTTPServer):
    """Says nothing of a client that went away in the middle, as all of them do at their end."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing to tell."""


def main() -> None:
    """Serve until killed."""
    host, file, think = sys.argv[1:]
    Handler.content = Path(file).read_bytes()
    Handler.think_s = float(think)
    server = Server((host, 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
