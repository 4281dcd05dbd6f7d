"""Progress bars as tqdm draws them: ``train:  45%|████▌     | 45/100 [00:03<00:04, 12.1it/s]``.

Decides what a bar counts: the units that it names, ``iteration`` where it names none (``it``), and
``epoch`` where the bar is called so. Bars of preparation and of checking, told by the word they
begin with, and bars of bytes are no units of work.
"""

from __future__ import annotations

import re

from ouvrage.metering.recognisers.rule import END, HEAD, TOTAL, WIPED, Reading, Rule, found, said

ASIDE = (
    r"adding requests|captur|casting|checking|class\s+images|download|eval|fetch|filter|generating \w+ split|load|map\b|materializ|prepar"
    r"|pull|push|resolv|sanity|sav|shuffl|test|tokeniz|upload|val|verif|warm"
)
"""Beginnings of descriptions that say: this is not the work itself."""

_ASIDE = re.compile(rb"\W*(?:" + ASIDE.encode() + rb")", re.IGNORECASE)
_KNOWN = (
    rb"^(?P<desc>.{0,200}?)(?::?\s{1,4}|^)\d{1,3}%\|[^|]*\|\s(?P<n>\d{1,12})/(?P<of>\d{1,12})\s"
    rb"\[[\d:]+<[\d:?]+,\s*(?P<rate>[\d.]+|\?)\s*(?:(?P<unit>[^\s/\d\]]{1,16})/s|s/(?P<per>[^\s/\d\],]{1,16}))"
)
_OPEN = (
    rb"^(?P<desc>.{0,200}?)(?::\s|^)(?P<n>\d{1,12})(?P<of>)(?P<name>[^\s/\d\]]{1,16})\s"
    rb"\[[\d:]+,\s*(?P<rate>[\d.]+|\?)\s*(?:(?P<unit>[^\s/\d\]]{1,16})/s|s/(?P<per>[^\s/\d\],]{1,16}))"
)
_BYTES = frozenset({b"B", b"iB", b"kB", b"MB", b"GB", b"KiB", b"MiB", b"GiB", b"b", b"bytes"})


def _bar(line: bytes) -> Reading | None:
    match = found(_KNOWN, line)
    return _reading(match) if match else None


def _open_bar(line: bytes) -> Reading | None:
    match = found(_OPEN, line)
    if match is None or match["name"] != (match["unit"] or match["per"]):
        return None
    return _reading(match)


def _reading(match: re.Match[bytes]) -> Reading | None:
    unit = match["unit"] or match["per"]
    desc = match["desc"].strip(b" :")
    if unit in _BYTES or _ASIDE.match(desc):
        return None
    n, of = int(match["n"]), int(match["of"]) if match["of"] else None
    first = match["rate"] == b"?"
    if desc.lower() in (b"epoch", b"epochs") and unit in (b"it", b"epoch"):
        head = Reading(HEAD, n + 1, of, first=True, unit="epoch")
        return head if first else Reading(END, n, of, unit="epoch")
    name = "iteration" if unit == b"it" else unit.decode("utf-8", "replace")
    series = re.sub(rb"\d+", b"", desc) + b"/" + (match["of"] or b"")
    return Reading(TOTAL, n, of, series=series, first=first, unit=name)


RULES = (
    Rule("tqdm", "iteration", b"%|", _bar),
    Rule("tqdm", "iteration", b"it [", _open_bar),
    *(
        Rule("tqdm", "iteration", b" " * 10 + end, said(rb"^\s{10,}$", WIPED))
        for end in (b"\r", b"\x1b[A")
    ),
)
