"""Network interfaces and InfiniBand ports as the kernel lists them under ``/sys``.

Decides which are looked at (those with hardware behind them) and which counters are read; what they mean is
``health/links``'. ``sys`` stands in for ``/sys``. Nothing is sent and no driver is asked by a call of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

from ouvrage.health.links import LinkSeen

_NIC_COUNTERS = ("rx_errors", "tx_errors", "rx_dropped", "rx_crc_errors")
_IB_COUNTERS = (
    "link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "port_xmit_discards",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors",
)  # fmt: skip


def links(sys: str) -> list[LinkSeen]:
    """Every interface with hardware behind it, then every port of InfiniBand or RoCE."""
    return [*_nics(Path(sys, "class/net")), *_ports(Path(sys, "class/infiniband"))]


def _nics(place: Path) -> list[LinkSeen]:
    return [
        LinkSeen(
            name=name, kind="nic", up=_carrier(place / name), changes=_number(place / name / "carrier_changes"),
            counters=_counters(place / name / "statistics", _NIC_COUNTERS),
        )
        for name in _names(place)
        if (place / name / "device").exists()
    ]  # fmt: skip


def _carrier(place: Path) -> bool | None:
    """Whether there is a carrier; an interface that is switched off refuses to say."""
    told = _number(place / "carrier")
    if told is None:
        return False if _word(place / "operstate") == "down" else None
    return told == 1


def _ports(place: Path) -> list[LinkSeen]:
    return [
        LinkSeen(
            name=f"{card}/{port}", kind="ib", up=_active(_word(place / card / "ports" / port / "state")),
            changes=None, counters=_counters(place / card / "ports" / port / "counters", _IB_COUNTERS),
        )
        for card in _names(place)
        for port in _names(place / card / "ports")
    ]  # fmt: skip


def _active(state: str | None) -> bool | None:
    """``4: ACTIVE`` is up; every other state is not."""
    return None if state is None else state.startswith("4")


def _counters(place: Path, names: tuple[str, ...]) -> dict[str, int]:
    read = {name: _number(place / name) for name in names}
    return {name: value for name, value in read.items() if value is not None}


def _number(path: Path) -> int | None:
    word = _word(path)
    return int(word) if word is not None and word.isdecimal() else None


def _word(path: Path) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return None


def _names(place: Path) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return []
