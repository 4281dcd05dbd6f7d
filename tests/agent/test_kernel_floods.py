"""A kernel's log that is flooded, wrapped or of another boot: no look is held for ever, and what nobody read is said."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters import kernel_cursor
from ouvrage.adapters.kernel_cursor import MOST_READ, MOST_TOLD, KernelCursor
from ouvrage.health.driver_lines import MOST_NAMES, driver_lines, merged
from ouvrage.health.kernel_log import kernel_lines
from ouvrage.health.xid import log_findings
from ouvrage.model.health import CRITICAL, OK, WARN
from tests.health.rules import RULES
from tests.support.stopped_machine import S, stopped

XID = "NVRM: Xid (PCI:0000:41:00): 79, pid=1, name=a, GPU has fallen off the bus."


class Device:
    """``/dev/kmsg`` as the kernel gives it: a record a read, numbers, and EPIPE where some were overwritten."""

    def __init__(self, records: Iterator[str | int]) -> None:
        self.records = records

    def read(self, _descriptor: int, _size: int) -> bytes:
        told = next(self.records, errno.EAGAIN)
        if isinstance(told, int):
            raise OSError(told, os.strerror(told))
        return told.encode()


@pytest.fixture
def cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[KernelCursor, Device]]:
    (tmp_path / "kmsg").write_text("")
    made, device = KernelCursor(str(tmp_path / "kmsg")), Device(iter(()))
    made._is_file = False
    monkeypatch.setattr(kernel_cursor.os, "read", device.read)
    yield made, device
    made.close()


def record(number: int, text: str = "usb 1-1: new device") -> str:
    return f"6,{number},{number},-;{text}\n SUBSYSTEM=usb\n"


def test_a_flood_that_never_ends_ends_no_look(cursor: tuple[KernelCursor, Device]) -> None:
    made, device = cursor
    device.records = (record(number) for number in range(1 << 62))
    place, seen = None, 0
    for _ in range(3):
        piece = made.after(place, lambda line: "NVRM" in line)
        assert (piece.read, piece.more, piece.lost) == (MOST_READ, True, 0)
        place, seen = piece.place, seen + piece.read
    assert place == seen - 1


def test_a_storm_of_faults_is_told_in_pieces(cursor: tuple[KernelCursor, Device]) -> None:
    made, device = cursor
    device.records = (record(number, XID + "x" * 900) for number in range(3000))
    piece, told = made.after(None, lambda _: True), 0
    while piece.more:
        assert sum(map(len, piece.lines)) < MOST_TOLD + 2000
        told += len(piece.lines)
        piece = made.after(piece.place, lambda _: True)
    assert told + len(piece.lines) == 3000


def test_what_was_overwritten_is_counted_and_a_later_child_goes_on(
    cursor: tuple[KernelCursor, Device],
) -> None:
    made, device = cursor
    device.records = iter([record(5), record(6), errno.EPIPE, record(100), record(101)])
    piece = made.after(None, lambda _: True)
    assert (piece.read, piece.lost, piece.place) == (4, 93, 101)
    device.records = iter([record(60), record(101), record(102)])  # opened anew: from its begin
    piece = made.after(101, lambda _: True)
    assert (piece.read, piece.lost, piece.place) == (1, 0, 102)


def test_a_file_in_its_place_is_read_in_pieces_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cursor, "MOST_READ", 10)
    monkeypatch.setattr(kernel_cursor, "_BLOCK", 1000)
    path = tmp_path / "kmsg"
    text = "".join(record(number).partition("\n")[0] + "\n" for number in range(45))
    path.write_text(text + "x" * 5000 + "\n" + record(45))
    made, place, numbers = KernelCursor(str(path)), None, list[int]()
    for _ in range(30):
        piece = made.after(place, lambda line: line.startswith("6,"))
        numbers += [int(line.split(",")[1]) for line in piece.lines]
        place = piece.place
        if not piece.more:
            break
    assert numbers == list(range(46))
    assert place == path.stat().st_size


def test_lines_that_nobody_read_are_said_and_a_flood_is_followed(tmp_path: Path) -> None:
    with stopped(tmp_path / "root") as machine:
        machine.instead["time"] = lambda _: {"values": {"kept": True, "max_error_us": 900}}
        machine.go(20)
        assert machine.counted("kernel") == OK
        answer = {"lines": [], "read": 9, "lost": 1234, "place": 9, "more": True}
        machine.instead["kernel_log"] = lambda _: {"values": answer}
        machine.go(2)
        began = machine.now
        machine.go(10)
        assert machine.counted("kernel") == WARN
        reason = machine.core.memory.watches["kernel", None].result
        assert reason is not None
        assert "overwritten before they were read" in reason.reasons[0]
        assert machine.now - began <= 10 * S
        assert len(machine.core.memory.host_faults) == 1, "one flood is one fault"
        assert machine.core.memory.host_faults[0].count >= 7 * 1234, "looked at each second"
        del machine.instead["kernel_log"]
        machine.core.memory.place = None
        machine.tree.log(XID, machine.now)
        machine.go(600)
        assert machine.counted("xid", "0000:41:00") == CRITICAL
        assert "lines-lost" in {event.code for event in machine.events()}


def test_a_place_of_another_boot_is_not_held_against_this_ones_log(tmp_path: Path) -> None:
    with stopped(tmp_path / "root") as machine:
        machine.instead["time"] = lambda _: {"values": {"kept": True, "max_error_us": 900}}
        for number in range(50):
            machine.tree.log(f"usb 1-1: device {number}", machine.now)
        machine.go(20)
        assert (machine.core.memory.place or 0) > 1000
        machine.tree.put("dev/kmsg", f"4,1,1000,-;{XID}")
        machine.restart(boot="another")
        machine.go(20)
        assert machine.counted("xid", "0000:41:00") == CRITICAL


def test_a_program_that_fails_all_day_costs_neither_memory_nor_time() -> None:
    """Thousands of faults and ever new process numbers: each look judges them, and each change writes them down."""
    apart = int(RULES.bounds.us("event.merge") * 1.1)
    lines = [
        f"4,1,{number * apart},-;NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid={number}{gpu}, name=python, x"
        for number in range(250)
        for gpu in range(0x10, 0x18)
        for code in (13, 31, 43)
    ]
    faults = merged(driver_lines(kernel_lines(lines)), RULES.bounds.us("event.merge"))
    assert len(faults) == 6000
    began = time.process_time()
    log_findings(faults, RULES)
    assert time.process_time() - began < 2
    storm = (f"4,1,{n},-;NVRM: Xid (PCI:0000:41:00): 31, pid={n}, name=a, x" for n in range(5000))
    (fault,) = merged(driver_lines(kernel_lines(storm)), apart)
    assert fault.count == 5000
    assert len(fault.programs) == MOST_NAMES
