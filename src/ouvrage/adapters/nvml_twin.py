"""The in-memory twin of ``nvml``: GPUs made of plain numbers, for tests.

Passes the same contract tests as the real binding does on the stand-in library, so what is built on
it is built on what the library does. It cannot hang or crash: that takes the real thing.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.adapters.gpu_port import (
    ABOUT,
    NAMES,
    PLACE,
    Identity,
    Lost,
    Reading,
    Unavailable,
    cleaned,
)
from ouvrage.adapters.limit_port import CardLimits, Refused

USUAL: dict[str, int | None] = dict.fromkeys(NAMES) | {
    "busy_percent": 0,
    "memory_busy_percent": 0,
    "memory_used_bytes": 0,
    "power_average_mw": 71_000,
    "power_instant_mw": 71_000,
    "energy_mj": 0,
    "temperature_c": 35,
    "memory_temperature_c": 45,
    "clock_sm_mhz": 1980,
    "clock_memory_mhz": 2619,
    "clock_reasons": 0,
    "pcie_tx_kb_s": 0,
    "pcie_rx_kb_s": 0,
    "pcie_generation": 5,
    "pcie_width": 16,
    "ecc_corrected": 0,
    "ecc_uncorrected": 0,
    "power_limit_mw": 700_000,
}


class NvmlTwin:
    """``gpus`` GPUs; ``values`` and ``about`` of each can be changed, ``lost`` names the lost."""

    def __init__(self, gpus: int = 1, unavailable: Unavailable | None = None) -> None:
        self.values: list[dict[str, int | None]] = [dict(USUAL) for _ in range(gpus)]
        self.about: list[Identity] = [_about(index) for index in range(gpus)]
        self.lost: set[int] = set()
        self.xids: list[tuple[int | None, int]] = []
        self._unavailable = unavailable

    def open(self) -> int:
        """How many there are, or why they cannot be read."""
        if self._unavailable:
            raise self._unavailable
        return len(self.values)

    def describe(self, index: int) -> Identity:
        """Who the GPU is."""
        self._look(index)
        return dict(self.about[index])

    def read(self, index: int, tick: int) -> Reading:
        """What it was set to; in MIG mode without its load, as the real one."""
        self._look(index)
        values = [self.values[index][name] for name in NAMES]
        if self.about[index]["mig"]:
            values[PLACE["busy_percent"]] = values[PLACE["memory_busy_percent"]] = None
        if tick % len(self.values) != index:
            values[PLACE["pcie_tx_kb_s"]] = values[PLACE["pcie_rx_kb_s"]] = None
        return cleaned(values)

    def errors(self) -> list[tuple[int | None, int]]:
        """What it was given since it was last asked."""
        found, self.xids = self.xids, []
        return found

    def _look(self, index: int) -> None:
        if index in self.lost or index >= len(self.values):
            raise Lost("GPU is lost")


class LimitsTwin:
    """The twin of ``nvml_limits``: ``cards`` by index, ``refusal`` for every attempt to set."""

    def __init__(self, gpus: int = 1) -> None:
        self.cards = [_limits(index) for index in range(gpus)]
        self.refusal: Refused | None = None
        self.lost: set[int] = set()

    def open(self) -> None:
        """Nothing to load."""

    def look(self) -> list[CardLimits]:
        """Every card that is not lost."""
        return [card for card in self.cards if card.index not in self.lost]

    def set(self, uuid: str, milliwatts: int) -> int:
        """Set a limit within what the card allows."""
        for card in self.look():
            if card.uuid == uuid:
                if self.refusal:
                    raise self.refusal
                if not (card.least_mw or 0) <= milliwatts <= (card.most_mw or 0):
                    raise Refused("driver", "Invalid Argument")
                self.cards[card.index] = replace(card, limit_mw=milliwatts)
                return milliwatts
        raise Refused("lost" if any(card.uuid == uuid for card in self.cards) else "driver", uuid)


def _limits(index: int) -> CardLimits:
    return CardLimits(
        index=index,
        uuid=f"GPU-00000000-0000-4000-8000-{index:012x}",
        name="Ouvrage Stub GPU",
        limit_mw=700_000,
        least_mw=200_000,
        most_mw=700_000,
        default_mw=700_000,
        persistence=1,
        mig=False,
        processes=[],
    )


def _about(index: int) -> Identity:
    known: Identity = {
        "index": index,
        "uuid": f"GPU-00000000-0000-4000-8000-{index:012x}",
        "name": "Ouvrage Stub GPU",
        "serial": f"9000000{index:03d}",
        "pci": f"00000000:{16 + index:02X}:00.0",
        "driver": "575.57.08",
        "memory_bytes": 85_520_809_984,
        "power_limit_mw": 700_000,
        "power_limit_default_mw": 700_000,
        "clock_sm_max_mhz": 1980,
        "pcie_generation_max": 5,
        "pcie_width_max": 16,
        "mig": 0,
        "ecc": 1,
    }
    return {name: known[name] for name in ABOUT.split()}
