"""How models of BMCs deviate, as data: ``health_data/power_quirks.toml``, each with its source.

Decides only which rows apply to a machine and what they add up to; a new model is a new row. Nothing else in the program asks
for a maker's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.errors import OuvrageError

FILE = "power_quirks.toml"
_KEYS = {
    *("name", "kind", "maker", "model", "why", "source"),
    *("look_s", "off_s", "busy", "not_logs", "ignore", "restore_at"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """What all rows that fit a machine say together; ``names`` are theirs."""

    names: tuple[str, ...] = ()
    look_s: float | None = None
    off_s: float | None = None
    busy_words: tuple[str, ...] = ()
    not_logs: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    restore_at: tuple[str, ...] = ()

    def ignores(self, sensor: str) -> bool:
        """Whether a sensor is not to be believed."""
        return any(fnmatchcase(sensor.lower(), each.lower()) for each in self.ignored)


def quirk_for(
    kind: str, maker: str, model: str, rows: Sequence[Mapping[str, Any]] | None = None
) -> Quirk:
    """What is known of machines of this kind, maker and model."""
    fitting = [
        row for row in (shipped() if rows is None else rows) if _fits(row, kind, maker, model)
    ]

    def last(name: str) -> Any:
        return next((row[name] for row in reversed(fitting) if name in row), None)

    def every(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for row in fitting for word in row.get(name, ())))

    look, off = last("look_s"), last("off_s")
    return Quirk(
        names=tuple(row["name"] for row in fitting),
        look_s=None if look is None else float(look),
        off_s=None if off is None else float(off),
        busy_words=every("busy"),
        not_logs=every("not_logs"),
        ignored=every("ignore"),
        restore_at=tuple(last("restore_at") or ()),
    )


def _fits(row: Mapping[str, Any], kind: str, maker: str, model: str) -> bool:
    return kind in row["kind"].split("|") and all(
        fnmatchcase(told.lower(), row[name].lower())
        for name, told in (("maker", maker), ("model", model))
    )


@cache
def shipped() -> tuple[Mapping[str, Any], ...]:
    """The rows that this version ships."""
    text = (resources.files("ouvrage") / "health_data" / FILE).read_text("utf-8")
    return quirks_in(FILE, text)


def quirks_in(file: str, text: str) -> tuple[Mapping[str, Any], ...]:
    """The rows in a TOML text. Raises ``OuvrageError`` ``remote/quirks``."""
    rows = load_toml(file, text, "remote/quirks").get("quirk", [])
    for row in rows:
        odd = sorted(row.keys() - _KEYS)
        if odd or not {"name", "kind", "maker", "model", "why", "source"} <= row.keys():
            raise OuvrageError(
                "remote/quirks", f"a row of {file} has no place for {', '.join(odd) or 'itself'}",
                where=(f"{file}: {row.get('name', '?')}",), hint="compare it with the shipped ones",
            )  # fmt: skip
    return tuple(rows)
