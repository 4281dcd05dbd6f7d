"""Where a webhook is sent: hosts that hang, drip, flood or announce for ever, and one that is reached over TLS."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

from ouvrage.adapters import posting
from ouvrage.adapters.clock import now_us
from ouvrage.adapters.posting import post
from ouvrage.server.tls import own_certificate

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
Answer = Callable[[socket.socket], None]


@contextmanager
def host(answer: Answer, secure: ssl.SSLContext | None = None) -> Iterator[int]:
    """A host on loopback that takes one connection, reads the request's beginning and answers as told; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def serve() -> None:
            with suppress(OSError):
                line, _ = listens.accept()
                with line:
                    if secure is not None:
                        line = secure.wrap_socket(line, server_side=True)
                    with line:
                        request = b""
                        while not request.endswith(b"\r\n\r\n{}"):
                            request += line.recv(65536)
                        answer(line)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listens.getsockname()[1]
    thread.join(5)


def drips(line: socket.socket) -> None:
    gone = threading.Event()
    for byte in b"HTTP/1.1 200 OK" * 100:
        line.sendall(bytes([byte]))
        gone.wait(0.05)


def announces(line: socket.socket) -> None:
    while True:
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def floods(line: socket.socket) -> None:
    for _ in range(10_000):  # 10 GB
        line.sendall(b"x" * 1_000_000)


def floods_after_its_answer(line: socket.socket) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
    floods(line)


def says(text: bytes) -> Answer:
    return lambda line: line.sendall(text)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (drips, None, "no answer within"),
        (announces, None, "no answer within"),
        (lambda line: line.recv(1), None, "no answer within"),
        (floods, None, "no HTTP"),
        (floods_after_its_answer, 200, "status 200"),
        (says(b""), None, "closed without an answer"),
        (says(b"SSH-2.0-OpenSSH\r\n"), None, "no HTTP"),
        (says(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 202 Fine\r\n\r\n"), 202, "202"),
        (says(b"HTTP/1.1 200\r\n\r\n"), 200, "200"),
        (says(b"HTTP/1.1 999 ?\r\n\r\n"), None, "closed without"),
        (says(b"HTTP/1.1 307 T\r\nLocation: http://169.254.169.254/\r\n\r\n"), 307, "redirect, which is not"),
    ],
)  # fmt: skip
def test_no_host_holds_us_up(
    answer: Answer, status: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "ANSWER_S", 0.4)
    began = monotonic()
    with host(answer) as port:
        came = post(f"http://127.0.0.1:{port}/x", b"{}", {}, LOOPBACK)
    assert came.status == status
    assert words in came.words or "timed out" in came.words
    assert monotonic() - began < 5


def test_it_arrives_over_tls_at_the_host_that_its_certificate_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = own_certificate(tmp_path, "localhost", now_us())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def sent(name: str) -> tuple[int | None, str]:
        with host(says(b"HTTP/1.1 204 No Content\r\n\r\n"), context) as port:
            came = post(f"https://{name}:{port}/x", b"{}", {"Ouvrage-Event": "e"}, LOOPBACK)
        return came.status, came.words

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    status, words = sent("localhost")
    assert status is None
    assert "certificate" in words.lower()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls" / "ca.pem"))
    assert sent("localhost") == (204, "status 204")
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda _, port, *__, **___: [(2, 1, 6, "", ("127.0.0.1", port))]
    )
    status, words = sent("other.example")
    assert status is None
    assert "other.example" in words
