"""What a row of ``sacct`` says was asked for, allotted and used, beside what ``sacct.py`` reads of the job itself.

Decides what of it is worth nothing: processor time of exactly zero (nobody gathered any: the shell of every job takes some),
and memory of a request that no machine has. A row that says none of it makes no statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal

from ouvrage.adapters.feeds.moments import moment_of, wall_moments
from ouvrage.base.time import SECOND
from ouvrage.model.cluster import ClusterJobRow
from ouvrage.model.fleet import ClusterJobUse

_UNSET = ("", "unknown", "none", "n/a", "(null)", "partition_limit", "invalid")
_CPU = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_LIMIT = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,3}):([0-9]{2}):([0-9]{2})")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTP]?)")
_KIB = {
    "": Decimal(1) / 1024,
    "K": Decimal(1),
    "M": Decimal(1024),
    "G": Decimal(1024**2),
    "T": Decimal(1024**3),
    "P": Decimal(1024**4),
}
_MOST_KIB = 1024**4
"""A pebibyte: more than any node has, and what an unset request overflows to lies beyond it."""
_EXIT = re.compile("[0-9]{1,3}:[0-9]{1,3}")


def tres_of(text: str) -> dict[str, str]:
    """``cpu=1,gres/gpu=2`` by name."""
    pairs = (each.partition("=") for each in text.split(",") if "=" in each)
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpus_in(tres: Mapping[str, str]) -> int | None:
    """All GPUs of a list of resources: of the line without a type, else the sum of those with one. None where nothing is listed."""
    if not tres:
        return None
    whole = _count(tres.get("gres/gpu"))
    typed = [_count(value) for name, value in tres.items() if name.startswith("gres/gpu:")]
    return whole if whole is not None else sum(each or 0 for each in typed)


def kib_of(text: str | None) -> int | None:
    """``62.50G`` in KiB; None where it is no size, or one that no node has."""
    found = _SIZE.fullmatch((text or "").strip())
    if found is None:
        return None
    size = int(Decimal(found[1]) * _KIB[found[2]])
    return size if size < _MOST_KIB else None


def limit_of(text: str | None) -> int | None:
    """``1-00:00:00`` in microseconds; -1 for one without limit, None for none stated."""
    clean = (text or "").strip()
    if clean.upper() in ("UNLIMITED", "INFINITE"):
        return -1
    found = _LIMIT.fullmatch(clean)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND


def use_of(value: ClusterJobRow, cells: Mapping[str, str], zone: str) -> ClusterJobUse | None:
    """What the cells of a row say beside the row itself; None where they say nothing."""
    asked, allotted = tres_of(cells.get("reqtres", "")), tres_of(cells.get("alloctres", ""))
    used = tres_of(cells.get("tresusageintot", ""))
    mean = tres_of(cells.get("tresusageinave", ""))
    found = ClusterJobUse(
        cluster=value.cluster, job=value.job, step=value.step, submit_us=value.submit_us, start_us=value.start_us,
        end_us=value.end_us, eligible_us=_moment(cells.get("eligible", ""), zone), limit_us=limit_of(cells.get("timelimit")),
        qos=_text(cells, "qos"), reason=_text(cells, "reason"), reservation=_text(cells, "reservation"),
        exit_code=cells.get("exitcode") if _EXIT.fullmatch(cells.get("exitcode", "")) else None,
        asked_nodes=_count(cells.get("reqnodes")) or _count(asked.get("node")), asked_cpus=_count(asked.get("cpu")),
        asked_gpus=gpus_in(asked), asked_kib=kib_of(asked.get("mem")), billing=_count(allotted.get("billing")),
        memory_kib=kib_of(allotted.get("mem")), cpu_us=_cpu(cells.get("totalcpu", "")),
        used_kib=kib_of(used.get("mem")) or kib_of(cells.get("maxrss")), gpu_percent=_count(mean.get("gres/gpuutil")),
        gpu_kib=kib_of(used.get("gres/gpumem")),
    )  # fmt: skip
    return found if any(getattr(found, name) is not None for name in _SAYS) else None


_KEYS = ("cluster", "job", "step", "submit_us", "start_us", "end_us")
_SAYS = tuple(
    each.name
    for each in fields(ClusterJobUse)
    if each.name not in (*_KEYS, "exit_code", "billing", "memory_kib")
)
"""What is worth a statement; the rest alone stands in the row of the job, or beside something of these."""


def _text(cells: Mapping[str, str], name: str) -> str | None:
    text = cells.get(name, "")
    return None if text.lower() in _UNSET else text[:200]


def _count(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,15}", text) else None


def _cpu(text: str) -> int | None:
    found = _CPU.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups()[:4])
    parts = int((found[5] or "").ljust(6, "0"))
    return ((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND + parts) or None


def _moment(text: str, zone: str) -> int | None:
    if text.lower() in _UNSET:
        return None
    known = moment_of(text)
    found = (known,) if known is not None else wall_moments(text, "", zone)
    return found[0] if len(found) == 1 else None
