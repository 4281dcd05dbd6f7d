"""A WebSocket server to run inside a sandbox, of the standard library alone (RFC 6455): it echoes, tells what it was asked, and ends when told to."""

from __future__ import annotations

ECHO = r"""
import base64, hashlib, json, socket, struct, threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

def exactly(file, size):
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data

def frame(code, data, last=True):
    head = bytes([code | (0x80 if last else 0)])
    if len(data) < 126:
        head += bytes([len(data)])
    elif len(data) < 65536:
        head += b"\x7e" + struct.pack(">H", len(data))
    else:
        head += b"\x7f" + struct.pack(">Q", len(data))
    return head + data

def read(file):
    first, second = exactly(file, 2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", exactly(file, 2))
    elif size == 127:
        (size,) = struct.unpack(">Q", exactly(file, 8))
    mask = exactly(file, 4)
    data = exactly(file, size)
    whole = int.from_bytes(data, "little") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "little")
    return first & 15, bool(first & 0x80), whole.to_bytes(size, "little")

def serve(taken):
    file = taken.makefile("rb")
    target = file.readline().split()[1].decode()
    headers = {}
    while (line := file.readline().strip()):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if "upgrade" not in headers:
        body = b"{}"
        taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n" + body)
        taken.close()
        return
    if target == "/refuses":
        taken.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        taken.close()
        return
    key = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + GUID).digest()).decode()
    offered = headers.get("sec-websocket-protocol", "").split(",")[0].strip()
    chosen = "Sec-WebSocket-Protocol: " + offered + "\r\n" if offered else ""
    taken.sendall((
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: " + key + "\r\nSet-Cookie: a=b\r\n" + chosen + "\r\n").encode())
    taken.sendall(frame(1, json.dumps({"target": target, "headers": headers}).encode()))
    try:
        whole, kind = b"", 0
        while True:
            code, last, data = read(file)
            if code == 8:
                print("closed", struct.unpack(">H", data[:2])[0], data[2:].decode(), flush=True)
                taken.sendall(frame(8, data))
                break
            if code in (9, 10):
                continue
            kind, whole = code or kind, whole + data
            if not last:
                continue
            if whole == b"end":
                taken.sendall(frame(8, struct.pack(">H", 4002) + b"as asked"))
            elif whole == b"drop":
                taken.shutdown(socket.SHUT_RDWR)
            elif whole == b"ping":
                taken.sendall(frame(9, b"x") + frame(1, b"po", False) + frame(0, b"ng"))
            else:
                taken.sendall(frame(kind, whole))
            whole = b""
    except (EOFError, OSError):
        print("gone", flush=True)
    taken.close()

listening = socket.create_server(("127.0.0.1", 8000))
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
