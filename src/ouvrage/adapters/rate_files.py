"""Rate plans and usage as files: read from disk, or from the plans in the package.

Decides where a plan called by name is looked for, and turns what a file cannot be read as into a
refusal with its line. What the contents mean is decided by ``pricing.rates``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.canonical import sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.pricing.rates.frozen import frozen
from ouvrage.pricing.rates.parse import parse_plan
from ouvrage.pricing.rates.places import located
from ouvrage.pricing.rates.plan import Plan
from ouvrage.pricing.rates.usage import Usage, read_usage

SUFFIX = ".toml"


def shipped_names() -> list[str]:
    """The names of the plans in the package."""
    folder = resources.files("ouvrage") / "plans"
    return sorted(
        each.name[: -len(SUFFIX)] for each in folder.iterdir() if each.name.endswith(SUFFIX)
    )


def load_plan(name: str) -> Plan:
    """The plan in a file (a name with ``.toml`` or a ``/``), or the shipped one of this name."""
    if name.endswith(SUFFIX) or "/" in name:
        return plan_from(name, read_text(Path(name), "rate-plan"))
    if name not in shipped_names():
        raise _unknown(name)
    path = resources.files("ouvrage") / "plans" / f"{name}{SUFFIX}"
    return plan_from(f"plans/{name}{SUFFIX}", path.read_text("utf-8"))


def frozen_plan(name: str) -> tuple[str, str]:
    """The name of a plan, called as ``load_plan`` calls it, and its text as an offer keeps it."""
    plan = load_plan(name)
    if name.endswith(SUFFIX) or "/" in name:
        text = read_text(Path(name), "rate-plan")
    else:
        text = (resources.files("ouvrage") / "plans" / f"{name}{SUFFIX}").read_text("utf-8")
    return plan.name, frozen(load_toml(plan.file, text, "rate-plan/toml"))


def _unknown(name: str) -> OuvrageError:
    near = get_close_matches(name, shipped_names(), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "ouvrage rates list shows them all"
    return OuvrageError(
        "rate-plan/unknown",
        f"there is no rate plan called {name!r}",
        hint=f"{hint} A file is named by its path: ./{name}.toml",
    )


def plan_from(file: str, text: str) -> Plan:
    """The plan that a TOML text holds; ``file`` is how refusals call it."""
    plan = parse_plan(load_toml(file, text, "rate-plan/toml"), located(file, text))
    return replace(plan, sha256=sha256_hex(text))


def load_usage(path: Path) -> Usage:
    """The usage in a CSV file."""
    return usage_from(str(path), read_text(path, "usage"))


def usage_from(file: str, text: str) -> Usage:
    """The usage that a CSV text holds."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [cell.strip() for cell in next(reader, [])]
        return replace(read_usage(file, head, _rows(reader)), sha256=sha256_hex(text))
    except csv.Error as error:
        raise OuvrageError(
            "usage/csv",
            f"{file} is no CSV: {error}",
            where=(f"{file}:{reader.line_num}",),
            hint="quote fields that hold commas, and close every quote",
        ) from error


def _rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line on which it ends; blank lines state nothing."""
    for cells in reader:
        if cells:
            yield reader.line_num, cells
