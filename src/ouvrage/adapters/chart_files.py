"""A chart of accounts from a TOML file: our account on the left, theirs on the right.

Decides only the form; which of the entries counts for an account is decided where it is looked up.
"""

from __future__ import annotations

from pathlib import Path

from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.books.journal_text import Chart

_ROOTS = ("Assets", "Liabilities", "Equity", "Income", "Expenses")


def read_chart(path: Path) -> Chart:
    """The chart in a file: a table ``[accounts]``. Raises ``OuvrageError`` ``chart/...``."""
    found = load_toml(str(path), read_text(path, "chart"), "chart/toml")
    names = found.get("accounts")
    if not isinstance(names, dict) or set(found) != {"accounts"}:
        raise OuvrageError(
            "chart/form", f"{path} has no table [accounts] alone", where=(str(path),),
            hint='[accounts] and below it lines such as "Expenses:Electricity" = "6325 Power"',
        )  # fmt: skip
    for ours, theirs in names.items():
        if ours.split(":")[0] not in _ROOTS or not isinstance(theirs, str) or not theirs.strip():
            raise OuvrageError(
                "chart/account", f"{path}: {ours!r} = {theirs!r} names no account of ours and theirs",
                where=(f"{path}   {ours}",), hint=f"ours begins with {', '.join(_ROOTS)}; theirs is a text",
            )  # fmt: skip
    return Chart(names={ours: theirs.strip() for ours, theirs in names.items()})
