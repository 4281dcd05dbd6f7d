"""Recognise finished units in what a command prints.

Decides whether a line ends a unit (``Epoch 3/10 loss 0.21``), heads one (``Epoch 3/10`` alone, as
Keras prints it) or shows progress inside one (a bar, ``Epoch [3/10], Step [100/600]``), and whether
its moment is known. It does not decide how many units finished: ``metering.units`` does, from all
the marks of a run. It never raises, whatever bytes come, and how the bytes were cut into reads
changes which moments are known but not which marks there are.

Two marks of one sort in one read came together out of a buffer, so their moments are not known. The
same holds for a read that is a whole number of blocks and breaks off within a line: that is what a
full buffer looks like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ouvrage.base.errors import OuvrageError

LONGEST_LINE = 8192
BLOCK = 4096
_MOST_DIGITS = 15
DEFAULT_UNIT = "epoch"

_BREAK = re.compile(rb"[\r\n]")
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_STAMP = (
    rb"(?:\[[^\[\]]{1,60}\]"
    rb"|\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    rb"|(?:debug|info|warn(?:ing)?|error|critical)(?::[\w.]{0,60}:?)?"
    rb"|[a-z][\w.]{0,60}(?= - | \| ))"
)
_BEFORE = rb"[\s=*#>~|-]{0,40}(?:" + _STAMP + rb"[\s=*#>~|:,-]{1,10}){0,5}(?:train(?:ing)?\s)?"
_AFTER = (
    rb"[\s:=#\[(]{1,6}(\d{1,9})(?!\w|[.,]\d)(?:\s?(?:/|of)\s?(\d{1,9})(?!\w|[.,]\d))?[\])]?(.*)"
)
_PERCENT = re.compile(rb"[\s:|]{0,4}[^\w\s]*\s*(\d{1,3})%")
_STEP = re.compile(
    rb"(?:\b(?:step|batch|mini-?batch|iter|iteration)s?\b\W{0,3}(\d{1,9})(?!\w|[.,]\d)(?:\s?/\s?(\d{1,9}))?"
    rb"|^\W{0,3}\[\s{0,8}(\d{1,9})\s?/\s?(\d{1,9}))",
    re.IGNORECASE,
)
_FRACTION = re.compile(rb"(?<![\d/.])(\d{1,9})/(\d{1,9})(?![\d/.])")
_BEGINS = re.compile(r"\W*(?:start|begin)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    """One boundary of a unit: ``mark`` is ``head``, ``end`` or ``count``, as ``RunMarks`` says.

    ``t`` is the moment of the read that completed the line, or None when it is not known.
    """

    name: str
    via: str
    mark: str
    n: int
    t: int | None


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


@dataclass(slots=True)
class _Line:
    """What one line says; ``first_step``: it shows its unit's progress at the very beginning."""

    mark: str
    n: int
    total: int | None = None
    alone: bool = False
    first_step: bool = False


class Recogniser:
    """Turns the output of one command into marks; one object for all its streams."""

    def __init__(self, unit: str | None, regex: str | None) -> None:
        self._pattern = compile_unit_regex(regex) if regex is not None else None
        self._via = "line" if regex is None else "regex"
        self._name = unit or (DEFAULT_UNIT if regex is None else "unit")
        self._word = self._name.encode("utf-8", "replace").lower()
        self._unit_line = re.compile(
            _BEFORE + rb"[\[(]?" + re.escape(self._word) + _AFTER, re.IGNORECASE | re.DOTALL
        )
        self._carry: dict[str, bytes] = {}
        self._headed: int | None = None
        self._ended: int | None = None

    def feed(self, stream: str, data: bytes, t: int) -> list[Mark]:
        """The marks completed by one read of a stream at ``t``."""
        whole, tail = self._split(stream, data)
        self._carry[stream] = tail[:LONGEST_LINE]
        if not whole:
            return []
        full_buffer = bool(tail) and len(data) % BLOCK == 0
        return self._dated(self._marks(whole), None if full_buffer else t)

    def flush(self, t: int) -> list[Mark]:
        """The marks of last lines that no line break ended, when the streams are closed."""
        marks: list[Mark] = []
        for stream, tail in list(self._carry.items()):
            self._carry[stream] = b""
            marks += self._dated(self._marks(tail), t)
        return marks

    def _split(self, stream: str, data: bytes) -> tuple[bytes, bytes]:
        """Complete lines, and the rest of which the line's beginning is kept."""
        held = self._carry.get(stream, b"")
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not cut:
            return b"", held + data[: LONGEST_LINE - len(held)] if held else data
        return held + data[:cut], data[cut:]

    def _marks(self, block: bytes) -> list[Mark]:
        return self._by_regex(block) if self._pattern else self._by_word(block)

    def _by_regex(self, block: bytes) -> list[Mark]:
        assert self._pattern is not None
        marks: list[Mark] = []
        for raw in _BREAK.split(block):
            line = _ESCAPE.sub(b"", raw[:LONGEST_LINE]).decode("utf-8", "replace")
            match = self._pattern.search(line) if line else None
            if match is None:
                continue
            number = _number_in(match)
            if number is None:
                marks.append(self._mark("count", 1))
            elif number != self._ended:
                self._ended = number
                marks.append(self._mark("end", number))
        return marks

    def _by_word(self, block: bytes) -> list[Mark]:
        """Look only at lines that hold the unit's word; one search passes over most output."""
        lowered = block.lower()
        marks: list[Mark] = []
        done = 0
        at = lowered.find(self._word)
        while at >= 0:
            start = max(block.rfind(b"\n", done, at), block.rfind(b"\r", done, at), done - 1) + 1
            stop = _BREAK.search(block, at)
            done = stop.end() if stop else len(block)
            line = self._read(block[start : min(done, start + LONGEST_LINE)])
            if line is not None:
                marks += self._accept(line)
            at = lowered.find(self._word, done)
        return marks

    def _read(self, raw: bytes) -> _Line | None:
        match = self._unit_line.match(_ESCAPE.sub(b"", raw).rstrip(b"\r\n"))
        if match is None:
            return None
        n = int(match[1])
        total = int(match[2]) if match[2] else None
        rest = match[3]
        words = rest.decode("utf-8", "replace")
        if not any(character.isalnum() for character in words):
            return _Line("head", n, total, alone=True)
        if _BEGINS.match(words):
            return _Line("head", n, total)
        step = _progress(rest)
        if step is None:
            return _Line("end", n, total)
        position, length = step
        finished = length is not None and position >= length
        return _Line("end" if finished else "head", n, total, first_step=position <= 1)

    def _accept(self, line: _Line) -> list[Mark]:
        """The mark of a line, unless it only repeats what an earlier line marked."""
        if line.mark == "end":
            return self._accept_end(line.n)
        latest = self._ended if self._headed is None else self._headed
        again = line.alone and line.n == line.total == 1
        if line.n == latest and not again:
            return []
        within = self._headed is not None and not line.alone and not line.first_step
        if latest is not None and line.n < latest and within:
            return []  # a bar of another series redrawn beside this one
        self._headed = line.n
        return [self._mark("head", line.n)]

    def _accept_end(self, n: int) -> list[Mark]:
        if self._headed is not None and n < self._headed:
            return []  # more about a unit that was left behind, such as its validation loss
        if n == self._ended and self._headed is None:
            return []
        self._ended, self._headed = n, None
        return [self._mark("end", n)]

    def _mark(self, mark: str, n: int) -> Mark:
        return Mark(self._name, self._via, mark, n, None)

    def _dated(self, marks: list[Mark], t: int | None) -> list[Mark]:
        if t is None or not marks or not _moments_known(marks):
            return marks
        return [replace(mark, t=t) for mark in marks]


def _number_in(match: re.Match[str]) -> int | None:
    """The number a match gives its unit: the group ``n``, else the first group, when numeric."""
    groups = match.groupdict()
    text: str | None = groups["n"] if "n" in groups else (match.groups() or ("",))[0]
    if not text or not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def _progress(rest: bytes) -> tuple[int, int | None] | None:
    """How far a line says its unit is: position and length; None when it is no progress line."""
    percent = _PERCENT.match(rest)
    if percent:
        fraction = _FRACTION.search(rest, percent.end())
        if fraction:
            return int(fraction[1]), int(fraction[2])
        return int(percent[1]), 100
    step = _STEP.search(rest)
    if step is None:
        return None
    position, length = step[1] or step[3], step[2] or step[4]
    return int(position), int(length) if length else None


def _moments_known(marks: list[Mark]) -> bool:
    """False when one read brought two units at once, so that neither has a moment of its own.

    The end of a unit and the head of the next are one moment and may come together.
    """
    ends = [i for i, mark in enumerate(marks) if mark.mark != "head"]
    heads = [i for i, mark in enumerate(marks) if mark.mark == "head"]
    if len(ends) > 1 or len(heads) > 1:
        return False
    return not (ends and heads and heads[0] < ends[0])
