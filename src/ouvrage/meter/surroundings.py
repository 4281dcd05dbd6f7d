"""What is said of a run besides its own figures: its job, the files given with it, what NCCL printed.

Decides when each is put on record: job and files when the command has just started, NCCL's word when it
has ended, since its log grows until then. A file that cannot be read leaves a note; the options were
checked before, as far as they can be.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ouvrage.base.errors import OuvrageError
from ouvrage.meter.nccl_watch import NcclWatch

if TYPE_CHECKING:
    from ouvrage.meter.options import Options
    from ouvrage.meter.record import Record
    from ouvrage.model.around import RunCommunication, RunTopology

MOST_FILES = 64
MOST_BYTES = 64 * 1024 * 1024
_PIECE = 1024 * 1024


def host_id() -> tuple[str, str]:
    """Of this machine as it now runs: an id made of the kernel's boot and the machine's name, and that name.

    Containers that are rented apart share a boot and differ in name; cloned images share
    ``/etc/machine-id``, which is therefore not asked.
    """
    import hashlib

    name = os.uname().nodename
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except (OSError, ValueError):
        boot = ""
    return hashlib.sha256(f"{boot}/{name}".encode("utf-8", "replace")).hexdigest()[:16], name


class Surroundings:
    """Of one run; ``look`` gets what the command prints."""

    def __init__(self, options: Options, record: Record) -> None:
        self._options = options
        self._record = record
        self._watch = NcclWatch()

    def begin(self) -> None:
        """State the job and what was given in files."""
        self._guarded(0, self._state)

    def look(self, stream: str, data: bytes) -> None:
        """What the command printed just now."""
        try:
            self._watch.look(stream, data)
        except Exception as error:  # noqa: BLE001 -- units are looked for in the same bytes afterwards
            self._record.note(0, "meter/nccl", f"NCCL's lines were no longer looked for: {error}")

    def finish(self, t: int) -> None:
        """State what NCCL said of itself, in the output and in its own log."""
        self._guarded(t, lambda: self._conclude(t))

    def _guarded(self, t: int, step: Callable[[], None]) -> None:
        """What breaks here is noted; the account of the run goes on."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- the run's own figures must not be lost for it
            text = f"what surrounds the run: {type(error).__name__}: {error}"
            self._record.note(t, "meter/around", text)

    def _state(self) -> None:
        self._job()
        if self._options.topology is not None:
            self._record.around(0, self._options.topology)
        for path in self._options.nccl_tests:
            self._link_test(path)

    def _conclude(self, t: int) -> None:
        found = list(self._watch.said(""))
        for pattern in self._options.nccl_log:
            found += self._logged(pattern, t)
        for said in found:
            self._record.around(t, said)

    def _job(self) -> None:
        from ouvrage.metering.launchers import place_of

        place = place_of(os.environ, self._options.command, self._options.job)
        if place is None:
            return
        if place.job is None:
            self._record.note(0, "job/no-name", place.hint or "the launcher names no job")
            return
        from ouvrage.model.around import PLACES, RunJob

        host, name = host_id()
        numbers = {each: getattr(place, each) for each in PLACES}
        job = RunJob(run="", job=place.job, via=place.via, host=host, host_name=name, **numbers)
        self._record.around(0, job)

    def _link_test(self, path: str) -> None:
        from ouvrage.metering.nccl_log import link_test_in

        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(MOST_BYTES)
        except OSError as error:
            self._record.note(0, "nccl/no-file", f"{path}: {error.strerror}")
            return
        found = link_test_in(text, run="", source=os.path.basename(path))
        if found is None:
            self._record.note(0, "nccl/no-measurement", f"{path} holds no table of nccl-tests")
        else:
            self._record.around(0, found)

    def _logged(self, pattern: str, t: int) -> list[RunCommunication]:
        """One statement from all files of a pattern; ``%h`` and ``%p`` of NCCL_DEBUG_FILE are any text."""
        import glob

        from ouvrage.metering.nccl_log import NcclLog

        log, left = NcclLog(), MOST_BYTES
        paths = sorted(glob.glob(glob.escape(pattern).replace("%h", "*").replace("%p", "*")))[
            :MOST_FILES
        ]
        for path in paths:
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    while left > 0 and (piece := file.read(_PIECE)):
                        log.feed(piece)
                        left -= len(piece)
            except OSError as error:
                self._record.note(t, "nccl/no-file", f"{path}: {error.strerror}")
            log.finish()
        if left <= 0:
            self._record.note(
                t, "nccl/cut", f"only the first {MOST_BYTES >> 20} MiB of {pattern} were read"
            )
        said = log.said("", os.path.basename(pattern))
        if said is None:
            self._record.note(t, "nccl/no-log", f"{pattern}: no line of NCCL's INFO log")
        return [said] if said else []


def topology_file(path: str) -> RunTopology:
    """The table in a file. Raises ``OuvrageError``."""
    from ouvrage.metering.topology import LONGEST, topology_in

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST)
    except OSError as error:
        raise OuvrageError(
            "topology/no-file",
            f"{path} cannot be read: {error.strerror}",
            hint="nvidia-smi topo -m > topology.txt",
        ) from error
    return topology_in(text, run="", source=os.path.basename(path))
