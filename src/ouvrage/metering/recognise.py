"""Recognise finished units in what a command prints.

Decides where lines begin and end in bytes that come in reads of any size, and whether a line's
moment is known. What a line means is decided by ``recognisers``; how many units finished by
``metering.units``, from all the marks of a run. It never raises, whatever bytes come, and how the
bytes were cut into reads changes which moments are known but not what is counted.

Two units in one read came together out of a buffer, so their moments are not known. The same holds
for a read that is a whole number of blocks and breaks off within a line: that is what a full buffer
looks like. A line that a later read only closes (a bar that is about to be redrawn) has the moment
at which it was there to be seen.
"""

from __future__ import annotations

import re

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.recognisers.scan import BLOCK, LONGEST_LINE, Scanner, clean, rules_for
from ouvrage.metering.recognisers.serving_log import ServingLog
from ouvrage.metering.recognisers.tally import Mark, Tally

__all__ = ["BLOCK", "DEFAULT_UNIT", "LONGEST_LINE", "Mark", "Recogniser", "compile_unit_regex"]

_MOST_DIGITS = 15
_BREAKS = b"\r\n"
DEFAULT_UNIT = "epoch"


def compile_unit_regex(text: str) -> re.Pattern[str]:
    """The pattern of ``--unit-regex``. Raises ``OuvrageError`` ``unit/regex``."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise OuvrageError(
            "unit/regex",
            f"--unit-regex {text!r} does not compile: {error}",
            hint=r"a Python regular expression whose group, if any, is the number: 'step (\d+) '",
        ) from error


class Recogniser:
    """Turns the output of one command into marks; one object for all its streams."""

    def __init__(self, unit: str | None, regex: str | None) -> None:
        if regex is None:
            self._scanner: Scanner | _Matcher = Scanner(rules_for(unit, DEFAULT_UNIT))
        else:
            self._scanner = _Matcher(unit or "unit", compile_unit_regex(regex))
        self._carry: dict[str, bytes] = {}
        self._seen: dict[str, int | None] = {}

    def feed(self, stream: str, data: bytes, t: int) -> list[Mark]:
        """The marks completed by one read of a stream at ``t``."""
        held, seen = self._carry.get(stream, b""), self._seen.get(stream)
        marks: list[Mark] = []
        short, full = len(data) < BLOCK, len(data) % BLOCK == 0
        if held and data[:1] in (b"\r", b"\n"):
            marks = self._scanner.read(held + data[:1], seen, short=short)
            held, data = b"", data[1:]
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        tail = data[cut:] if cut else held + data[: LONGEST_LINE - len(held)]
        moment = None if tail and full else t
        if cut:
            marks += self._scanner.read(held + data[:cut], moment, short=short)
        self._carry[stream] = tail[:LONGEST_LINE]
        self._seen[stream] = moment
        return marks

    def flush(self, t: int) -> list[Mark]:
        """The marks of last lines that no line break ended, when the streams are closed."""
        marks: list[Mark] = []
        for stream, tail in list(self._carry.items()):
            self._carry[stream] = b""
            marks += self._scanner.read(tail, t, short=True)
        return marks + self._scanner.rest()

    @property
    def serving(self) -> ServingLog:
        """What a model server told in its log beside its units."""
        return self._scanner.serving

    def notes(self) -> list[tuple[str, str]]:
        """What a reader should know of the lines that were not counted: codes and words."""
        told: dict[str, str] = {}
        for tally in self._scanner.tallies.values():
            for code, words in _notes(tally):
                told[code] = f"{told[code]}; {words}" if code in told else words
        return list(told.items())


class _Matcher:
    """The user's own pattern at work; every line is looked at."""

    def __init__(self, name: str, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._tally = Tally(name, "regex")
        self.tallies = {(name, "regex"): self._tally}
        self.serving = ServingLog()

    def read(self, block: bytes, t: int | None, *, short: bool) -> list[Mark]:
        """The marks of these complete lines."""
        for raw in re.split(rb"[\r\n]", block):
            line = clean(raw[:LONGEST_LINE]).decode("utf-8", "replace")
            match = self._pattern.search(line) if line else None
            if match is not None:
                self._tally.matched(_number_in(match))
        return self._tally.settle(t, short=short)

    def rest(self) -> list[Mark]:
        """Nothing is held back: each match is a mark."""
        return []


def _number_in(match: re.Match[str]) -> int | None:
    """The number a match gives its unit: the group ``n``, else the first group, when numeric."""
    groups = match.groupdict()
    text: str | None = groups["n"] if "n" in groups else (match.groups() or ("",))[0]
    if not text or not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def _notes(tally: Tally) -> list[tuple[str, str]]:
    notes: list[tuple[str, str]] = []
    if tally.totals.backwards:
        words = f"{tally.totals.backwards} lines ran backwards and were not counted"
        notes.append(("unit/backwards", f"{tally.name}: {words}"))
    if tally.rates:
        words = "counted from mean rates in the log, a rate times the time between two lines"
        notes.append(("unit/rate", f"{tally.name}: {words}"))
    if len(tally.ranks) > 1:
        leader = (tally.leader or b"").decode("ascii", "replace")
        words = f"{len(tally.ranks)} ranks print the same; rank {leader} is counted"
        notes.append(("unit/ranks", f"{tally.name}: {words}"))
    return notes
