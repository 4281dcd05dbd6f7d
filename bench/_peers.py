"""Other people's programs to measure against, each in a virtual environment of its own.

Decides their versions, so that a ratio says what it was taken against; they are installed once, below
``.tools``, and never beside the product. Where one cannot be installed the measurement says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / ".tools" / "bench"


def peer(*packages: str) -> Path | None:
    """The ``bin`` directory with these packages (``name==version``); None where pip cannot."""
    where = PLACE / "+".join(packages).replace("==", "-")
    done = where / "installed"
    if not done.exists():
        python = str(where / "bin" / "python")
        for words in (
            [sys.executable, "-m", "venv", "--clear", str(where)],
            [python, "-m", "pip", "install", "--quiet", *packages],
        ):
            if subprocess.run(words, capture_output=True, check=False).returncode:
                return None
        done.touch()
    return where / "bin"


def processor_s(words: list[str], environment: dict[str, str] | None = None) -> float:
    """Seconds of a core that a command takes from start to end, its children's included."""
    before = os.times()
    subprocess.run(words, env=environment, check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])
