"""NCCL's INFO log and the table of nccl-tests, made up after their forms of several versions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.meter.nccl_watch import NcclWatch
from ouvrage.metering.nccl_log import NcclLog, link_test_in, time_of
from ouvrage.model.around import Calls, RunCommunication, Transport

HEAD = "box:100:200 [0] NCCL INFO "
LOG = f"""\
box:100:100 [0] NCCL INFO cudaDriverVersion 12040
NCCL version 2.21.5+cuda12.4
{HEAD}Channel 00/08 :    0   1   2   3
{HEAD}Channel 01/08 :    0   1   2   3
{HEAD}Trees [0] 1/-1/-1->0->-1
{HEAD}Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
{HEAD}Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
box:101:201 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/3/GDRDMA
box2:90:91 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via NET/IB/0/GDRDMA
{HEAD}Connected all rings
{HEAD}ncclCommInitRank comm 0x55 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 42000 commId 0x9 - Init COMPLETE
{HEAD}AllReduce: opCount 1a sendbuff 0x7f recvbuff 0x7f count 1048576 datatype 7 op 0 root 0 comm 0x55 [nranks=4] stream 0x1
{HEAD}AllReduce: opCount 1b sendbuff 0x7f recvbuff 0x7f count 1048576 datatype 7 op 0 root 0 comm 0x55 [nranks=4] stream 0x1
{HEAD}AllGather: opCount 1c sendbuff 0x7f recvbuff 0x7f count 256 datatype 9 op 0 root 0 comm 0x55 [nranks=4] stream 0x1
box:101:201 [1] NCCL INFO AllReduce: opCount 1a sendbuff 0x7f recvbuff 0x7f count 1048576 datatype 7 op 0 root 0 comm 0x55 [nranks=4] stream 0x1
"""


def said(text: str) -> RunCommunication | None:
    log = NcclLog()
    log.feed(text)
    log.finish()
    return log.said("0" * 32, "nccl.txt")


def test_ways_ranks_and_calls_are_read():
    found = said(LOG)
    assert found is not None
    assert (found.library, found.ranks, found.heard, found.rings) == ("2.21.5+cuda12.4", 4, 3, 8)
    assert found.transports == (
        Transport(name="P2P/CUMEM", channels=2, pairs=1),
        Transport(name="NET/IB/GDRDMA", channels=1, pairs=1),
    )
    assert found.calls == (
        Calls(name="AllGather", size_bytes=256 * 2 * 4, ranks=4, calls=1),
        Calls(name="AllReduce", size_bytes=4 << 20, ranks=4, calls=2),
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Ring 00 : 35 -> 34 [send] via NET/Socket/0", "NET/Socket"),
        ("Channel 00 : 0[1a000] -> 1[1b000] via P2P/direct pointer", "P2P/direct pointer"),
        ("Channel 00 : 0[6000] -> 1[7000] via P2P/IPC/read", "P2P/IPC"),
        ("Channel 01 : 7[7] -> 2[2] via SHM/direct/direct", "SHM/direct"),
        ("Channel 03/0 : 3[3] -> 7[3] [send] via NET/IBext_v8/3/GDRDMA", "NET/IBext_v8/GDRDMA"),
        ("Channel 00/1 : 0[0] -> 5[5] via P2P/indirect/1[1]", "P2P/indirect"),
    ],
)
def test_forms_of_several_versions(line: str, name: str):
    found = said(HEAD + line + "\n")
    assert found is not None
    assert [each.name for each in found.transports] == [name]


def test_what_is_said_of_nvlink_switches():
    yes = said(HEAD + "NVLS comm 0x55 headRank 0 nHeads 8 buffSize 4194304\n")
    no = said(HEAD + "24 coll channels, 0 nvls channels, 32 p2p channels\n")
    assert yes is not None
    assert no is not None
    assert (yes.nvls, no.nvls) == (True, False)


def test_other_programs_lines_are_no_log():
    assert said("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\nNCCL is a library\n") is None


def test_lines_among_a_commands_output_are_found_however_it_is_cut():
    whole = LOG.encode()
    for size in (1, 7, 64, len(whole)):
        watch = NcclWatch()
        for at in range(0, len(whole), size):
            watch.look("stdout", whole[at : at + size])
        (found,) = watch.said("0" * 32)
        expected = said(LOG)
        assert expected is not None
        assert (found.transports, found.calls) == (expected.transports, expected.calls)


@given(st.binary(max_size=200), st.integers(0, len(LOG)))
def test_any_bytes_may_come(piece: bytes, at: int):
    watch = NcclWatch()
    whole = LOG.encode()
    watch.look("stderr", whole[:at] + piece + whole[at:])
    watch.said("0" * 32)


TABLE = """\
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid   4242 on       node device  0 [0x17] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4242 on       node device  1 [0x2a] NVIDIA H100 80GB HBM3
        1024           256     float     sum      -1    10.00    0.10    0.10      0    12.10    0.00    0.00      0
     1048576        262144     float     sum      -1    50.00   20.97   20.97      0    50.10    0.00    0.00      0
"""


def test_a_call_takes_what_was_measured_for_its_size():
    test = link_test_in(TABLE, run="0" * 32, source="t.txt")
    assert test is not None
    assert (test.ranks, test.gpu) == (2, "NVIDIA H100 80GB HBM3")
    us = Fraction(1, 1_000_000)
    assert time_of(test, "AllReduce", 8) == (10 * us, False)
    assert time_of(test, "AllReduce", 1024) == (10 * us, True)
    assert time_of(test, "AllReduce", (1024 + 1048576) // 2) == (30 * us, True)
    assert time_of(test, "AllReduce", 2 << 20) == (100 * us, False)
    assert time_of(test, "AllGather", 1024) is None


def test_one_rank_or_no_rows_measure_nothing():
    assert link_test_in(TABLE.replace("Rank  1", "Rank  0"), run="0" * 32, source="t") is None
    assert link_test_in("\n".join(TABLE.splitlines()[:3]), run="0" * 32, source="t") is None
