"""Runs as files that travel, made from spools."""

from __future__ import annotations

from ouvrage.metering.whole_spool import exported, read_lines


def exported_run(text: str) -> bytes:
    """The file for the run of a whole spool."""
    data = text.encode()
    return exported(read_lines(data), data)
