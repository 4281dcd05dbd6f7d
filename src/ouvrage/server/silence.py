"""For how long this very process has listened in vain for each node, by a clock that never jumps.

Decides nothing. When a node was last heard of is kept by the wall clock, which runs on while the server is stopped, suspended or put right:
what is silent by that alone may only not have been asked yet.
"""

from __future__ import annotations


class Silence:
    """Used by one loop."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}

    def lasted_us(self, node: str, now_us: int) -> int:
        """For how long a node that is silent has been found so, the first time included: 0."""
        return now_us - self._since.setdefault(node, now_us)

    def heard(self, node: str) -> None:
        """It is not silent."""
        self._since.pop(node, None)
