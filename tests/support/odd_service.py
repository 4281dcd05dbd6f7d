"""A service to run inside a sandbox that answers what no server should, byte for byte, or not at all."""

from __future__ import annotations

ODD = r"""
import socket, threading, time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS = {
    b"/elsewhere": b"HTTP/1.1 302 Found\r\nLocation: ws://localhost:8000/other\r\nContent-Length: 0\r\n\r\n",
    b"/nowhere": b"HTTP/1.1 302 Found\r\nLocation: http://[x\r\nContent-Length: 0\r\n\r\n",
    b"/999": b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok",
    b"/101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + OK,
    b"/204": b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
    b"/both": b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}

def serve(taken):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = taken.recv(65536)
        if not piece:
            return
        data += piece
    path = data.split()[1]
    try:
        if path == b"/drip":
            taken.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                taken.sendall(b"drop\n")
                time.sleep(0.02)
        elif path == b"/never":
            print("asked", flush=True)
            while taken.recv(65536):
                pass
            print("left", flush=True)
        elif path == b"/deaf":
            print("asked", flush=True)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            threading.Event().wait()
        else:
            taken.sendall(ANSWERS.get(path, OK))
    except OSError:
        print("cut", flush=True)
    taken.close()

listening = socket.create_server(("127.0.0.1", 8000))
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
