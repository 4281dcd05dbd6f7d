"""Ids: UUIDv7 inside, a short code shown.

Both are functions of arguments; the clock and the random bits come from an adapter. A short code
is the start of the id's random part in Crockford's base 32, so a longer code always settles an
ambiguity between two shorter ones.
"""

from __future__ import annotations

CODE_LENGTH = 4
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_READ_AS = str.maketrans("OIL", "011")


def uuid7(at_us: int, random_bits: int) -> str:
    """A UUIDv7 (RFC 9562, section 5.7) as 32 hexadecimal digits.

    ``random_bits`` supplies the 74 random bits; more are ignored.
    """
    value = ((at_us // 1000) & (2**48 - 1)) << 80
    value |= 0x7 << 76 | ((random_bits >> 62) & 0xFFF) << 64
    value |= 0b10 << 62 | (random_bits & (2**62 - 1))
    return f"{value:032x}"


def code_of(run_id: str, length: int = CODE_LENGTH) -> str:
    """The short code of an id: ``R7K2``. At most 12 characters carry information."""
    tail = int(run_id, 16) & (2**60 - 1)
    digits = "".join(_ALPHABET[(tail >> shift) & 31] for shift in range(55, -1, -5))
    return digits[:length]


def normal_code(text: str) -> str:
    """A code as typed by a person, in its normal form (letters that look like digits folded)."""
    return text.strip().upper().translate(_READ_AS)


def id_digits(code: str) -> str | None:
    """The hexadecimal digits that every id of this code has from its 18th on; None for what is no code.

    For looking ids up where only their text is indexed: a code's last bits may be missing from them.
    """
    letters = normal_code(code)
    if not 1 <= len(letters) <= 12 or any(letter not in _ALPHABET for letter in letters):
        return None
    value = 0
    for letter in letters:
        value = value << 5 | _ALPHABET.index(letter)
    bits = 5 * len(letters)
    return f"{value >> bits % 4:0{bits // 4}x}"
