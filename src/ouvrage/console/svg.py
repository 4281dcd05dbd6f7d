"""SVG elements as text: escaping, numbers, scales, and the patterns that tell kinds of time apart.

Decides how things are drawn, never what they are worth. Colours are the page's own variables, so a
picture follows the reader's light or dark; every kind of time has a pattern of its own besides its
colour, so a grey print can still be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STEPS = (1, 2, 2.5, 5, 10)
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
LETTER = 7.0
"""Average width of a letter of a label in pixels, a little generous so that labels keep apart."""


def clean(text: str) -> str:
    """The text without characters that no XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)


def number(value: float) -> str:
    """A coordinate: two decimals are finer than any screen."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, *children: str, **attributes: object) -> str:
    """One element. ``class_`` and ``font_size`` become ``class`` and ``font-size``."""
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(clean(_value(value)))}"
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(children)
    return f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>"


def _value(value: object) -> str:
    return number(value) if isinstance(value, (int, float)) else str(value)


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "label") -> str:
    """Words at a place; ``kind`` is the class that says how loud they are."""
    return element("text", escape(clean(words)), x=x, y=y, text_anchor=anchor, class_=kind)


def hover(words: str) -> str:
    """What a pointer resting on the element, or a screen reader, is told."""
    return element("title", escape(clean(words)))


def picture(name: str, width: float, height: float, title: str, desc: str, *parts: str) -> str:
    """A whole picture. ``name`` makes its ids unique on the page."""
    return element(
        "svg",
        element("title", escape(clean(title)), id=f"{name}-title"),
        element("desc", escape(clean(desc)), id=f"{name}-desc"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="picture",
    )


def path(points: Iterable[tuple[float, float]], *, close: bool = False) -> str:
    """Path data through the points."""
    joined = "L".join(f"{number(x)},{number(y)}" for x, y in points)
    return f"M{joined}{'Z' if close else ''}" if joined else ""


def ticks(top: float, most: int = 5) -> list[float]:
    """Round values from 0 up to ``top``, at most ``most`` + 1 of them."""
    if top <= 0:
        return [0.0]
    rough = top / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * s for s in _STEPS if power * s >= rough * (1 - 1e-9))
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def clock_ticks(wall_s: float, most: int = 8) -> list[float]:
    """Moments in seconds from 0 to ``wall_s`` that a clock would show."""
    if wall_s < 4:
        return ticks(wall_s, most)
    fitting = [step for step in _CLOCK_STEPS if wall_s / step <= most]
    step = fitting[0] if fitting else 86400 * math.ceil(wall_s / most / 86400)
    return [float(step * i) for i in range(int(wall_s // step) + 1)]


def clock_text(seconds: float) -> str:
    """``45 s``, ``1:30 min``, ``2:05 h``: short, since the axis repeats it."""
    if seconds < 120:
        return f"{seconds:g} s"
    if seconds < 7200:
        whole, rest = divmod(round(seconds), 60)
        return f"{whole}:{rest:02d} min" if rest else f"{whole} min"
    whole, rest = divmod(round(seconds / 60), 60)
    return f"{whole}:{rest:02d} h" if rest else f"{whole} h"


def text_width(words: str) -> float:
    """About how many pixels a label takes."""
    return LETTER * len(words)


def place_labels(feet: Sequence[tuple[float, str]], width: float) -> list[tuple[int, bool]]:
    """(row, whether it stands to the left) of labels that hang below feet on one line.

    Feet go from left to right. A label goes into the first row in which neither its words nor the
    line that leads to it touch another's. Tried from both ends and sides; the fewest rows win.
    """
    tries = [
        _placed(feet, width, to_left=False),
        _placed(feet, width, to_left=True),
        _placed(feet[::-1], width, to_left=False)[::-1],
        _placed(feet[::-1], width, to_left=True)[::-1],
    ]
    return min(tries, key=lambda placed: max((row for row, _ in placed), default=0))


def _placed(
    feet: Sequence[tuple[float, str]], width: float, *, to_left: bool
) -> list[tuple[int, bool]]:
    """Place labels in the order given, each on the preferred side where that is free."""
    taken: list[tuple[int, float, float, float]] = []
    chosen: list[tuple[int, bool]] = []
    for foot, words in feet:
        room = text_width(words) + 14
        sides = [(foot - room, foot, True), (foot, foot + room, False)]
        row, start, end, left = next(
            (row, start, end, left)
            for row in range(len(feet) + 1)
            for start, end, left in (sides if to_left else sides[::-1])
            if row == len(feet)
            or (start >= 0 and end <= width and _is_free(row, foot, start, end, taken))
        )
        taken.append((row, foot, start, end))
        chosen.append((row, left))
    return chosen


def _is_free(
    row: int,
    foot: float,
    start: float,
    end: float,
    taken: Sequence[tuple[int, float, float, float]],
) -> bool:
    for other, other_foot, other_start, other_end in taken:
        if other == row and start < other_end and other_start < end:
            return False
        if other < row and other_start - 3 < foot < other_end + 3:
            return False
        if other > row and start - 3 < other_foot < end + 3:
            return False
    return True


_PATTERNS = {
    "waiting_data": '<path d="M-2,2l4,-4M0,8l8,-8M6,10l4,-4"/>',
    "waiting_cpu": '<circle cx="2" cy="2" r="1.1"/><circle cx="6" cy="6" r="1.1"/>',
    "waiting_storage": '<path d="M0,0l8,8M8,0l-8,8"/>',
    "waiting_network": '<path d="M0,2h8M0,6h8"/>',
    "waiting_memory": '<path d="M2,0v8M6,0v8"/>',
    "throttled": '<path d="M0,0h8v8h-8z"/>',
    "unknown": '<circle cx="4" cy="4" r="0.8"/>',
    "gap": '<path d="M0,8l8,-8"/>',
    "free": "",
}


def patterns() -> str:
    """Definitions of every pattern, once a page, in a picture that takes no room."""
    made = "".join(
        f'<pattern id="p-{key}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" class="ground {key}"/><g class="stroke {key}">{shape}</g>'
        "</pattern>"
        for key, shape in _PATTERNS.items()
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true" '
        f'class="patterns"><defs>{made}</defs></svg>'
    )


def fill_of(key: str) -> str:
    """How a kind of time is filled."""
    return f"url(#p-{key})" if key in _PATTERNS else "var(--work)"
