"""A local web server that answers with recorded shapes, and with every fault that a record can have.

The shapes are those of the real records, made up anew and cut down; no test leaves this machine.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OVERVIEW = {
    "status": "ok",
    "status_code": 200,
    "data": {
        "type": "as",
        "resource": "209045",
        "holder": "",
        "announced": False,
        "query_starttime": "2026-10-19T08:00:00",
        "query_endtime": "2026-10-19T08:00:00",
    },
}
STATUS = {
    "status": "ok",
    "data": {
        "resource": "209045",
        "first_seen": {
            "prefix": "2a09:7000::/31",
            "origin": "209045",
            "time": "2019-08-01T08:00:00",
        },
        "last_seen": {
            "prefix": "2a09:7000::/31",
            "origin": "209045",
            "time": "2026-04-16T08:00:00",
        },
        "visibility": {
            "v4": {"ris_peers_seeing": 0, "total_ris_peers": 330},
            "v6": {"ris_peers_seeing": 0, "total_ris_peers": 310},
        },
        "announced_space": {"v4": {"prefixes": 0, "ips": 0}, "v6": {"prefixes": 0, "48s": 0}},
        "observed_neighbours": 0,
        "query_time": "2026-10-19T08:00:00",
    },
}
PREFIXES = {"status": "ok", "data": {"resource": "209045", "prefixes": []}}
AUTNUM = {
    "objectClassName": "autnum",
    "handle": "AS209045",
    "startAutnum": 209045,
    "endAutnum": 209045,
    "name": "EXAMPLE-AS",
    "country": "MT",
    "entities": [
        {"roles": ["technical"], "vcardArray": ["vcard", [["fn", {}, "text", "A person"]]]},
        {"roles": ["registrant"], "vcardArray": ["vcard", [["fn", {}, "text", "Example Ltd"]]]},
    ],
}
NETWORK = {
    "objectClassName": "ip network",
    "startAddress": "2a09:7000::",
    "endAddress": "2a09:7001:ffff:ffff:ffff:ffff:ffff:ffff",
    "name": "EXAMPLE-NET",
    "country": "MT",
}
PAGE = """<!DOCTYPE html>
<!-- <h1>AS1</h1> --><html><head><title>AS209045 Genesis Cloud Limited - bgp.he.net</title>
<style>.x { color: red }</style><script>var a = "Country of Origin: Mars";</script></head><body>
<h1><a href="/AS209045">AS209045 Genesis Cloud Limited</a></h1>
<div id="asinfo"><div class="asleft">Country of Origin:</div><div class="asright"><img> Malta</div>
AS209045 has not been visible in the global routing table since April 16, 2026<br/>
Prefixes Originated (all): 0<br/>Prefixes Originated (v4): 0<br/>Prefixes Originated (v6): 0<br/>
BGP Peers Observed (all): 2<br/></div>
<table id="table_peers6"><tr><td>1</td><td><a href="/AS16276">AS16276</a></td></tr>
<tr><td>2</td><td><a href="/AS13237">AS13237</a></td></tr></table>
<table id="table_prefixes6"><tr><td><a>2a09:7000::/31</a></td></tr><tr><td><a>2a09:7007::/36</a></td></tr>
</table></body></html>"""


@dataclass
class Reply:
    """One answer: ``cut`` bytes of the body are promised and not sent; ``held`` never ends."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    held: bool = False
    drip: bool = False
    hang_up: bool = False


def of_json(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class Records:
    """A server on this machine, its replies by path, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: dict[str, Reply] = {}
        self.asked: list[str] = []
        self.over = threading.Event()

    def answers_as_recorded(self) -> None:
        """AS209045 as it stood on 19 October 2026: not announced, and RDAP answers 404."""
        self.replies = {
            "/data/as-overview/data.json": of_json(OVERVIEW),
            "/data/routing-status/data.json": of_json(STATUS),
            "/data/announced-prefixes/data.json": of_json(PREFIXES),
            "/rdap/autnum/209045": of_json({"errorCode": 404, "title": "Not Found"}, 404),
            "/rdap/ip/2a09:7000::/31": of_json(NETWORK),
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OUVRAGE_RIPESTAT_URL": f"{self.url}/data",
            "OUVRAGE_RDAP_URL": f"{self.url}/rdap",
            "no_proxy": "127.0.0.1,localhost",
            "NO_PROXY": "127.0.0.1,localhost",
        }


class _Handler(BaseHTTPRequestHandler):
    records: Records

    def do_GET(self) -> None:
        self.records.asked.append(self.path)
        reply = self.records.replies.get(self.path.partition("?")[0], Reply(404))
        if reply.hang_up:
            return
        if reply.held and not reply.drip:
            self.records.over.wait(30)
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body) + reply.cut))
        self.end_headers()
        if reply.drip:
            while not self.records.over.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
            return
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the tests look at what was asked."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what some tests are about."""


@contextmanager
def serving() -> Iterator[Records]:
    """A running server for one test."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    records = handler.records = Records(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield records
    finally:
        records.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
