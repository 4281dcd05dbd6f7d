"""What a run tells when it is over, made from its spool by the same functions as any later report.

Decides where it goes: for a person on stderr, as JSON into a file that is written whole or not at
all. The figures and words are ``pricing``'s, and nothing is kept: the store reads the spool itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from ouvrage.adapters.clock import new_id
from ouvrage.base.canonical import sha256_hex
from ouvrage.ledger.facts import Recorded
from ouvrage.meter import voice
from ouvrage.metering.run_view import run_views
from ouvrage.metering.spool import facts_of, read_spool
from ouvrage.model.runs import RunSamples
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of


class Summary:
    """The figures of one spool as known at ``as_of``, before the facts reach any store."""

    def __init__(self, lines: Sequence[str], as_of: int) -> None:
        spool = read_spool(lines)
        text = "".join(lines)
        sealed = RunSamples(
            run=spool.run,
            sha256=sha256_hex(text),
            size_bytes=len(text.encode()),
            samples=len(spool.columns.times),
        )
        records = [
            Recorded(seq=seq, recorded_at=as_of, fact=fact)
            for seq, fact in enumerate(facts_of(spool, sealed=sealed), start=1)
        ]
        self._view = run_views(records)[spool.run]
        self._sheet = sheet_of(self._view, as_of)

    def show(self, *, plain: bool) -> None:
        """Print the summary for a person, on stderr: stdout belongs to the command."""
        text = self.text(plain=plain or not voice.speaks_utf8())
        voice.say(text if text.endswith("\n") else text + "\n")

    def text(self, *, plain: bool) -> str:
        """The summary for a person."""
        return report_text(self._view, self._sheet, plain=plain)

    def json(self) -> str:
        """The report as JSON."""
        return json.dumps(report_json(self._view, self._sheet), ensure_ascii=False, indent=2)

    def write(self, path: str) -> None:
        """Write the report whole or not at all."""
        text = self.json()
        draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{new_id()}")
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(draft, "x", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except OSError as error:
            if os.path.exists(draft):
                os.unlink(draft)
            raise OSError(f"{path} could not be written: {error.strerror}") from error
