"""The console's words in the reader's language, from one ``.po`` file a language.

English is the source and needs no file. A word without a translation stays English rather than being left out. Numbers, dates and
money are formatted by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from io import BytesIO

LANGUAGES = ("en", "fr")


@cache
def translator(language: str) -> Callable[[str], str]:
    """A function from English words to a language's; ``ValueError`` for one that there is no file of."""
    if language == "en":
        return str
    if language not in LANGUAGES:
        raise ValueError(language)
    known = _catalogue(language)
    return lambda words: known.get(words, words)


@cache
def _catalogue(language: str) -> dict[str, str]:
    from babel.messages.pofile import read_po

    text = (files("ouvrage.console") / "locale" / f"{language}.po").read_bytes()
    entries = read_po(BytesIO(text), locale=language, abort_invalid=True)
    return {str(m.id): str(m.string) for m in entries if m.id and m.string and not m.fuzzy}


def preferred(accept: str | None) -> str:
    """The language to begin with, from a browser's ``Accept-Language``."""
    for part in (accept or "").split(","):
        tag = part.partition(";")[0].strip().lower().partition("-")[0]
        if tag in LANGUAGES:
            return tag
    return "en"
