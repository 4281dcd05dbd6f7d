"""A service to run inside a sandbox: it answers, streams, tells what it was asked, and breaks when told to."""

from __future__ import annotations

SERVICE = r"""
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

go, ill = threading.Event(), threading.Event()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body, kind="application/json", **more):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, *pieces, wait=None, usage=True):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
            if number and wait:
                wait.wait(20)
            told = {"choices": [{"delta": {"content": piece}}]}
            self.chunk(b"data: " + json.dumps(told).encode() + b"\n\n")
        if usage:
            told = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(pieces)}}
            self.chunk(b"data: " + json.dumps(told).encode() + b"\n\n")
        self.chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def do(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        path = self.path.partition("?")[0]
        if path == "/health":
            self.whole(503 if ill.is_set() else 200, b"{}")
        elif path == "/ill":
            ill.set()
            self.whole(200, b"{}")
        elif path == "/go":
            go.set()
            self.whole(200, b"{}")
        elif path == "/slow":
            self.stream("one", "two", wait=go)
        elif path == "/v1/chat/completions":
            asked = json.loads(body)
            if asked.get("stream"):
                self.stream("a", "b", "c", usage=asked.get("usage", True))
            else:
                usage = {"prompt_tokens": 5, "completion_tokens": 11}
                self.whole(200, json.dumps({"usage": usage}).encode())
        elif path == "/fails":
            self.whole(500, b"{}")
        elif path == "/breaks":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
        elif path == "/ends":
            os._exit(3)
        elif path == "/cookie":
            self.whole(200, b"<script>", "text/html", Set_Cookie="ouvrage_session=x",
                       Content_Security_Policy="default-src *", X_Own="kept")
        else:
            told = {"method": self.command, "target": self.path, "headers": dict(self.headers.items()),
                    "bytes": len(body), "text": body[:100].decode("latin-1")}
            self.whole(200, json.dumps(told).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do

server = ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
print("listening", flush=True)
server.serve_forever()
"""
