"""What nccl-tests measured, and which transport NCCL really used, from their own output.

Decides which figure counts: the bus bandwidth out of place at the largest size, since that is where a
ring is bounded by its links. NCCL's INFO lines say by which transport each pair of ranks spoke; without
a measured bandwidth a transport alone credits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.metering.nccl_log import NcclLog, link_test_in, transports_of
from ouvrage.model.around import RunCommunication, RunLinkTest, Transport
from ouvrage.pricing.market.gpus import model_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """A ring of ``ranks`` GPUs of one model: its bus bandwidth in GB/s, and transports with counts."""

    gpu: str
    ranks: int
    bus_gb_s: str
    size_bytes: int
    transports: tuple[Transport, ...]
    file: str

    @property
    def words(self) -> str:
        """``8 H100 moved 430.1 GB/s around a ring via P2P/CUMEM, as nccl.txt says``."""
        via = ", ".join(each.name for each in self.transports)
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
    log = NcclLog()
    log.feed(text)
    log.finish()
    said, test = log.said("", file), link_test_in(text, run="", source=file)
    found = None if test is None else interconnect_of(test, [said] if said else [])
    if found is None:
        told = "no ranks with a bandwidth" if test is None else f"{test.ranks} ranks on {test.gpu}"
        raise OuvrageError(
            "nccl/unreadable",
            f"{file} is no measurement of one ring of one model: {told}",
            where=(file,),
            hint="keep the whole output: NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8G -f 2 -g 8 > nccl.txt",
        )
    return found


def interconnect_of(test: RunLinkTest, said: Sequence[RunCommunication]) -> Interconnect | None:
    """A recorded measurement as evidence; None where its GPUs are of several models, or nothing moved."""
    rows = [row for row in test.rows if Fraction(row.bus_gb_s)]
    if not rows or " and " in test.gpu:
        return None
    best = max(rows, key=lambda row: row.size_bytes)
    return Interconnect(
        gpu=model_of(test.gpu),
        ranks=test.ranks,
        bus_gb_s=best.bus_gb_s,
        size_bytes=best.size_bytes,
        transports=transports_of(said),
        file=test.source,
    )
