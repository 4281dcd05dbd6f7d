"""Watts of GPUs for owners without a meter: what stands in until a plug says better.

Decides nothing about energy; these are only numbers with what is known of where they are from, and every
figure made from them is assumed. The sensor of a GPU is not the power bill: two public reports found 200 W
at the wall beside 90 W on the sensor (50 beside 30 when idle), and 896 W beside two GPUs of 245 W.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.pricing.market.gpus import model_of

WALL_LOAD = (
    Fraction(896, 490),
    "times 1.83 for the machine (896 W at the wall for two GPUs of 245 W, a public report: "
    "mitchross/talos-argocd-proxmox 1845, August 2026)",
)
WALL_IDLE = (
    Fraction(50, 30),
    "times 1.67 for the machine (50 W at the wall for an idle GPU of 30 W, a public report: "
    "nicehash/NiceHashMiner 2489, September 2021)",
)
WALL_MOST = Fraction(200, 90)
"""The same report under load: 200 W at the wall beside 90 W on the sensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Watts of one GPU alone, ``idle`` None where no capture of it is known, and where they are from."""

    load: Fraction
    idle: Fraction | None
    source: str


_EXPORTER = "captured from a real card by nvidia_gpu_exporter (e656cd8, 2026)"
_LISTED = "board power as shops and reviews list it; NVIDIA's own page was not read"
OTHER_IDLE = (Fraction("25.92"), f"an idle RTX 4080 SUPER, {_EXPORTER}")


def _listed(watts: int, form: str = "") -> Board:
    return Board(load=Fraction(watts), idle=None, source=_LISTED + form)


_SXM = " (the SXM module; a PCIe card takes less)"


WATTS: dict[str, Board] = {
    "H200": Board(load=Fraction("627.4"), idle=Fraction("77.7"), source=_EXPORTER),
    "H100": Board(load=Fraction("632.0"), idle=Fraction("69.9"), source=_EXPORTER),
    "RTX5090": _listed(575),
    "RTX5080": _listed(360),
    "RTX4090": _listed(450),
    "RTX4080": _listed(320),
    "RTX3090Ti": _listed(450),
    "RTX3090": _listed(350),
    "RTX3080": _listed(320),
    "RTXA6000": _listed(300),
    "RTX6000Ada": _listed(300),
    "L40S": _listed(350),
    "A100": _listed(400, _SXM),
    "A100-80GB": _listed(400, _SXM),
    "A40": _listed(300),
    "L4": _listed(72),
    "T4": _listed(70),
}


def board_of(model: str | None) -> Board | None:
    """The numbers for a model however it is written: ``RTX 4090``, ``NVIDIA GeForce RTX 4090``."""
    return None if model is None else WATTS.get(model_of(model))
