"""What was recorded around a command: checked, named, and found again in the view of a run.

Decides which of these statements can be reckoned with. What follows from them for a report is decided
where they are reported; a run without any of them is a run like every other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.metering.topology import topology_fault
from ouvrage.model.around import (
    AROUND,
    DRIVERS,
    PLACES,
    RunCommunication,
    RunJob,
    RunLinkTest,
    RunTopology,
    RunXid,
)

if TYPE_CHECKING:
    from ouvrage.metering.run_view import RunView

KINDS = {kind.KIND: kind for kind in AROUND}
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_HOST = re.compile(r"[0-9a-f]{8,64}", re.ASCII)
_T = TypeVar("_T")


def named(stated: Iterable[tuple[int, Any]]) -> Iterator[tuple[str, Any, int, Grade]]:
    """Statements of a spool with the name of their fact, numbered within their kind, and their grade."""
    counts: Counter[str] = Counter()
    for t, value in stated:
        yield (
            f"{value.KIND.partition('.')[2]}/{counts[value.KIND]}",
            value,
            t,
            grade_of_around(value),
        )
        counts[value.KIND] += 1


def around_fault(value: Any) -> str | None:
    """Why a statement cannot be reckoned with though it can be read; None when it can."""
    if isinstance(value, RunJob):
        return _job_fault(value)
    if isinstance(value, RunTopology):
        return topology_fault(value)
    if isinstance(value, RunXid) and min(value.xid, value.at_us) < 0:
        return f"Xid {value.xid} at {value.at_us} us"
    if isinstance(value, RunLinkTest):
        texts = [text for row in value.rows for text in (row.time_us, row.bus_gb_s)]
        if not value.rows or not all(map(_DECIMAL.fullmatch, texts)):
            return "a measurement without plain decimal numbers"
    if isinstance(value, RunCommunication):
        counts = [way.channels for way in value.transports] + [each.calls for each in value.calls]
        sizes = [each.size_bytes for each in value.calls]
        if any(many < 1 for many in counts) or any(size < 0 for size in sizes):
            return "connections or calls of less than one"
    return None


def grade_of_around(value: Any) -> Grade:
    """What the driver told the meter is measured; what a launcher, a library or a file says is reported."""
    told = isinstance(value, RunXid) or (isinstance(value, RunTopology) and value.source == DRIVERS)
    return Grade.MEASURED if told else Grade.REPORTED


def _job_fault(job: RunJob) -> str | None:
    if not is_campaign(job.job):
        return f"a job called {job.job[:40]!r}"
    if not _HOST.fullmatch(job.host):
        return f"a host called {job.host[:40]!r}"
    numbers = [getattr(job, name) for name in PLACES]
    return "a place in it below nought" if any(n is not None and n < 0 for n in numbers) else None


def _stated(view: RunView, kind: type[_T], name: str) -> tuple[_T, ...]:
    return tuple(value for value in view.around.get(name, ()) if isinstance(value, kind))


def job_of(view: RunView) -> RunJob | None:
    """The job that the run is a part of."""
    return next(iter(_stated(view, RunJob, RunJob.KIND)), None)


def topology_of(view: RunView) -> RunTopology | None:
    """What joins the GPUs of its machine."""
    return next(iter(_stated(view, RunTopology, RunTopology.KIND)), None)


def xids_of(view: RunView) -> tuple[RunXid, ...]:
    """The errors that the driver reported while it ran, in their order."""
    return _stated(view, RunXid, RunXid.KIND)


def communications_of(view: RunView) -> tuple[RunCommunication, ...]:
    """What NCCL said of itself."""
    return _stated(view, RunCommunication, RunCommunication.KIND)


def link_tests_of(view: RunView) -> tuple[RunLinkTest, ...]:
    """What nccl-tests measured, as far as it was given."""
    return _stated(view, RunLinkTest, RunLinkTest.KIND)
