"""The output of nccl-tests, made up after its form, as evidence that several GPUs gain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.adapters.nccl import interconnect_in
from ouvrage.base.errors import OuvrageError

OUTPUT = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on       node device  0 [0x17] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4242 on       node device  1 [0x2a] NVIDIA H100 80GB HBM3
node:4242:4301 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node:4242:4301 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node:4242:4302 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [send] via NET/Socket/0
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.34    0.00    0.00      0    12.10    0.00    0.00      0
  1073741824     268435456     float     sum      -1   2496.1  430.17  430.17      0   2490.0  431.22  431.22      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 215.3
"""


def test_the_largest_size_and_the_transports_count():
    found = interconnect_in("out/nccl.txt", OUTPUT)
    assert (found.gpu, found.ranks, found.bus_gb_s, found.size_bytes) == (
        "H100",
        2,
        "430.17",
        2**30,
    )
    ways = [(each.name, each.channels) for each in found.transports]
    assert ways == [("P2P/CUMEM", 2), ("NET/Socket", 1)]
    assert found.words == (
        "2 H100 moved 430.17 GB/s around a ring via P2P/CUMEM, NET/Socket, as nccl.txt says"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        OUTPUT.replace("Rank  1", "Rank  0"),
        OUTPUT.replace("1 [0x2a] NVIDIA H100 80GB HBM3", "1 [0x2a] NVIDIA A100-SXM4-80GB"),
        "\n".join(line for line in OUTPUT.splitlines() if "sum" not in line),
    ],
    ids=["empty", "one rank", "two models", "no measurement"],
)
def test_what_measures_no_ring_is_refused(text: str):
    with pytest.raises(OuvrageError) as refused:
        interconnect_in("nccl.txt", text)
    assert refused.value.code == "nccl/unreadable"
    assert refused.value.hint


@given(st.text(max_size=40), st.integers(0, len(OUTPUT)), st.integers(0, 60))
def test_spoilt_output_is_read_or_refused(piece: str, start: int, length: int):
    text = OUTPUT[:start] + piece + OUTPUT[start + length :]
    try:
        found = interconnect_in("nccl.txt", text)
    except OuvrageError:
        return
    assert found.ranks >= 2
