"""The table in which a machine's firmware lists its boards, memory modules and power supplies.

Decides which structures name a part, by the System Management BIOS reference specification (DMTF DSP0134), and which of
its texts say nothing: makers ship ``To Be Filled By O.E.M.`` for a serial number. What is read is the table as the
kernel passes it on, so that no tool has to be installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ouvrage.model.health import Part

_SYSTEM, _BOARD, _CHASSIS, _MEMORY, _SUPPLY, _END = 1, 2, 3, 17, 39, 127
_BLANK = re.compile(
    r"|none|no dimm|no module.*|not (?:specified|available|present|provided|applicable)|unknown|default string|n/?a"
    r"|to be filled (?:by|in).*|o\.?e\.?m\.?|system serial number|chassis serial number|x+|[0.\-\s]+|0x0+|f+|0xf+"
    r"|0?123456789",
    re.IGNORECASE,
)
_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """One structure of the table: its type, its bytes, and the texts that they number from 1."""

    type: int
    data: bytes
    texts: tuple[str, ...]

    def text(self, at: int) -> str | None:
        """The text that the byte at an offset names; None where it names none or one that says nothing."""
        number = self.data[at] if at < len(self.data) else 0
        return told(self.texts[number - 1]) if 0 < number <= len(self.texts) else None

    def whole(self, at: int, size: int) -> int | None:
        """An unsigned number at an offset; None where the structure ends before it."""
        field = self.data[at : at + size]
        return int.from_bytes(field, "little") if len(field) == size else None


def told(text: str | None) -> str | None:
    """A text without what stands in for nothing; None where nothing is left."""
    plain = " ".join((text or "").split())[:_LONGEST]
    return None if _BLANK.fullmatch(plain) else plain


def structures(table: bytes) -> Iterator[Structure]:
    """Every whole structure of a table, in its order; what is cut off at its end is left out."""
    at = 0
    while at + 4 <= len(table):
        type, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0 or at + length > len(table):
            return
        texts = table[at + length : end].split(b"\0") if end > at + length else []
        yield Structure(
            type=type,
            data=table[at : at + length],
            texts=tuple(each.decode("ascii", "replace") for each in texts),
        )
        if type == _END:
            return
        at = end + 2


def smbios_parts(table: bytes) -> tuple[Part, ...]:
    """The boards, memory modules and power supplies of a table; empty sockets are no parts."""
    found: list[Part] = []
    for each in structures(table):
        if each.type in _PLACES:
            found.append(_board(each, _PLACES[each.type]))
        elif each.type == _MEMORY:
            found += _module(each)
        elif each.type == _SUPPLY:
            found += _supply(each)
    return tuple(_apart(found))


_PLACES = {_SYSTEM: "system", _BOARD: "board", _CHASSIS: "chassis"}


def _board(each: Structure, slot: str) -> Part:
    """The chassis has its version where the others have their product; it names no product."""
    chassis = each.type == _CHASSIS
    return Part(
        kind="board", slot=slot, maker=each.text(4), model=None if chassis else each.text(5),
        serial=each.text(7), version=each.text(6), size=None,
    )  # fmt: skip


def _module(each: Structure) -> Iterator[Part]:
    size = each.whole(0x0C, 2)
    if not size:
        return  # an empty socket
    bank, socket = each.text(0x11), each.text(0x10)
    yield Part(
        kind="dimm",
        slot=" ".join(word for word in (bank, socket) if word) or "not told",
        maker=each.text(0x17),
        model=each.text(0x1A),
        serial=each.text(0x18),
        version=None,
        size=_megabytes(each, size),
    )


def _megabytes(each: Structure, size: int) -> str | None:
    """0xFFFF is not known; 0x7FFF sends to a longer field; the top bit says kibibytes."""
    if size == 0xFFFF:
        return None
    if size == 0x7FFF:
        longer = each.whole(0x1C, 4)
        return None if longer is None else _size((longer & 0x7FFFFFFF) << 10)
    return _size(size & 0x7FFF if size & 0x8000 else size << 10)


def _size(kibibytes: int) -> str:
    for unit, many in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if kibibytes >= many and kibibytes % many == 0:
            return f"{kibibytes // many} {unit}"
    return f"{kibibytes} KiB"


def _supply(each: Structure) -> Iterator[Part]:
    """A power supply; bit 1 of its characteristics says whether one is there."""
    features, watts = each.whole(0x0E, 2), each.whole(0x0C, 2)
    if features is not None and not features & 0b10:
        return
    yield Part(
        kind="psu",
        slot=each.text(0x05) or each.text(0x06) or "not told",
        maker=each.text(0x07),
        model=each.text(0x0A) or each.text(0x06),
        serial=each.text(0x08),
        version=each.text(0x0B),
        size=None if watts in (None, 0, 0x8000) else f"{watts} W",
    )


def _apart(parts: list[Part]) -> Iterator[Part]:
    """Firmware may give two parts the same place; the later one gets a number."""
    seen: dict[tuple[str, str], int] = {}
    for part in parts:
        key = (part.kind, part.slot)
        seen[key] = many = seen.get(key, 0) + 1
        yield part if many == 1 else Part(
            kind=part.kind, slot=f"{part.slot} ({many})", maker=part.maker, model=part.model,
            serial=part.serial, version=part.version, size=part.size,
        )  # fmt: skip
