"""What the meter itself says: on stderr, and never so that saying it fails.

Written straight to the descriptor: what Python's own stream could not write it would try again at
its end, and turn the command's exit code into its own. Whether anybody can read it is not decided
here.
"""

from __future__ import annotations

import contextlib
import locale

from ouvrage.meter.pump import write_all

STDERR = 2


def say(text: str) -> None:
    """Say it, where stderr still leads anywhere."""
    with contextlib.suppress(OSError):
        write_all(STDERR, text.encode(_encoding(), "backslashreplace"))


def warn(code: str, text: str) -> None:
    """Something did not go as it should; the command is not concerned."""
    say(f"ouvrage: warning[{code}]: {text}\n")


def speaks_utf8() -> bool:
    """Whether marks and lines beyond ASCII will be read as such."""
    return _encoding().lower().replace("-", "") == "utf8"


def _encoding() -> str:
    return locale.getpreferredencoding(False) or "ascii"
