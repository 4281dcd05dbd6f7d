"""Which orders this process has just given to which runner, so that a repetition is no reason to answer at once.

Decides what is news. It stands in memory alone: forgotten, an order is merely given once more, which runners take well.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ouvrage.wire.runner import Order


class Given:
    """When each order was last given, by node."""

    def __init__(self, repeat_us: int) -> None:
        self._repeat_us = repeat_us
        self._lock = threading.Lock()
        self._nodes: dict[str, dict[tuple[str, str], int]] = {}

    def news(self, node: str, orders: Sequence[Order], now_us: int) -> bool:
        """Whether any of these was not given to the node a moment ago."""
        with self._lock:
            given = self._nodes.get(node, {})
        since = now_us - self._repeat_us
        return any(given.get(_key(order), since) <= since for order in orders)

    def note(self, node: str, orders: Sequence[Order], now_us: int) -> None:
        """These are given now; what is not among them was done."""
        with self._lock:
            self._nodes[node] = {_key(order): now_us for order in orders}


def _key(order: Order) -> tuple[str, str]:
    return (order.order, order.attempt)
