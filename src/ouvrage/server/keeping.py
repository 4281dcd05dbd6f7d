"""What becomes of telemetry: files that are full are sealed, and beyond a limit the oldest go, with a fact that says so.

Decides the order, so that a crash at any point leaves something to do again and nothing twice: the sealed file is whole on the disk
before a fact states its hash, and only then do the batches go. Without the library that writes Parquet batches stay as they are.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import structlog

from ouvrage.base.time import MINUTE
from ouvrage.model.ingest import TelemetryDropped, TelemetrySealed
from ouvrage.server.context import Platform
from ouvrage.server.intake import Intake
from ouvrage.server.recording import stated
from ouvrage.store.sample_frames import SUFFIX
from ouvrage.store.telemetry import LogRow, forget_log, logs_of, path_of
from ouvrage.store.telemetry_files import Held, held_in, sealed_path, sealed_stated

_log = structlog.get_logger("ouvrage.server")
_SEAL_WITHIN_US = 10 * MINUTE


def keep(platform: Platform, intake: Intake) -> None:
    """Look once at all files of telemetry."""
    for row in _finished(platform, intake):
        if platform.wakes.closed:
            return
        if row.bytes == 0:
            _forget(platform, row)
        elif row.log not in intake.unsealable and importlib.util.find_spec("pyarrow"):
            _seal(platform, intake, row)
    _clear(platform, intake)
    _bound(platform, intake)


def _finished(platform: Platform, intake: Intake) -> list[LogRow]:
    """The files to which nothing is appended any more.

    What is open is asked after the names were read, and the rows are read once more after that: what was not open then is final now.
    """
    names = {row.log for row in logs_of(platform.store, platform.source)} - {intake.open_log}
    return [row for row in logs_of(platform.store, platform.source) if row.log in names]


def _seal(platform: Platform, intake: Intake, row: LogRow) -> None:
    batches = path_of(platform.state_dir, row.log)
    target = sealed_path(platform.state_dir, f"{row.log}.parquet")
    words = [str(batches), str(row.bytes), str(target)]
    said = _ran(platform, [sys.executable, "-m", "ouvrage.store.seal_batches", *words])
    if said is None:
        intake.unsealable.add(
            row.log
        )  # what cannot be read now would not be read in five seconds either
        return
    seal = TelemetrySealed(
        file=target.name,
        batches=row.batches,
        from_us=row.from_us,
        to_us=row.to_us,
        **json.loads(said),
    )
    with platform.writing() as tx:
        fact = stated(
            platform, seal, subject=f"telemetry:{row.log}", natural=f"telemetry/{row.log}/sealed",
            at_us=row.from_us, until_us=row.to_us,
        )  # fmt: skip
        tx.append([fact])
        forget_log(tx.connection, row.log)
    batches.unlink(missing_ok=True)


def _ran(platform: Platform, words: list[str]) -> str | None:
    """What a command said; None where it failed, took too long, or the server ends: it is done again then."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until = platform.monotonic() + _SEAL_WITHIN_US
        while True:
            try:
                said, error = running.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                if platform.wakes.closed or platform.monotonic() > until:
                    running.kill()
                continue
            if running.returncode:
                _log.error("telemetry.not_sealed", file=words[-1], why=error[-500:])
            return said if running.returncode == 0 else None


def _forget(platform: Platform, row: LogRow) -> None:
    """A file to which nothing was ever promised."""
    with platform.writing() as tx:
        forget_log(tx.connection, row.log)
    path_of(platform.state_dir, row.log).unlink(missing_ok=True)


def _clear(platform: Platform, intake: Intake) -> None:
    """Remove batches that are sealed or dropped, which a crash left."""
    files = [held for held in held_in(platform.state_dir) if not held.sealed]
    rows = {row.log for row in logs_of(platform.store, platform.source)}
    for held in files:
        log = held.path.name.removesuffix(SUFFIX)
        if log not in rows and log != intake.open_log:
            held.path.unlink(missing_ok=True)


def _bound(platform: Platform, intake: Intake) -> None:
    """Drop the oldest files until the rest are within the limit; the one that is written to stays."""
    files = held_in(platform.state_dir)
    total = sum(held.bytes for held in files)
    if total <= platform.limits.telemetry_bytes:
        return
    seals = sealed_stated(platform.store)
    rows = {row.log: row for row in logs_of(platform.store, platform.source)}
    for held in files:
        if total <= platform.limits.telemetry_bytes:
            return
        log = held.path.name.partition(".")[0]
        about = seals.get(held.path.name) if held.sealed else rows.get(log)
        if log == intake.open_log or about is None:
            continue
        _drop(platform, held, log, about)
        total -= held.bytes


def _drop(platform: Platform, held: Held, log: str, about: TelemetrySealed | LogRow) -> None:
    most = platform.limits.telemetry_bytes
    dropped = TelemetryDropped(
        file=held.path.name,
        size_bytes=held.bytes,
        from_us=about.from_us,
        to_us=about.to_us,
        why=f"telemetry may take {most} bytes",
    )
    with platform.writing() as tx:
        fact = stated(
            platform, dropped, subject=f"telemetry:{log}",
            natural=f"telemetry/{held.path.name}/dropped", at_us=about.from_us, until_us=about.to_us,
        )  # fmt: skip
        tx.append([fact])
        forget_log(tx.connection, log)
    held.path.unlink(missing_ok=True)
    _log.info("telemetry.dropped", file=held.path.name, bytes=held.bytes)
