"""``nvidia-smi topo -m``: a table of our own after the driver's form, and real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.topology import gpu_links, nic_links, topology_in, topology_words

FOUR = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV12\tSYS\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tNV12\tSYS\tNODE\t32-63,96-127\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNV12\t X \tSYS\tPIX\t32-63,96-127\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
)
"""Made up: two pairs of GPUs, each with NVLink, and a network card on either side."""
SPACED = """\
        GPU0    GPU1    mlx5_0  CPU Affinity
GPU0     X      PHB     SYS     0-15
GPU1    PHB      X      SYS     0-15
mlx5_0  SYS     SYS      X
"""
"""The older form, as it looks when pasted: no columns for NUMA, cards by their own names."""


def read(text: str):
    return topology_in(text, run="0" * 32, source="topology.txt")


def test_links_cards_and_processors_are_read():
    found = read(FOUR)
    assert [row.name for row in found.rows] == ["GPU0", "GPU1", "GPU2", "GPU3", "NIC0", "NIC1"]
    assert found.rows[3].links == ("SYS", "SYS", "NV12", "X", "SYS", "PIX")
    assert (found.rows[2].cpus, found.rows[2].numa) == ("32-63,96-127", "1")
    assert (found.rows[4].cpus, found.rows[4].numa) == (None, None)
    assert found.nics == ("mlx5_0", "mlx5_1")
    assert gpu_links(found) == (("NV12", 2), ("SYS", 4))
    assert nic_links(found) == (("PIX", 1), ("PXB", 2), ("NODE", 1))
    assert topology_words(found).startswith(
        "4 GPUs: 2 pairs by NV12 (NVLink), 4 pairs by SYS (PCIe"
    )


def test_the_older_form_is_read():
    found = read(SPACED)
    assert gpu_links(found) == (("PHB", 1),)
    assert (found.rows[0].cpus, found.rows[0].numa, found.rows[2].name) == ("0-15", None, "mlx5_0")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1"),
        ("GPU0 alone\n", ":1"),
        (FOUR.replace("NV12\t X \tSYS", "NV12\tWIRE\tSYS", 1), ":3"),
        ("\n".join(FOUR.splitlines()[:3]), ":1"),
        (FOUR.replace("GPU1", "GPU0", 1), ":1"),
    ],
    ids=["empty", "no table", "no link", "cut", "a device twice"],
)
def test_what_is_no_table_is_refused_with_its_line(text: str, where: str):
    with pytest.raises(OuvrageError) as refused:
        read(text)
    assert refused.value.code == "topology/unreadable"
    assert refused.value.where[0] == f"topology.txt{where}"


@given(st.text(max_size=30), st.integers(0, len(FOUR)), st.integers(0, 80))
def test_a_spoilt_table_is_read_or_refused(piece: str, start: int, length: int):
    try:
        found = read(FOUR[:start] + piece + FOUR[start + length :])
    except OuvrageError:
        return
    assert all(len(row.links) == len(found.rows) for row in found.rows)


def test_real_captures():
    data = os.environ.get("OUVRAGE_DATA")
    if not data:
        pytest.skip("OUVRAGE_DATA names no directory with real files")
    seen = 0
    for path in sorted(Path(data, "nvidia_smi").glob("linux*.txt")):
        text = path.read_text("utf-8", "replace")
        part = text[text.index("# $ nvidia-smi topo -m") :][:3000]
        found = read(part)
        assert found.rows[0].name == "GPU0"
        assert found.rows[0].links[0] == "X"
        assert found.rows[0].cpus
        seen += 1
    assert seen
