"""``health.toml``: what the owner turned on of the ladder, and what is promised to whom rents.

Decides where it lies (the server's state directory, or the home), that without it nothing is turned on, and that a name it does not know
is refused, since a rung that was misspelt would not be on. It is read again whenever it changed.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.health.availability import Tier
from ouvrage.health.owner import SWITCHES, Owner

NAME = "health.toml"
_NAMES = (
    "turned_on",
    "observed",
    "unwatched",
    "promise_percent",
    "credit",
    "hardware_share_percent",
    "days_away",
)


def owner_in(directory: Path) -> Owner:
    """What the owner decided, from the file in a directory. Raises ``OuvrageError`` ``health/owner``."""
    path = directory / NAME
    if not path.exists():
        return Owner()
    return _owner(str(path), load_toml(str(path), read_text(path, "health"), "health/owner"))


class OwnerFile:
    """The same file, read again only where it changed; ``fault`` is why it could not be read the last time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[int, int] | None = None
        self._owner = Owner()
        self.fault: str | None = None

    def read(self) -> Owner:
        """What the owner decided; a file that is no good turns nothing on."""
        try:
            told = (self._directory / NAME).stat()
            seen = (told.st_mtime_ns, told.st_size)
        except OSError:
            seen = None
        if seen != self._seen or self.fault is not None:
            self._seen = seen
            try:
                self._owner, self.fault = owner_in(self._directory), None
            except OuvrageError as error:
                self._owner, self.fault = Owner(), f"{error.code}: {error.message}"
        return self._owner


def _owner(file: str, data: dict[str, Any]) -> Owner:
    for name in data:
        if name not in _NAMES:
            raise _fault(file, f"{name} is not known", ", ".join(_NAMES))
    turned_on = _texts(file, data, "turned_on")
    for rung in turned_on:
        if rung not in SWITCHES:
            raise _fault(file, f"{rung!r} cannot be turned on", ", ".join(SWITCHES))
    default = Owner()
    promise = _number(file, data, "promise_percent", None)
    share = _number(file, data, "hardware_share_percent", default.hardware_share * 100)
    days = _number(file, data, "days_away", default.days_away)
    assert share is not None
    assert days is not None
    return Owner(
        turned_on=frozenset(turned_on),
        observed=frozenset(_texts(file, data, "observed")),
        unwatched=frozenset(_texts(file, data, "unwatched")),
        promise=None if promise is None else promise / 100,
        tiers=tuple(_tier(file, row) for row in _rows(file, data)),
        hardware_share=share / 100,
        days_away=days,
    )


def _rows(file: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    rows = _listed(data.get("credit", []))
    if rows is None or not all(isinstance(row, dict) for row in rows):
        raise _fault(file, "credit is a list of tables", "[[credit]]")
    return rows


def _listed(value: object) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def _tier(file: str, row: dict[str, Any]) -> Tier:
    if row.keys() != {"below_percent", "percent"}:
        raise _fault(file, "a credit has below_percent and percent", "below_percent = 99.5")
    below, percent = (_number(file, row, name, None) for name in ("below_percent", "percent"))
    assert below is not None
    assert percent is not None
    return Tier(below=below / 100, percent=percent)


def _texts(file: str, data: dict[str, Any], name: str) -> list[str]:
    found = _listed(data.get(name, []))
    if found is None or not all(isinstance(each, str) for each in found):
        raise _fault(file, f"{name} is a list of texts", f'{name} = ["…"]')
    return found


def _number(
    file: str, data: dict[str, Any], name: str, default: Fraction | None
) -> Fraction | None:
    if name not in data:
        return default
    found = data[name]
    if isinstance(found, bool) or not isinstance(found, (int, Decimal)):
        raise _fault(file, f"{name} is a number", f"{name} = 99.5")
    if isinstance(found, Decimal) and not found.is_finite():
        raise _fault(file, f"{name} is a number", f"{name} = 99.5")
    value = Fraction(found)
    if value < 0 or (name.endswith("percent") and value > 100):
        raise _fault(file, f"{name} = {found} is out of bounds", "percent lie between 0 and 100")
    return value


def _fault(file: str, found: str, hint: str) -> OuvrageError:
    return OuvrageError("health/owner", found, where=(file,), hint=hint)
