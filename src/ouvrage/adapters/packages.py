"""What Debian's package manager says: versions that are installed, those that are held, and updates that wait.

Decides that the manager's own files are read, which needs no rights and no lock; only for what waits is ``apt-get`` asked,
to simulate. A machine with another manager is one whose packages are not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.health_sources import NotTold, Run, within_deadline
from ouvrage.model.work import Named

STATUS = "lib/dpkg/status"
SIMULATE = [
    "apt-get", "-o", "Debug::NoLocking=1", "--simulate", "--ignore-hold", "--quiet", "dist-upgrade",
]  # fmt: skip
"""``--ignore-hold`` lists what waits behind a hold too; nothing is installed and no lock is taken."""
_DEADLINE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Every installed package with its version, and the names of those that are held."""

    packages: tuple[Named, ...]
    held: tuple[str, ...]


def installed(var: str) -> Installed:
    """The packages of a machine. Raises ``NotTold``."""
    path = Path(var, STATUS)
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise NotTold(f"{path}: {error.strerror}; only dpkg's packages are read") from error
    found: dict[str, str] = {}
    held: list[str] = []
    for block in _blocks(text):
        want, _, state = block.get("Status", "").partition(" ")
        name = block.get("Package", "")
        if not name or not state.endswith(" installed") or not block.get("Version"):
            continue
        if name in found:  # a second architecture of it
            name = f"{name}:{block.get('Architecture', '')}"
        found[name] = block["Version"]
        if want == "hold":
            held.append(name)
    rows = tuple(Named(name=name, value=found[name]) for name in sorted(found))
    return Installed(packages=rows, held=tuple(sorted(held)))


def _blocks(text: str) -> Iterator[Mapping[str, str]]:
    """The first line of each field; continuation lines belong to fields that are not asked for."""
    for paragraph in text.split("\n\n"):
        fields = (row.partition(":") for row in paragraph.splitlines() if row[:1].strip())
        yield {name: value.strip() for name, _, value in fields}


def simulated_upgrade(run: Run = within_deadline) -> str:
    """What ``apt-get`` would install, as it prints it. Raises ``NotTold``."""
    code, text = run(SIMULATE)
    if code:
        raise NotTold(f"apt-get ended with {code}; its lists may be missing: apt-get update")
    return text
