"""Which lines are the kernel's, in every shape in which they come, and what the driver says in them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.adapters.prometheus_text import series
from ouvrage.health.driver_lines import driver_lines, event_of, merged, pci_name
from ouvrage.health.kernel_log import BOOT, WALL, kernel_lines, lines_in
from ouvrage.health.xid import check_log
from tests.health.rules import RULES, judged, one, xid

TEXT = (
    "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)

SHAPES = {
    "raw record": (f"4,3964,206764307,-;{TEXT}", 206_764_307, BOOT),
    "raw record with more fields": (f"4,3964,206764307,c,caller=T12;{TEXT}", 206_764_307, BOOT),
    "dmesg": (f"[  206.764307] {TEXT}", 206_764_307, BOOT),
    "dmesg with the caller": (f"[  206.764307][  T123] {TEXT}", 206_764_307, BOOT),
    "dmesg -T": (f"[Sun Feb 23 16:24:18 2025] {TEXT}", 1_740_327_858_000_000, WALL),
    "dmesg -x": (f"kern  :err   : [  206.764307] {TEXT}", 206_764_307, BOOT),
    "dmesg iso": (f"2025-02-23T16:24:18,500000+01:00 {TEXT}", 1_740_324_258_500_000, WALL),
    "syslog": (f"Feb 23 16:24:18 host-1 kernel: {TEXT}", None, None),
    "syslog with its time": (f"Feb  3 16:24:18 h kernel: [  206.764307] {TEXT}", 206_764_307, BOOT),
    "syslog iso": (f"2025-02-23T16:24:18.5+00:00 h kernel: {TEXT}", 1_740_327_858_500_000, WALL),
    "journal short-monotonic": (f"[  206.764307] host-1 kernel: {TEXT}", 206_764_307, BOOT),
    "journal json": (
        json.dumps({"_TRANSPORT": "kernel", "MESSAGE": TEXT, "_SOURCE_MONOTONIC_TIMESTAMP": "206764307"}),
        206_764_307,
        BOOT,
    ),
    "bare": (TEXT, None, None),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_kernels_line_is_read(shape: str) -> None:
    line, at_us, clock = SHAPES[shape]
    found = list(kernel_lines([line]))
    assert [(each.text, each.at_us, each.clock) for each in found] == [(TEXT, at_us, clock)]
    assert one(line).verdict == "CRITICAL"


FORGED = {
    "a record that a program wrote": f"12,3964,206764307,-;{TEXT}",
    "another facility in dmesg -x": f"user  :notice: [  206.764307] {TEXT}",
    "a program in syslog": f"Feb 23 16:24:18 host-1 evil[123]: {TEXT}",
    "a program named like the kernel": f"Feb 23 16:24:18 host-1 my-kernel: {TEXT}",
    "a program in the journal": json.dumps({"_TRANSPORT": "stdout", "MESSAGE": TEXT}),
    "a program in iso syslog": f"2025-02-23T16:24:18.5+00:00 h evil: {TEXT}",
    "a program's own line, which goes on behind a separator": f"Feb 23 16:24:18 h evil: a\u2028Feb 23 16:24:18 h kernel: {TEXT}",
    "another separator": f"Feb 23 16:24:18 h evil: a\x0bFeb 23 16:24:18 h kernel: {TEXT}",
    "text before it": "[  206.764307] evil said NVRM: Xid (PCI:0000:9b:00): 79, x",
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_a_line_that_only_looks_like_the_drivers_counts_for_nothing(forged: str) -> None:
    plain = "[  100.000000] usb 1-1: new device"
    result = one(*lines_in(f"{plain}\n{FORGED[forged]}\n"))
    assert result.verdict == "OK"


def test_a_bare_line_among_lines_with_a_shape_counts_for_nothing() -> None:
    assert one("[  100.000000] usb 1-1: new device", TEXT).verdict == "OK"


@pytest.mark.parametrize(
    "lines", [(), ("",), ("hello", "world"), ("Feb 23 16:24:18 h sshd[1]: hi",)]
)
def test_what_is_no_kernels_log_is_unknown_and_never_ok(lines: tuple[str, ...]) -> None:
    assert one(*lines).verdict == "UNKNOWN"


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid error: xyz",
        "NVRM: Xid (invalid): 79",
        "NVRM: Xid (PCI:0000:9b:00): , nothing",
        "NVRM: Xid (PCI:0000:9b:00): 12345678901, too long",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): what, Fatal",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
    ],
)
def test_what_is_no_error_line_of_the_driver_is_none(text: str) -> None:
    assert one(f"[  100.000000] {text}").verdict == "OK"


@pytest.mark.parametrize(
    ("line", "code", "device", "program"),
    [
        ("NVRM: Xid (PCI:0000:04:00): 119, pid=12, name=nvidia-smi, Timeout", 119, "0000:04:00", "nvidia-smi[12]"),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None),
        ("NVRM: Xid (PCI:0000:04:00): 31, pid='<unknown>', name=<unknown>, Ch 8", 31, "0000:04:00", None),
        ("NVRM: Xid (PCI:0000:04:00): 43, pid=9, name=ray::WorkerDict, Ch 8", 43, "0000:04:00", "ray::WorkerDict[9]"),
        ("NVRM: Xid (PCI:0000:04:00): 62, 3c1f(7b30) 00000000", 62, "0000:04:00", None),
        ("NVRM: Xid (PCI:0000:04:00): 149 NETIR_LINK_EVT", 149, "0000:04:00", None),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE", 94, "0000:01:00", "[7194]"),
        ("NVRM: Xid (PCI:00000000:9B:00.0): 48, pid=1, name=x", 48, "0000:9b:00", "x[1]"),
    ],
)  # fmt: skip
def test_the_parts_of_a_line(line: str, code: int, device: str, program: str | None) -> None:
    (told,) = driver_lines(kernel_lines([f"[  1.000000] {line}"]))
    assert (told.code, told.device, told.program) == (code, device, program)


def test_a_gpu_that_is_gone_without_a_code_counts_as_79() -> None:
    two = (
        "[  100.000000] NVRM: The NVIDIA GPU 0000:9b:00.0 (PCI ID: 10de:2330)",
        "[  100.000001] NVRM: installed in this system has fallen off the bus and is not responding.",
    )
    result = one(*two)
    assert (result.verdict, result.device, result.action) == ("CRITICAL", "0000:9b:00", "reboot")
    named = one("[  100.000000] NVRM: GPU 0000:83:00.0: GPU has fallen off the bus.")
    assert (named.verdict, named.device) == ("CRITICAL", "0000:83:00")


def test_a_gpu_that_is_gone_with_and_without_its_code_is_one_fault() -> None:
    lines = [
        f"[  100.000000] {TEXT}",
        "[  100.100000] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.",
    ]
    faults = merged(driver_lines(kernel_lines(lines)), 180_000_000)
    assert [(fault.code, fault.count) for fault in faults] == [(79, 2)]


def test_an_switchs_error_is_judged_by_its_own_word() -> None:
    line = (
        "[  100.000000] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, {}, Link 46 sourcetrack"
    )
    assert one(line.format("Fatal")).verdict == "CRITICAL"
    assert one(line.format("Non-fatal")).verdict == "OK"


def test_lines_of_one_fault_are_merged_however_long_it_storms() -> None:
    storm = [xid(119, at=100.0 + 60 * n) for n in range(30)]
    later = xid(119, at=100.0 + 60 * 29 + 181)
    faults = merged(driver_lines(kernel_lines([*storm, later])), 180_000_000)
    assert [fault.count for fault in faults] == [30, 1]
    assert faults[0].first_us == 100_000_000


def test_one_fault_is_stated_as_one_event() -> None:
    lines = [
        xid(119, at=100.0),
        xid(119, at=106.0),
        "[  107.000000] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, x",
    ]
    first, switch = (
        event_of(f, "n1", "b") for f in merged(driver_lines(kernel_lines(lines)), 180_000_000)
    )
    assert (first.code, first.count, first.first_monotonic_us, first.last_monotonic_us) == (
        "119",
        2,
        100_000_000,
        106_000_000,
    )
    assert (first.line, first.device, switch.code) == (lines[0], "0000:9b:00", "sxid")


def test_a_fault_from_before_a_repair_can_be_left_out() -> None:
    lines = [xid(48, at=100.0), "[ 9000.000000] usb 1-1: new device"]
    assert check_log(lines, RULES)[0].verdict == "CRITICAL"
    assert check_log(lines, RULES, 3600 * 1_000_000)[0].verdict == "OK"
    assert check_log(lines, RULES, 9000 * 1_000_000)[0].verdict == "CRITICAL"
    assert check_log(lines[:1], RULES, 3600 * 1_000_000, 9_000_000_000)[0].verdict == "OK"
    assert check_log([], RULES, 1)[0].verdict == "UNKNOWN"


def test_lines_without_a_time_are_one_fault() -> None:
    lines = [f"Feb 23 16:24:18 h kernel: {TEXT}"] * 3
    assert [f.count for f in merged(driver_lines(kernel_lines(lines)), 1)] == [3]


def test_each_gpu_that_a_log_names_has_its_own_result() -> None:
    results = judged(xid(119), xid(31, pci="PCI:0000:1b:00"))
    assert [(r.device, r.verdict) for r in results] == [
        ("0000:1b:00", "OK"),
        ("0000:9b:00", "CRITICAL"),
    ]


def test_addresses_have_one_form() -> None:
    assert {pci_name(t) for t in ("00000000:9B:00.0", "PCI:0000:9b:00", "0000:9b:00.0")} == {
        "0000:9b:00"
    }
    assert pci_name("no address") is None


@given(st.lists(st.text(max_size=80), max_size=8))
def test_whatever_a_file_holds_it_is_judged_and_never_breaks(lines: list[str]) -> None:
    for result in judged(*lines):
        assert result.verdict in ("OK", "WARN", "CRITICAL", "UNKNOWN")


@given(st.text(max_size=60))
def test_whatever_follows_a_code_it_is_read(rest: str) -> None:
    (line,) = [" ".join(rest.splitlines())]
    assert judged(xid(48, line))[0].verdict == "CRITICAL"


DATA = Path(os.environ.get("OUVRAGE_DATA", ""), "kernel_log")


@pytest.mark.skipif(not os.environ.get("OUVRAGE_DATA"), reason="OUVRAGE_DATA is not set")
@pytest.mark.parametrize(
    ("name", "verdict"),
    [("dmesg-with-xid-119.log", "CRITICAL"), ("kmsg.1.log", "OK"), ("kmsg.2.peermem.log", "OK"),
     ("fabricmanager.log", "UNKNOWN")],
)  # fmt: skip
def test_real_logs(name: str, verdict: str) -> None:
    assert one(*(DATA / name).read_text(errors="replace").splitlines()).verdict == verdict


def test_nuls_that_a_power_cut_left_hide_no_line() -> None:
    assert (
        one("[    0.000000] Linux version 6.8", f"{chr(0) * 4096}[    1.000000] {TEXT}").verdict
        == "CRITICAL"
    )


def test_a_line_that_is_far_too_long_is_read_in_no_time() -> None:
    """Its length must not count squared: these would take hours."""
    word = "a" * 300_000
    began = time.process_time()
    told = one(f"[    1.000000] NVRM: Xid (PCI:0000:9b:00): 145, {word}", f"4,{word},1,-;x")
    assert told.verdict == "CRITICAL"
    assert list(series("nvidia_smi_index{" + word + "} 1")) == [("nvidia_smi_index", {}, "1")]
    assert time.process_time() - began < 5
