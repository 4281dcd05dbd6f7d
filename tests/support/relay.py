"""A relay in front of an HTTP server: what is asked gets through, and answers can be lost on their way back."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Relay:
    """Listens on the loopback. ``lose(marker)``: the next request whose bytes hold it is passed on, and its answer is not;
    ``lose_answer(marker)``: the next answer whose bytes hold it is not. Who is not there is not reached through it either.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        self._to = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._lost: list[bytes] = []
        self._lost_answers: list[bytes] = []
        self.lost = 0

    def lose(self, marker: str) -> None:
        self._lost.append(marker.encode())

    def lose_answer(self, marker: str) -> None:
        self._lost_answers.append(marker.encode())

    def __enter__(self) -> Relay:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self._to) as server:
            losing = threading.Event()
            back = threading.Thread(target=self._back, args=(server, client, losing), daemon=True)
            back.start()
            while data := _read(client):
                for marker in [each for each in self._lost if each in data]:
                    self._lost.remove(marker)
                    losing.set()
                server.sendall(data)
            _end(server)
            back.join(30)

    def _back(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        while data := _read(server):
            for marker in [each for each in self._lost_answers if each in data]:
                self._lost_answers.remove(marker)
                losing.set()
            if losing.is_set():
                self.lost += 1
                break
            client.sendall(data)
        _end(client)


def _read(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 20)
    except OSError:
        return b""


def _end(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)
