"""A spool as bytes: read, and turned into the file in which its run travels.

Decides how bytes become lines (only a line feed ends one, and a line cut inside a letter is a torn line like any other) and what
the fact about sealed bytes states. Standard library only: the single-file meter and a node's runner hand runs on with it.
"""

from __future__ import annotations

import hashlib

from ouvrage.metering.exchange import export_run
from ouvrage.metering.spool import Spool, facts_of, read_spool
from ouvrage.model.runs import RunSamples


def read_lines(data: bytes) -> Spool:
    """Read a spool's bytes. Raises ``OuvrageError`` ``spool/...`` that names the first bad line."""
    *whole, rest = data.decode("utf-8", "backslashreplace").split("\n")
    lines = [f"{line}\n" for line in whole]
    return read_spool([*lines, rest] if rest else lines)


def sealed_fact(spool: Spool, data: bytes) -> RunSamples:
    """What the fact about a spool's sealed bytes states."""
    return RunSamples(
        run=spool.run,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        samples=len(spool.columns.times),
    )


def exported(spool: Spool, data: bytes) -> bytes:
    """The file for the run that a whole spool holds: the facts that follow from it, and its bytes as they are."""
    return export_run(spool.run, facts_of(spool, sealed=sealed_fact(spool, data)), data)
