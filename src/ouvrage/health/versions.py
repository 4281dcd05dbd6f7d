"""Which of two versions is the later, and whether a version carries a mend.

Decides the order (that of Debian's packages, in which ``~`` comes before the end; a release candidate is written so before
it is compared) and that a mend on an older branch counts for that branch alone. What is known to be faulty is data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

_CANDIDATE = re.compile(r"[-.~]?(rc|alpha|beta)[.]?(?=[0-9])")
_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_Key = tuple[tuple[tuple[int, ...], int], ...]


def later(a: str, b: str) -> bool:
    """Whether ``a`` comes after ``b``."""
    return _compared(a, b) > 0


def at_least(a: str, b: str) -> bool:
    """Whether ``a`` is ``b`` or later."""
    return _compared(a, b) >= 0


def carries(version: str, fixed: Sequence[str], mended: Sequence[str] = ()) -> bool:
    """Whether a version carries a mend that came with ``fixed``, one on each branch, or with a package in ``mended``."""
    top = fixed[0]
    for each in fixed:
        top = each if later(each, top) else top
    if at_least(version, top):
        return True
    branch = [each for each in fixed if _branch(each) == _branch(version)]
    if any(at_least(version, each) for each in branch):
        return True
    return any(_upstream(each) == _upstream(version) and at_least(version, each) for each in mended)


def _branch(version: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[0-9]+", _without_epoch(version))[:2])


def _upstream(version: str) -> str:
    return _without_epoch(version).rpartition("-")[0] or version


def _without_epoch(version: str) -> str:
    return version.partition(":")[2] or version


def _compared(a: str, b: str) -> int:
    left, right = _key(a), _key(b)
    end = ((0,), 0)
    for x, y in zip_longest(left, right, fillvalue=end):
        if x != y:
            return 1 if x > y else -1
    return 0


def _key(version: str) -> _Key:
    """Text and numbers in turn; a letter before any other sign, the end before both, ``~`` before the end."""
    epoch, _, rest = version.rpartition(":")
    text = _CANDIDATE.sub(r"~\1", rest.strip().removeprefix("v"))
    pairs = [(_order(words), int(digits or 0)) for words, digits in _PARTS.findall(text)]
    return (((0,), int(epoch) if epoch.isdigit() else 0), *pairs)


def _order(words: str) -> tuple[int, ...]:
    signs = [-1 if s == "~" else ord(s) if s.isalpha() else ord(s) + 256 for s in words]
    return (*signs, 0)
