"""What was read of GPUs, links and the wall, kept for some days beside the facts: the watch's telemetry.

Decides which values are worth a line a minute, and that they go first when the disk is full: their files are deleted,
oldest first, before a fact is lost, and what could not be written is counted. They are no facts; a verdict carries the
values that it stands on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ouvrage.agent.probing.asking import Answer
from ouvrage.base.time import MINUTE

DIRECTORY = "readings"
FILE_BYTES, FILES = 4 << 20, 8
_GPU = ("temperature_c", "temperature_margin_c", "power_mw", "memory_used_bytes", "processes", "pcie_replays")  # fmt: skip


class Readings:
    """The files of one agent. ``dropped`` counts lines that the disk did not take."""

    def __init__(self, state: Path) -> None:
        self._at = state / DIRECTORY
        self.dropped = 0
        self._next_us = 0

    def take(self, answers: Mapping[str, Answer], at_us: int, now_us: int) -> None:
        """Put down the last answers, once a minute."""
        if now_us < self._next_us:
            return
        line = _line(answers, at_us, now_us)
        if line is None:
            return
        self._next_us = now_us + MINUTE
        try:
            self._append(line)
        except OSError:
            self.dropped += 1

    def _append(self, line: bytes) -> None:
        self._at.mkdir(mode=0o700, exist_ok=True)
        path = self._at / "now.ndjson"
        if path.exists() and path.stat().st_size > FILE_BYTES:
            path.rename(
                self._at / f"{len(self._old()) and int(self._old()[-1].stem) + 1:06d}.ndjson"
            )
            for old in self._old()[: -FILES + 1]:
                old.unlink()
        with path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                written = file.write(line)
            except OSError:
                written = 0
            if written != len(line):
                file.truncate(before)
                raise OSError("no room for a line")

    def _old(self) -> list[Path]:
        return sorted(self._at.glob("[0-9]*.ndjson"))

    def give_room(self) -> bool:
        """Delete the oldest file, for a fact's sake. False where nothing is left to delete."""
        for path in [*self._old(), self._at / "now.ndjson"]:
            with suppress(OSError):
                size = path.stat().st_size
                path.unlink()
                self.dropped += 1
                if size:
                    return True
        return False


def _line(answers: Mapping[str, Answer], at_us: int, now_us: int) -> bytes | None:
    told: dict[str, Any] = {}
    for name, pick in (("gpu", _gpus), ("links", _links), ("wall", dict), ("peers", dict)):
        answer = answers.get(name)
        if answer is not None and answer.values is not None:
            told[name] = pick(answer.values)
    if not told:
        return None
    text = json.dumps({"at_us": at_us, "monotonic_us": now_us, **told}, separators=(",", ":"))
    return text.encode() + b"\n"


def _gpus(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(each.get("uuid") or each.get("index")): {n: each[n] for n in _GPU if n in each}
        for each in values["gpus"]
    }


def _links(values: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["counters"] for each in values["links"]}
