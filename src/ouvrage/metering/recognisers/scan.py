"""Finds the lines of an output that a rule may read, and gives each to one rule only.

Decides which lines are looked at at all: those that hold a rule's needle, found by plain searches,
since a program may print gigabytes without one. The first rule that reads a line has it, so no line
counts twice. A rank's own mark before the line (``[rank1]:``, ``[1,0]<stdout>:``) is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ouvrage.metering.recognisers import bars, inference, media, training
from ouvrage.metering.recognisers.rule import TOLD, WIPED, Rule
from ouvrage.metering.recognisers.serving_log import ServingLog
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
_SHARED = (b"rompt",)
_RARE = frozenset({b"%", b"|", b"=", b'"', b"(", b"\r", b"\x1b", b"["})
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
    """A line as a person sees it: no escapes, no control characters."""
    return _ESCAPE.sub(b"", raw)


class Scanner:
    """The rules at work on one command's output."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._words = {r.needle for r in rules if r.folded}
        self._anchors = tuple(_anchors(rules, self._words))
        self._chosen: dict[int, tuple[Rule, ...]] = {}
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.serving = ServingLog()

    def read(self, block: bytes, t: int | None, *, short: bool) -> list[Mark]:
        """The marks of these complete lines, which one read completed at ``t``."""
        touched: dict[tuple[str, str], Tally] = {}
        for raw, rules in self._candidates(block):
            tally = self._read_line(raw, rules, t)
            if tally is not None:
                touched[tally.name, tally.via] = tally
        return [mark for tally in touched.values() for mark in tally.settle(t, short=short)]

    def rest(self) -> list[Mark]:
        """What no mark has said yet, when the output has ended."""
        return [mark for tally in self.tallies.values() for mark in tally.rest()]

    def _candidates(self, block: bytes) -> Iterator[tuple[bytes, tuple[Rule, ...]]]:
        """The lines that hold an anchor, in their order, with the rules that may read them."""
        stops: dict[int, int] = {}
        masks: dict[int, int] = {}
        lowered = block.lower()
        for bit, (gate, anchor) in enumerate(self._anchors):
            if gate in block:
                searched = lowered if anchor in self._words else block
                for start, stop in _lines_with(block, searched, anchor):
                    stops[start] = stop
                    masks[start] = masks.get(start, 0) | 1 << bit
        for start in sorted(stops):
            line = block[start : min(stops[start], start + LONGEST_LINE)]
            yield line, self._rules_for(masks[start])

    def _rules_for(self, mask: int) -> tuple[Rule, ...]:
        rules = self._chosen.get(mask)
        if rules is None:
            held = {anchor for bit, (_, anchor) in enumerate(self._anchors) if mask >> bit & 1}
            rules = tuple(r for r in self._rules if _anchor_of(r, self._words) in held)
            self._chosen[mask] = rules
        return rules

    def _read_line(self, raw: bytes, rules: Sequence[Rule], t: int | None) -> Tally | None:
        line = clean(raw).rstrip(b"\r\n")
        rank = _RANK.match(line)
        if rank:
            line = line[rank.end() :]
        for rule in rules:
            reading = rule.read(line) if rule.folded or rule.needle in raw else None
            if reading is None:
                continue
            if reading.told:
                self.serving.take(reading, t)
            if reading.mark in (WIPED, TOLD):
                return self._wipe() if reading.mark == WIPED else None
            tally = self._tally(reading.unit or rule.unit, rule.via)
            if tally is not None:
                tally.take(reading, rank[rank.lastindex or 0] if rank else None)
            return tally
        return None

    def _wipe(self) -> None:
        for tally in self.tallies.values():
            tally.totals.wiped = True

    def _tally(self, name: str, via: str) -> Tally | None:
        found = self.tallies.get((name, via))
        if found is None and len(self.tallies) < _MOST_TALLIES:
            found = self.tallies[name, via] = Tally(name, via)
        return found


def _anchors(rules: Sequence[Rule], words: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """What is searched for: few strings that every needle holds, each with its rarest byte.

    A byte is searched for many times faster than a string, so a string is searched for only where
    its byte is. A word has no such byte, since it may be in either case.
    """
    done: set[bytes] = set()
    for rule in rules:
        anchor = _anchor_of(rule, words)
        if anchor not in done:
            done.add(anchor)
            own = _RARE & {anchor[i : i + 1] for i in range(len(anchor))}
            yield b"" if anchor in words else rule.gate or min(own, default=b""), anchor


def _anchor_of(rule: Rule, words: set[bytes]) -> bytes:
    if rule.folded:
        return rule.needle
    shared = (*(word for word in words if word in rule.needle.lower()), *_SHARED)
    return next((anchor for anchor in shared if anchor in rule.needle.lower()), rule.needle)


def _lines_with(block: bytes, searched: bytes, anchor: bytes) -> Iterator[tuple[int, int]]:
    """Where the lines begin and end that hold the anchor."""
    done = 0
    at = searched.find(anchor)
    while at >= 0:
        start = max(block.rfind(b"\n", done, at), block.rfind(b"\r", done, at), done - 1) + 1
        stop = _BREAK.search(block, at)
        done = stop.end() if stop else len(block)
        yield start, done
        at = searched.find(anchor, done)
