"""Lines that name a unit and its number in words: ``Epoch 3/10 loss 0.21``.

Keras, PyTorch Lightning and most hand-written loops print such lines. Text after the number ends
the unit; the line alone heads it, as Keras prints it; a bar or a step inside it shows that it is
under way. Decides this of one line; which units finished is decided from all of them.
"""

from __future__ import annotations

import re

from ouvrage.metering.recognisers.rule import END, HEAD, Reading, Rule, found

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
_PERCENT = rb"^[\s:|]{0,4}[^\w\s]*\s*(\d{1,3})%"
_STEP = (
    rb"(?i)(?:\b(?:step|batch|mini-?batch|iter|iteration)s?\b\W{0,3}(\d{1,9})(?!\w|[.,]\d)(?:\s?/\s?(\d{1,9}))?"
    rb"|^\W{0,3}\[\s{0,8}(\d{1,9})\s?/\s?(\d{1,9})"
    # a bar drawn with box characters, then the step: as rich draws it
    rb"|^\s{1,4}(?:\xe2[\x94\x95].){1,200}\s(\d{1,9})/(\d{1,9})\s)"
)
_FRACTION = re.compile(rb"(?<![\d/.])(\d{1,9})/(\d{1,9})(?![\d/.])")
_BEGINS = re.compile(r"\W*(?:start|begin)", re.IGNORECASE)


def word_rule(unit: str) -> Rule:
    """The rule for lines that begin with this word, whatever its case."""
    word = unit.encode("utf-8", "replace").lower()
    pattern = rb"(?is)\A" + _BEFORE + rb"[\[(]?" + re.escape(word) + _AFTER

    def read(line: bytes) -> Reading | None:
        match = found(pattern, line)
        if match is None:
            return None
        return _read(int(match[1]), int(match[2]) if match[2] else None, match[3])

    return Rule("words", unit, word, read, folded=True, plain=True)


def _read(n: int, of: int | None, rest: bytes) -> Reading:
    words = rest.decode("utf-8", "replace")
    if not any(character.isalnum() for character in words):
        return Reading(HEAD, n, of, alone=True)
    if _BEGINS.match(words):
        return Reading(HEAD, n, of)
    step = _progress(rest)
    if step is None:
        return Reading(END, n, of)
    position, length = step
    finished = length is not None and position >= length
    return Reading(END if finished else HEAD, n, of, first=position <= 1)


def _progress(rest: bytes) -> tuple[int, int | None] | None:
    """How far a line says its unit is: position and length; None when it is no progress line."""
    percent = found(_PERCENT, rest)
    if percent:
        fraction = _FRACTION.search(rest, percent.end())
        if fraction:
            return int(fraction[1]), int(fraction[2])
        return int(percent[1]), 100
    step = found(_STEP, rest)
    if step is None:
        return None
    position, length = step[1] or step[3] or step[5], step[2] or step[4] or step[6]
    return int(position), int(length) if length else None
