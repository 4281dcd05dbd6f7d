"""Published traces of clusters: GPU time by how jobs ended, and pods with fractions of a GPU.

Decides which columns each needs and that a row which lacks one is told; the forms are those of AcmeTrace's
``cluster_summary.csv`` and of the ``openb`` files of Alibaba's cluster trace of 2023. Nothing is recorded: a
trace is somebody else's cluster, and its clock has no date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.table import rows_of
from ouvrage.adapters.feeds.told import Told, amount_in
from ouvrage.base.errors import OuvrageError
from ouvrage.books.goodput import Goodput
from ouvrage.books.pods import Pod, PodNode

_SECONDS = 3600


def read_summary(text: str, told: Told) -> list[tuple[str, Goodput | None]]:
    """Each cluster of a summary with its GPU time; None where the summary does not say it."""
    rows = _rows(
        text, told, ("id", "complete_gpu_time", "cancel_gpu_time", "fail_gpu_time"), "--summary"
    )
    found: list[tuple[str, Goodput | None]] = []
    for row in rows:
        parts = {
            sort: row.cells[name].strip()
            for sort, name in (
                ("completed", "complete_gpu_time"),
                ("cancelled", "cancel_gpu_time"),
                ("failed", "fail_gpu_time"),
            )
        }
        hours = {sort: _seconds(row, sort, text) for sort, text in parts.items() if text}
        told.faults += row.faults
        if row.faults:
            continue
        whole = {sort: us for sort, us in hours.items() if us is not None}
        found.append(
            (str(row.cells["id"]), Goodput(hours=whole) if len(whole) == len(parts) else None)
        )
    return found


def _seconds(row: Row, name: str, text: str) -> Fraction | None:
    found = amount_in(text)
    if found is None or found < 0:
        row.fault(name, text, "GPU-seconds")
        return None
    return Fraction(found) / _SECONDS


def read_pods(text: str, told: Told) -> list[Pod]:
    """The pods of a trace. One without a moment of scheduling was never placed, and held nothing."""
    names = ("name", "num_gpu", "gpu_milli", "deletion_time", "scheduled_time", "pod_phase")
    found: list[Pod] = []
    for row in _rows(text, told, names, "--pods"):
        gpus, milli = _needed(row, "num_gpu"), _needed(row, "gpu_milli")
        begins = _whole(row, "scheduled_time")
        ends = None if begins is None else _needed(row, "deletion_time")
        if milli is not None and milli > 1000:
            row.fault("gpu_milli", milli, "at most 1000 thousandths of a GPU")
        if begins is not None and ends is not None and ends < begins:
            row.fault("deletion_time", ends, f"not before {begins}, when it was placed")
        told.faults += row.faults
        if not row.faults and gpus is not None and milli is not None:
            node = str(row.cells.get("node", "") or row.cells.get("node_name", "")).strip()
            pod = Pod(
                name=str(row.cells["name"]), phase=str(row.cells["pod_phase"]), milli=gpus * milli,
                begins=begins, ends=ends, node=node or None,
            )  # fmt: skip
            found.append(pod)
    return found


def read_nodes(text: str, told: Told) -> list[PodNode]:
    """The nodes of a trace and how many GPUs each has."""
    found: list[PodNode] = []
    for row in _rows(text, told, ("sn", "gpu"), "--nodes"):
        gpus = _needed(row, "gpu")
        told.faults += row.faults
        if not row.faults and gpus is not None:
            found.append(PodNode(name=str(row.cells["sn"]), gpus=gpus))
    return found


def _whole(row: Row, name: str) -> int | None:
    text = row.cells[name].strip()
    if not text:
        return None
    found = amount_in(text)
    if found is None or found != found.to_integral_value() or found < 0:
        row.fault(name, text, "a whole number")
        return None
    return int(found)


def _needed(row: Row, name: str) -> int | None:
    if not row.cells[name].strip():
        row.fault(name, None, "a whole number")
    return _whole(row, name)


def _rows(text: str, told: Told, names: Sequence[str], option: str) -> Iterable[Row]:
    rows = rows_of(told, text, ",")
    absent = [name for name in names if rows and name not in rows[0].cells]
    if absent or not rows:
        raise OuvrageError(
            "goodput/columns",
            f"the file has no {', '.join(absent) or 'rows'}",
            where=(f"{told.file}:1",),
            hint=f"{option} takes a CSV with {', '.join(names)}",
        )
    return rows
