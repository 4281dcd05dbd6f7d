"""Power limits as the rest of the program asks for them: each call in a child, under a deadline.

Decides how long a driver may take, and how the limits that a record names are put back. A child that
does not answer is asked to end and left alone: to kill one in the middle of a driver call has been
seen to freeze a card.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from ouvrage.adapters import limit_record
from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.meter.feed import command

TRIES = 2


class Driver:
    """Asks one question a time, and waits ``deadline_s`` for the answer."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s

    def look(self) -> list[CardLimits]:
        """Every card and its limits. Raises ``Refused``."""
        return [CardLimits(**card) for card in self._ask("look")["cards"]]

    def set(self, uuid: str, milliwatts: int) -> None:
        """Set a card's limit and see that it stands. Raises ``Refused``."""
        stands = self._ask("set", uuid, str(milliwatts))["limit_mw"]
        if stands != milliwatts:
            words = f"the card reads {stands / 1000:g} W, not {milliwatts / 1000:g} W"
            raise Refused("driver", words)

    def _ask(self, *words: str) -> dict[str, Any]:
        child = subprocess.Popen(
            command("ouvrage.meter.limits_child", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            said, _ = child.communicate(timeout=self.deadline_s)
        except subprocess.TimeoutExpired:
            child.terminate()
            words_ = f"the driver did not answer within {self.deadline_s:g} s"
            raise Refused("silent", words_) from None
        try:
            answer: dict[str, Any] = json.loads(said)
        except ValueError:
            code = child.returncode
            raise Refused("driver", f"the driver's library ended the program ({code})") from None
        if "refused" in answer:
            raise Refused(answer["refused"], answer["words"])
        return answer


def put_back(home: Path, driver: Driver) -> list[str]:
    """Set every recorded limit again; the record goes when all stand. What did not go, in words."""
    limits = limit_record.read(home) or {}
    troubles = [
        words for uuid, limit in limits.items() if (words := _one_back(driver, uuid, limit))
    ]
    if not troubles:
        limit_record.remove(home)
    return troubles


def _one_back(driver: Driver, uuid: str, milliwatts: int) -> str | None:
    words = None
    for _ in range(TRIES):
        try:
            driver.set(uuid, milliwatts)
        except Refused as error:
            words = f"{uuid} is not back at {milliwatts / 1000:g} W: {error}"
            if error.kind == "silent":
                break
        else:
            return None
    return words
