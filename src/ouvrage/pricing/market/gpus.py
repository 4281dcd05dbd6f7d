"""GPU models by one name each, and how fast one is beside another.

Decides which spellings mean the same model, and between which bounds the speed of one GPU lies as a
multiple of another's: the ratio of their peak rates of arithmetic and the ratio of their memory
bandwidths. Real work lies between the two nearly always; where, only a measurement tells. The peaks
are those that vendors publish; they were not read again at the source, so that every ratio made from
them is ``assumed``. A model that is not in the table has no ratio, and none is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A GPU model: memory in GiB, dense 16-bit TFLOP/s with 32-bit sums, memory GB/s."""

    name: str
    memory_gib: int
    tflops: Fraction
    gb_s: int


_TABLE = """\
K80 12 4.1 240
P100 16 21.2 732
P4 8 5.5 192
P40 24 11.8 346
V100 16 125 900
V100-32GB 32 125 900
T4 16 65 320
A2 16 18 200
A10 24 125 600
A10G 24 70 600
A16 16 18 200
A30 24 165 933
A40 48 149.7 696
A100 40 312 1555
A100-80GB 80 312 2039
L4 24 121 300
L40 48 181 864
L40S 48 362 864
H100 80 989 3350
H100-PCIe 80 756 2000
H100-NVL 94 835 3938
H200 141 989 4800
H20 96 148 4000
GH200 96 989 4000
B200 180 2250 8000
B300 270 2250 8000
RTX2080Ti 11 53.8 616
RTX3060 12 25.6 360
RTX3060Ti 8 32.4 448
RTX3070 8 40.6 448
RTX3070Ti 8 43.5 608
RTX3080 10 59.5 760
RTX3080Ti 12 68.2 912
RTX3090 24 71 936
RTX3090Ti 24 80 1008
RTX4060 8 30.2 272
RTX4060Ti 16 44.1 288
RTX4070 12 58.3 504
RTX4070Ti 12 80.2 504
RTX4080 16 97.5 717
RTX4090 24 165.2 1008
RTX5070Ti 16 87.9 896
RTX5080 16 112.6 960
RTX5090 32 209.5 1792
RTX4000Ada 20 106 360
RTX5000Ada 32 130 576
RTX6000Ada 48 182 960
RTXA2000 6 32 288
RTXA4000 16 76.7 448
RTXA5000 24 111 768
RTXA6000 48 154.8 768
RTXPRO6000 96 252 1792
MI210 64 181 1638
MI250 128 362 3277
MI300X 192 1307 5300
MI325X 256 1307 6000
"""

MODELS: dict[str, Model] = {
    name: Model(name=name, memory_gib=int(memory), tflops=Fraction(tflops), gb_s=int(gb_s))
    for name, memory, tflops, gb_s in (line.split() for line in _TABLE.splitlines())
}

_ALIASES = {
    "A6000": "RTXA6000",
    "A5000": "RTXA5000",
    "A4000": "RTXA4000",
    "RTX6000": "RTX6000Ada",
    "6000ADA": "RTX6000Ada",
    "A10080G": "A100-80GB",
    "A100SXM": "A100-80GB",
    "A100PCIE": "A100",
    "A100SXM4": "A100",
    "H100SXM": "H100",
    "H100SXM5": "H100",
    "H10080GB": "H100",
    "H100MEGA": "H100",
    "H100MEGA80GB": "H100",
    "H200SXM": "H200",
    "H200141GB": "H200",
    "V100SXM2": "V100",
    "V100SXM3": "V100-32GB",
    "B200SXM": "B200",
    "RTXPRO6000S": "RTXPRO6000",
    "RTXPRO6000WS": "RTXPRO6000",
    "RTXPRO6000MAXQ": "RTXPRO6000",
    "RTX3080NVIDIA": "RTX3080",
}
_BY_TEXT = {
    **{re.sub("[^A-Z0-9]", "", name.upper()): name for name in MODELS},
    **_ALIASES,
}
_NOISE = re.compile(r"\b(?:NVIDIA|AMD|GEFORCE|TESLA|QUADRO|INSTINCT|GRAPHICS)\b")


def model_of(text: str, memory_mib: int | None = None) -> str:
    """The name of a model as it is called here; a text that is none keeps its words.

    ``memory_mib`` tells apart models that are sold with two sizes under one name.
    """
    words = _NOISE.sub(" ", text.upper().replace("_", " "))
    squeezed = re.sub("[^A-Z0-9]", "", words)
    name = _BY_TEXT.get(squeezed)
    if name is None and re.fullmatch("[2345]0[0-9]0(TI|S)?", squeezed):
        name = _BY_TEXT.get(f"RTX{squeezed}")
    if name is None:
        return " ".join(text.split())
    return _sized(name, memory_mib)


def _sized(name: str, memory_mib: int | None) -> str:
    if memory_mib is None:
        return name
    if name in ("A100", "A100-80GB"):
        return "A100-80GB" if memory_mib > 60_000 else "A100"
    if name in ("V100", "V100-32GB"):
        return "V100-32GB" if memory_mib > 24_000 else "V100"
    return name


def speed(source: str, target: str) -> tuple[Fraction, Fraction] | None:
    """The least and the most by which ``target`` is faster than ``source``; None: not known."""
    if source == target:
        return Fraction(1), Fraction(1)
    before, after = MODELS.get(source), MODELS.get(target)
    if before is None or after is None:
        return None
    ratios = (after.tflops / before.tflops, Fraction(after.gb_s, before.gb_s))
    return min(ratios), max(ratios)
