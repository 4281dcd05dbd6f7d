"""Vast.ai asked for a host's earnings, one day at a time.

Decides how often and how patiently: one question for each UTC day, since only then is a machine's day
known; a pause before each; a few tries where the service is busy, broken or away, and an end where it
says that the key is wrong. The key goes into one header and nowhere else, and never over plain HTTP to
another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from ouvrage.adapters.feeds.told import day_text
from ouvrage.adapters.web import Answer, Reach, get
from ouvrage.base.errors import OuvrageError

SERVICE = "https://console.vast.ai"
PATH = "/api/v0/users/me/machine-earnings/"
TRIES = 5
_LONGEST_WAIT_S = 120.0
_REACH = Reach()
_HERE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where to ask, the key to show, and the pause in seconds before each question."""

    base: str
    key: str
    pause_s: float
    wait: Callable[[float], None] = time.sleep
    reach: Reach = _REACH

    def __repr__(self) -> str:
        return f"Service({self.base})"


def key_in(path: Path) -> tuple[str, str | None]:
    """The key in a file, and a warning where others may read it."""
    try:
        text = path.read_text("ascii").strip()
        open_to = path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        raise OuvrageError(
            "vast/key-file",
            f"{path} cannot be read as a key: {getattr(error, 'strerror', None) or 'no ASCII text'}",
            hint="write the key into a file that only you can read: chmod 600 FILE",
        ) from error
    if not text or any(not " " < letter < "\x7f" for letter in text):
        raise OuvrageError(
            "vast/key-file", f"{path} does not hold one key", hint="one line, nothing else"
        )
    warning = f"{path} can be read by others; chmod 600 keeps the key yours" if open_to else None
    return text, warning


def service(base: str, key: str, pause_s: float) -> Service:
    """A service to ask. Refused where the key would travel unencrypted."""
    where = urlsplit(base)
    if where.scheme != "https" and where.hostname not in _HERE:
        raise OuvrageError(
            "vast/address", f"a key is not sent to {base}", hint="the address begins with https://"
        )
    return Service(base=base.rstrip("/"), key=key, pause_s=pause_s)


def earnings_of(asked: Service, day: int) -> str:
    """The answer for one day since 1970. Raises ``OuvrageError`` ``vast/refused`` or ``vast/away``."""
    address = f"{asked.base}{PATH}?{urlencode({'owner': 'me', 'sday': day, 'eday': day})}"
    words = ""
    for turn in range(TRIES):
        asked.wait(asked.pause_s * 2**turn)
        answer = get(address, asked.reach, {"Authorization": f"Bearer {asked.key}"})
        words = answer.fault or f"HTTP {answer.status}"
        if answer.fault is None and answer.status == 200:
            return answer.body.decode("utf-8", "replace")
        if answer.status in (400, 401, 403, 404):
            raise OuvrageError(
                "vast/refused",
                f"{asked.base} refused {day_text(day)}: {words}",
                hint="make a key that may read earnings, and put it into the key's file",
            )
        asked.wait(_told_to_wait(answer))
    raise OuvrageError(
        "vast/away",
        f"{asked.base} gave no answer for {day_text(day)} in {TRIES} tries: {words}",
        hint="what came before is recorded; ask again later and it goes on from there",
        exit_code=1,
    )


def _told_to_wait(answer: Answer) -> float:
    """The seconds that the other side asks for, within reason."""
    try:
        seconds = float(answer.retry_after or 0)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_WAIT_S) if seconds == seconds else 0.0
