"""What nccl-tests measured, and which transport NCCL really used, from their own output.

Decides which figure counts: the bus bandwidth out of place at the largest size, since that is where a
ring is bounded by its links. NCCL's INFO lines say by which transport each pair of ranks spoke; without
a measured bandwidth a transport alone credits nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.pricing.market.gpus import model_of

_RANK = re.compile(r"#\s+Rank\s+([0-9]{1,6})\s.*?\bdevice\s+[0-9]+\s+\[[0-9a-fx:.]+\]\s+(.+)", re.I)
_ROW = re.compile(
    r"\s*([0-9]{1,16})\s+[0-9]{1,16}\s+[a-z0-9_]+\s+(?:[a-z]+|none)\s+-?[0-9]+"
    r"\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+(?:[0-9]+|N/A)"
)
_VIA = re.compile(r"NCCL INFO Channel .*? via ([A-Za-z0-9]+(?:/[A-Za-z]+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """A ring of ``ranks`` GPUs of one model: its bus bandwidth in GB/s, and transports with counts."""

    gpu: str
    ranks: int
    bus_gb_s: str
    size_bytes: int
    transports: tuple[tuple[str, int], ...]
    file: str

    @property
    def words(self) -> str:
        """``8 H100 moved 430.1 GB/s around a ring via P2P/CUMEM, as nccl.txt says``."""
        via = ", ".join(name for name, _ in self.transports)
        how = f" via {via}" if via else ", by which transport is not said"
        name = self.file.rpartition("/")[2]
        return (
            f"{self.ranks} {self.gpu} moved {self.bus_gb_s} GB/s around a ring{how}, as {name} says"
        )


def load_interconnect(path: Path) -> Interconnect:
    """What a file with the output of nccl-tests says, NCCL's INFO lines among it included."""
    return interconnect_in(str(path), read_text(path, "nccl"))


def interconnect_in(file: str, text: str) -> Interconnect:
    """What the output says; refused where it holds no ranks or no measurement."""
    ranks: dict[int, str] = {}
    best: tuple[int, str] | None = None
    transports: Counter[str] = Counter()
    for line in text.splitlines():
        rank, row, via = _RANK.match(line), _ROW.match(line), _VIA.search(line)
        if rank:
            ranks[int(rank[1])] = model_of(rank[2].strip())
        elif row and number_in(row[4]) and (best is None or int(row[1]) >= best[0]):
            best = (int(row[1]), row[4])
        elif via:
            transports[via[1]] += 1
    models = set(ranks.values())
    if best is None or len(models) != 1 or len(ranks) < 2:
        found = (
            "no row with a bandwidth"
            if best is None
            else f"{len(ranks)} ranks of {len(models)} models"
        )
        raise OuvrageError(
            "nccl/unreadable",
            f"{file} is no measurement of one ring: {found}",
            where=(file,),
            hint="keep the whole output: NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8G -f 2 -g 8 > nccl.txt",
        )
    return Interconnect(
        gpu=models.pop(),
        ranks=len(ranks),
        bus_gb_s=best[1],
        size_bytes=best[0],
        transports=tuple(transports.most_common()),
        file=file,
    )
