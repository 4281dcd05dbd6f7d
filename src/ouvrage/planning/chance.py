"""Chance as an argument: the same seed gives the same draws on every machine and every Python.

Decides nothing; it is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014), small enough to read. The standard library's generator would do, but what it
draws for a range has changed between versions, and a decision must not.
"""

from __future__ import annotations

from hashlib import sha256
from math import log

_MASK = 2**64 - 1


class Chance:
    """Draws that follow from ``seed`` alone."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    @classmethod
    def of(cls, words: str) -> Chance:
        """The draws that belong to some words, such as the key of what is decided."""
        return cls(int.from_bytes(sha256(words.encode()).digest()[:8], "big"))

    def bits(self) -> int:
        """64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def unit(self) -> float:
        """A number from 0 up to, but not, 1."""
        return (self.bits() >> 11) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """A number of a stretch, each as likely."""
        return low + (high - low) * self.unit()

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count`` - 1 (``count`` far below 2^64, so that none is favoured)."""
        return (self.bits() * count) >> 64

    def exponential(self, mean: float) -> float:
        """A waiting time of this mean."""
        return -mean * log(1.0 - self.unit())
