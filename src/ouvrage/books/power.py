"""Watts of GPUs for owners without a meter: what stands in until a plug says better.

Decides nothing about energy; these are only the sourced numbers. The sensor of a GPU is not the power
bill: two public reports found 200 W at the wall beside 90 W on the sensor, and 896 W beside two GPUs
of 245 W.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.pricing.market.gpus import model_of

WALL_LOAD = (
    Fraction(896, 490),
    "times 1.83 for the machine (896 W at the wall for two GPUs of 245 W, a public report)",
)
WALL_IDLE = (
    Fraction(200, 90),
    "times 2.22 for the machine (200 W at the wall for a GPU of 90 W, a public report)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Watts of one GPU alone, ``idle`` None where nobody published it, and where they are from."""

    load: Fraction
    idle: Fraction | None
    source: str


_EXPORTER = "captured from a real card by nvidia_gpu_exporter (e656cd8, 2026)"
_NVIDIA = "board power as NVIDIA publishes it"
OTHER_IDLE = (Fraction("25.92"), f"an idle RTX 4080 SUPER, {_EXPORTER}")


def _published(watts: int) -> Board:
    return Board(load=Fraction(watts), idle=None, source=_NVIDIA)


WATTS: dict[str, Board] = {
    "H200": Board(load=Fraction("627.4"), idle=Fraction("77.7"), source=_EXPORTER),
    "H100": Board(load=Fraction("632.0"), idle=Fraction("69.9"), source=_EXPORTER),
    "RTX5090": _published(575),
    "RTX5080": _published(360),
    "RTX4090": _published(450),
    "RTX4080": _published(320),
    "RTX3090Ti": _published(450),
    "RTX3090": _published(350),
    "RTX3080": _published(320),
    "RTXA6000": _published(300),
    "RTX6000Ada": _published(300),
    "L40S": _published(350),
    "A100": _published(400),
    "A100-80GB": _published(400),
    "A40": _published(300),
    "L4": _published(72),
    "T4": _published(70),
}


def board_of(model: str | None) -> Board | None:
    """The numbers for a model however it is written: ``RTX 4090``, ``NVIDIA GeForce RTX 4090``."""
    return None if model is None else WATTS.get(model_of(model))
