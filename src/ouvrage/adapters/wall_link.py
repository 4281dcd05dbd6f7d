"""Ways of urllib's to a plug or meter whose every connection is cut off at a deadline.

Decides nothing but that: what is asked, and what an answer says, is ``wall_meter``'s. They stand apart because ``http.client``
is loaded only by those who ask over a network.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler

from ouvrage.adapters.cut_off import CutOff


class Watched(HTTPHandler):
    """Over plain HTTP."""

    def __init__(self, cut: CutOff) -> None:
        super().__init__()
        self._cut = cut

    def http_open(self, req: Any) -> Any:
        """As urllib does, over a connection that is watched."""
        cut = self._cut

        class Connection(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                cut.watch(self.sock)

        return self.do_open(Connection, req)


class WatchedTls(HTTPSHandler):
    """Over TLS; its handshake is held by the socket's own timeout."""

    def __init__(self, cut: CutOff) -> None:
        super().__init__()
        self._cut = cut

    def https_open(self, req: Any) -> Any:
        """As urllib does, over a connection that is watched."""
        cut = self._cut

        class Connection(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                cut.watch(self.sock)

        return self.do_open(Connection, req)
