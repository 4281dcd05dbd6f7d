"""Which run a person means: a full id, a short code, a label, or ``last``.

Decides only names; it reads nothing. A code is the start of a longer code, so an ambiguous one is
answered with longer codes that settle it. A label names the latest run that bears it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import CODE_LENGTH, code_of, normal_code
from ouvrage.base.time import utc_text

_ID = re.compile(r"[0-9a-f]{32}")
_LONGEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """What a run can be called by."""

    run: str
    label: str | None
    started_us: int


def run_called(text: str, names: Sequence[RunName]) -> str:
    """The id of the run that a person means by ``text``, or a refusal that helps to name it."""
    if not names:
        raise OuvrageError("run/none", "there are no runs yet", hint=FIRST_RUN)
    if text == "last":
        return max(names, key=_age).run
    wanted = text.strip().lower().replace("-", "")
    if _ID.fullmatch(wanted) and any(name.run == wanted for name in names):
        return wanted
    coded = _coded(text, names)
    if len(coded) == 1:
        return coded[0].run
    if coded:
        raise _ambiguous(text, coded)
    labelled = [name for name in names if name.label == text]
    if labelled:
        return max(labelled, key=_age).run
    raise _unknown(text, names)


FIRST_RUN = "meter any command: ouvrage run --price 0.30/h -- python train.py"


def _age(name: RunName) -> tuple[int, str]:
    return (name.started_us, name.run)


def _coded(text: str, names: Sequence[RunName]) -> list[RunName]:
    code = normal_code(text)
    if not CODE_LENGTH <= len(code) <= _LONGEST:
        return []
    return [name for name in names if code_of(name.run, len(code)) == code]


def _ambiguous(text: str, found: Sequence[RunName]) -> OuvrageError:
    length = next(
        (n for n in range(len(text) + 1, _LONGEST) if _distinct(found, n)),
        _LONGEST,
    )
    return OuvrageError(
        "run/ambiguous",
        f"{text} is the beginning of {len(found)} codes",
        where=tuple(_line(name, length) for name in sorted(found, key=_age, reverse=True)),
        hint="use one of these longer codes",
    )


def _distinct(found: Sequence[RunName], length: int) -> bool:
    return len({code_of(name.run, length) for name in found}) == len(found)


def _line(name: RunName, length: int) -> str:
    return f"{code_of(name.run, length)}  {utc_text(name.started_us)[:16]}Z  {name.label or ''}"


def _unknown(text: str, names: Sequence[RunName]) -> OuvrageError:
    latest = sorted(names, key=_age, reverse=True)[:3]
    return OuvrageError(
        "run/unknown",
        f"no run has the id, code or label {text!r}",
        where=tuple(_line(name, CODE_LENGTH) for name in latest),
        hint="ouvrage runs lists them all; `last` means the latest",
    )
