"""What was recorded around a run, in its report: its job, what joins its GPUs, errors of the driver.

Decides what is worth a line: nothing about the interconnect of a run with one GPU and one rank, and of a
flood of errors the first few with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.around import (
    communications_of,
    grade_of_around,
    job_of,
    link_tests_of,
    topology_of,
    xids_of,
)
from ouvrage.metering.run_view import RunView
from ouvrage.metering.topology import topology_words
from ouvrage.metering.xid import meaning
from ouvrage.model.around import PLACES, RunJob, RunXid
from ouvrage.pricing.communication import (
    NO_EVIDENCE,
    communication_json,
    communication_words,
    disagreement,
    run_topology,
    spoken_of,
    topology_json,
)
from ouvrage.pricing.words import mark, rounded

MOST_XIDS = 4


def around_rows(view: RunView, plain: bool) -> Iterator[tuple[str, str]]:
    """Pairs of what a line is about and what it says."""
    job, topology, found = job_of(view), run_topology(view), spoken_of(view)
    if job is not None:
        yield "job", f"{job_words(job)}{mark(Grade.REPORTED, plain)}"
    if topology is not None:
        grade = mark(grade_of_around(topology), plain)
        yield "joined by", f"{topology_words(topology)}{grade}"
    if found is not None:
        yield "communication", communication_words(found, topology, view.wall_us, plain)
        odd = disagreement(found.transports, topology) if topology else None
        if odd:
            yield "", odd
    elif _several(view, job):
        yield "communication", NO_EVIDENCE
    yield from _xid_rows(view, plain)


def _several(view: RunView, job: RunJob | None) -> bool:
    ranks = max(job.ranks or 1, job.nodes or 1) if job else 1
    return ranks > 1 or sum(device.chosen for device in view.devices) > 1


def job_words(job: RunJob) -> str:
    """``abc (TORCHELASTIC_RUN_ID), rank 1 of 4, node 0 of 2, on box``."""
    words = [f"{job.job} ({job.via})"]
    for name, of, word in ((job.rank, job.ranks, "rank"), (job.node, job.nodes, "node")):
        if name is not None:
            words.append(f"{word} {name}" + (f" of {of}" if of else ""))
        elif of is not None and of > 1:
            words.append(f"{of} {word}s")
    if job.restart:
        words.append(f"restart {job.restart}")
    return ", ".join([*words, f"on {safe(job.host_name)}"])


def _xid_rows(view: RunView, plain: bool) -> Iterator[tuple[str, str]]:
    found = xids_of(view)
    for each in found[:MOST_XIDS]:
        where = "a GPU" if each.gpu is None else f"GPU {each.gpu}"
        after = rounded(Fraction(each.at_us, 1_000_000))
        words = meaning(each.xid)
        said = f": {words}" if words else ", which is not in our table"
        yield f"Xid {each.xid}", f"{where} at {after} s{mark(Grade.MEASURED, plain)}{said}"
    if len(found) > MOST_XIDS:
        yield "", f"and {len(found) - MOST_XIDS} more errors of GPUs: --json"


def around_json(view: RunView, sheet: Sheet) -> dict[str, Any]:
    """The same for programs."""
    job, said, tests = job_of(view), communications_of(view), link_tests_of(view)
    return {
        "job": None if job is None else _job_json(job),
        "topology": topology_json(topology_of(view)),
        "communication": {
            **communication_json(spoken_of(view), said, tests),
            **{
                name: _number(sheet, f"communication.{name}")
                for name in ("modelled_s", "share_at_most")
            },
        },
        "xids": [_xid_json(each) for each in xids_of(view)],
    }


def _job_json(job: RunJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "via": job.via,
        "host": job.host,
        "host_name": job.host_name,
        **{name: getattr(job, name) for name in PLACES},
    }


def _xid_json(each: RunXid) -> dict[str, Any]:
    return {
        "gpu": each.gpu,
        "at_s": each.at_us / 1_000_000,
        "xid": each.xid,
        "meaning": meaning(each.xid) or None,
    }


def _number(sheet: Sheet, path: str) -> float | None:
    value = sheet.number(path)
    return None if value is None else float(round(value, 6))
