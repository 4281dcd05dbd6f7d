"""Good texts with something wrong in them, by the hundred thousand."""

from __future__ import annotations

import random
from collections.abc import Sequence


def spoilt(text: str, chance: random.Random, pieces: Sequence[str]) -> str:
    """The text with a few cuts, copies and foreign pieces."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        end = min(end, at + chance.choice((0, 1, 5, 40)))
        piece = chance.choice(
            (chance.choice(pieces), text[at:end] * 2, chr(chance.randrange(1, 0x300)))
        )
        text = text[:at] + piece + text[end:]
    return text
