"""Finds the lines of an output that a rule may read, and gives each to one rule only.

Decides which lines are looked at at all: those that hold a rule's needle, found by plain searches,
since a program may print gigabytes without one. The first rule that reads a line has it, so no line
counts twice. A rank's own mark before the line (``[rank1]:``, ``[1,0]<stdout>:``) is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ouvrage.metering.recognisers import bars, inference, media, training
from ouvrage.metering.recognisers.rule import Rule
from ouvrage.metering.recognisers.tally import Mark, Tally
from ouvrage.metering.recognisers.words import word_rule

LONGEST_LINE = 8192
BLOCK = 4096
_MOST_TALLIES = 64
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_BREAK = re.compile(rb"[\r\n]")
_RANK = re.compile(
    rb"\s{0,4}(?:\[(?:rank|default|trainer|worker)\s?(\d{1,6})\]:?"
    rb"|\[[^\[\]]{0,60}?\b\d{1,6},(\d{1,6})\]<std(?:out|err)>:?"
    rb"|\(?rank[ =](\d{1,6})[):|]?)\s?",
    re.IGNORECASE,
)
RULES: tuple[Rule, ...] = (*training.RULES, *inference.RULES, *media.RULES)


def rules_for(unit: str | None, default: str) -> tuple[Rule, ...]:
    """Every rule, in the order in which they are tried, with one for the unit's own word."""
    words = dict.fromkeys((unit or default, default))
    return (*RULES, *(word_rule(word) for word in words), *bars.RULES)


def clean(raw: bytes) -> bytes:
    """A line as a person sees it: no escapes, no control characters, no break at its end."""
    return _ESCAPE.sub(b"", raw).rstrip(b"\r\n")


class Scanner:
    """The rules at work on one command's output."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._needles = tuple(dict.fromkeys(r.needle for r in rules if not r.folded))
        self._folded = tuple(dict.fromkeys(r.needle for r in rules if r.folded))
        self.tallies: dict[tuple[str, str], Tally] = {}

    def read(self, block: bytes, t: int | None, *, short: bool) -> list[Mark]:
        """The marks of these complete lines, which one read completed at ``t``."""
        touched: dict[tuple[str, str], Tally] = {}
        for raw in self._candidates(block):
            tally = self._read_line(clean(raw))
            if tally is not None:
                touched[tally.name, tally.via] = tally
        return [mark for tally in touched.values() for mark in tally.settle(t, short=short)]

    def rest(self) -> list[Mark]:
        """What no mark has said yet, when the output has ended."""
        return [mark for tally in self.tallies.values() for mark in tally.rest()]

    def _candidates(self, block: bytes) -> Iterator[bytes]:
        """The lines that hold a needle, in their order."""
        edges: dict[int, int] = {}
        for needle in self._needles:
            _collect(block, block, needle, edges)
        if self._folded:
            lowered = block.lower()
            for needle in self._folded:
                _collect(block, lowered, needle, edges)
        for start in sorted(edges):
            yield block[start : min(edges[start], start + LONGEST_LINE)]

    def _read_line(self, line: bytes) -> Tally | None:
        rank = _RANK.match(line)
        if rank:
            line = line[rank.end() :]
        for rule in self._rules:
            if not rule.folded and rule.needle not in line:
                continue
            reading = rule.read(line)
            if reading is not None:
                tally = self._tally(reading.unit or rule.unit, rule.via)
                if tally is not None:
                    tally.take(reading, rank[rank.lastindex or 0] if rank else None)
                return tally
        return None

    def _tally(self, name: str, via: str) -> Tally | None:
        found = self.tallies.get((name, via))
        if found is None and len(self.tallies) < _MOST_TALLIES:
            found = self.tallies[name, via] = Tally(name, via)
        return found


def _collect(block: bytes, searched: bytes, needle: bytes, edges: dict[int, int]) -> None:
    """Where the lines begin and end in which the needle is found."""
    done = 0
    at = searched.find(needle)
    while at >= 0:
        start = max(block.rfind(b"\n", done, at), block.rfind(b"\r", done, at), done - 1) + 1
        stop = _BREAK.search(block, at)
        done = stop.end() if stop else len(block)
        edges[start] = done
        at = searched.find(needle, done)
