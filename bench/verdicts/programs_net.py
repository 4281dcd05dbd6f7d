"""Programs that work over a network: downloads, uploads, and questions to a service.

They take the address of ``server`` as ``at``. Each waits in another of the kernel's ways, since
programs do: in a read, in ``poll`` with a timeout, in ``epoll`` under asyncio.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import threading
import zlib
from collections.abc import Iterator

from bench.verdicts.made import MB
from bench.verdicts.working import Words, dice, program, until


def _digest(words: Words, block: bytes) -> None:
    for _ in range(int(words.get("rounds", "1"))):
        hashlib.sha256(block).digest()
    if words.get("pack") == "1":
        zlib.compress(block)


@program
def download(words: Words) -> None:
    """Fetch a file and hash it, over ``threads`` connections."""
    many = int(words.get("threads", "1"))
    if many == 1:
        _download(words)
        return
    pool = [threading.Thread(target=_download, args=(words,)) for _ in range(many)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


def _download(words: Words) -> None:
    timeout = float(words["timeout"]) if "timeout" in words else None
    for _ in until(words):
        link = http.client.HTTPConnection(words["at"], timeout=timeout)
        link.request("GET", "/blob")
        answer = link.getresponse()
        for _ in until(words):
            block = answer.read(65_536)
            if not block:
                break
            _digest(words, block)
        else:
            link.close()
            return


@program
def fetch(words: Words) -> None:
    """Fetch a file again and again with the requests library, and hash it."""
    import requests

    for _ in until(words):
        with requests.get(f"http://{words['at']}/blob", stream=True, timeout=30) as answer:
            blocks = answer.iter_content(65_536)
            for _ in until(words):
                _digest(words, next(blocks, b""))


@program
def upload(words: Words) -> None:
    """Hash blocks and send them away."""
    block = dice(words).randbytes(MB // 4)
    for _ in until(words):
        link = http.client.HTTPConnection(words["at"])
        link.request("POST", "/sink", body=_blocks(words, block), encode_chunked=True)
        link.getresponse().read()


def _blocks(words: Words, block: bytes) -> Iterator[bytes]:
    for _ in until(words):
        _digest(words, block)
        yield block


@program
def gather(words: Words) -> None:
    """Fetch with asyncio over several connections at once."""
    asyncio.run(_gather(words))


async def _gather(words: Words) -> None:
    await asyncio.gather(*(_stream(words) for _ in range(int(words.get("links", "3")))))


async def _stream(words: Words) -> None:
    host, _, port = words["at"].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /blob HTTP/1.0\r\n\r\n")
    for _ in until(words):
        block = await reader.read(65_536)
        if not block:
            break
        _digest(words, block)
    writer.close()


@program
def ask(words: Words) -> None:
    """Ask a service that thinks for a while before its short answer."""
    for number in until(words):
        link = http.client.HTTPConnection(words["at"])
        link.request("GET", f"/think?{number}")
        link.getresponse().read()
        link.close()
