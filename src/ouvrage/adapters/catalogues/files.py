"""Catalogues as files, and the one in the package.

Decides what a catalogue is called when nobody says: after its form, and after the cloud or the file.
The starter catalogue is read like any other; each of its rows names its source and its day.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

from ouvrage.adapters.catalogues.forms import read_catalogue
from ouvrage.adapters.catalogues.rows import Context, Parsed
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.canonical import sha256_hex

STARTER = "starter"


def load_catalogue(
    name: str,
    *,
    read_on: str,
    form: str | None = None,
    catalogue: str | None = None,
    provider: str | None = None,
    currency: str | None = None,
) -> tuple[Parsed, Context, str]:
    """The offers in a file (or in the package's ``starter``), its context, and its hash."""
    if name == STARTER:
        text, path = starter_text(), Path("catalogue", "starter.csv")
    else:
        path = Path(name)
        text = read_text(path, "market")
    context = Context(
        catalogue=catalogue or _called(path, STARTER if name == STARTER else None),
        file=str(path),
        read_on=read_on,
        provider=provider,
        currency=currency,
    )
    prefixed = catalogue is None and name != STARTER
    parsed = read_catalogue(text, context, form, form_in_name=prefixed)
    if prefixed:
        context = replace(context, catalogue=f"{parsed.form}/{context.catalogue}")
    return parsed, context, sha256_hex(text)


def starter_text() -> str:
    """The package's own catalogue."""
    return (resources.files("ouvrage") / "catalogue" / "starter.csv").read_text("utf-8")


def _called(path: Path, name: str | None) -> str:
    """SkyPilot's files are all called vms.csv; the folder tells the cloud."""
    return name or (path.resolve().parent.name if path.stem == "vms" else path.stem) or "offers"
