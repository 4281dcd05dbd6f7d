"""A node's power, taken away and given back, for the rung of the ladder that needs it: through ``remote.toml`` beside the server's store.

Decides nothing about when. One program at a time gives a machine an order; what did not happen is raised with the words of why.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ouvrage.adapters.power_order import Switch
from ouvrage.adapters.power_turn import turn
from ouvrage.adapters.remote_config import FILE, ordered_at, pace_of, power_port_of, remote_of
from ouvrage.base.errors import OuvrageError
from ouvrage.model.power import DONE

_WAITS_S = 60.0


def cycle_of(directory: Path) -> Callable[[str], None] | None:
    """What cycles a node's power by its name; None where no file says how any node is reached."""
    if not (directory / FILE).exists():
        return None
    return lambda node: _cycle(directory, node)


def _cycle(directory: Path, node: str) -> None:
    """Off, seen off, then on, seen on. Raises ``OuvrageError`` or ``PowerFault`` where that did not happen."""
    remote = remote_of(directory, node)
    with turn(ordered_at(remote), _WAITS_S):
        done = Switch(power_port_of(remote), pace_of(remote)).carry_out("cycle", hard=True)
    if done.outcome != DONE:
        raise OuvrageError("power/not-cycled", done.why or f"it is {done.after}")
