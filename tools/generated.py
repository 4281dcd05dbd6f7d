"""Write a generated page, or say that the one in the repository is no longer what would be written.

Shared by the generators in this folder. A generated page is kept in the repository so that it can
be read without building anything; ``make check`` compares it, ``make references`` writes it.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def keep(name: str, text: str) -> int:
    """Write ``text`` to ``name``, or with ``--check`` compare: 0 when it is (now) up to date."""
    page = ROOT / name
    text = text.rstrip("\n") + "\n"
    if "--check" not in sys.argv[1:]:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
        print(name)
        return 0
    present = page.read_text("utf-8") if page.exists() else ""
    if present == text:
        return 0
    lines = difflib.unified_diff(
        present.splitlines(),
        text.splitlines(),
        f"{name} as it is",
        f"{name} as it should be",
        lineterm="",
    )
    print("\n".join(lines))
    print(f"{name} is not up to date\n  hint: make references")
    return 1
