"""Text from elsewhere, made safe to print.

Commands, labels and the names of units come from users and programs; none of their control
sequences may reach a terminal.
"""

from __future__ import annotations

import unicodedata


def safe(text: str) -> str:
    """Text with every control, format, separator and surrogate character shown, not sent."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) if _hidden(c) else c for c in text)


def _hidden(character: str) -> bool:
    return character != " " and unicodedata.category(character)[0] in "CZ"


def _shown(character: str) -> str:
    if character.isascii():
        return character.encode("unicode_escape").decode("ascii")
    point = ord(character)
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
