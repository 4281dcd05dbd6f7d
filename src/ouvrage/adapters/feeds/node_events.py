"""What befell the nodes of a Slurm cluster: ``sacctmgr show event`` and ``sinfo -R``.

Decides that an event about a list of nodes is one about each, that a list of now (``sinfo``) says what was so from
its stamp to the moment at which it was made, and that events of a whole cluster are no node's. Fields
are those of https://slurm.schedmd.com/sacctmgr.html and https://slurm.schedmd.com/sinfo.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ouvrage.adapters.catalogues.rows import Row, printable
from ouvrage.adapters.feeds.moments import moment_of, wall_moments
from ouvrage.adapters.feeds.sacct import form_of, lines_of
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.nodelists import unfolded
from ouvrage.ledger.kinds import payload_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.model.cluster import ClusterNodeEvent

NODES = ("NodeName", "Node Name", "NodeList", "NODELIST")
_FIXED = re.compile(r"REASON +USER +TIMESTAMP +NODELIST\s*")
_NAMES = {
    "node": ("nodename", "node name", "nodelist"),
    "start": ("timestart", "time start", "start", "timestamp"),
    "end": ("timeend", "time end", "end"),
    "state": ("state",),
    "reason": ("reason",),
    "cluster": ("cluster",),
}
_UNSET = ("", "unknown", "none", "n/a")


def is_node_list(head: str) -> bool:
    """Whether a first line is that of events or of reasons, and not of jobs."""
    names = {name.strip().lower() for name in re.split(r"[|\t;,#]+", head)}
    return bool(_FIXED.fullmatch(head)) or (
        not {"jobid", "jobidraw"} & names and bool({name.lower() for name in NODES} & names)
    )


def read_events(
    text: str, told: Told, zone: str, cluster: str | None, saved_us: int
) -> list[Stated]:
    """The statements of an export, each once; rows that cannot be read are faults in ``told``."""
    found: dict[str, Stated] = {}
    for row in _rows(text, told):
        for stated in _stated(row, told, zone, cluster, saved_us):
            found.setdefault(stated.id, stated)
        told.faults += row.faults
    return list(found.values())


def _rows(text: str, told: Told) -> Iterator[Row]:
    head = text.split("\n", 1)[0]
    if _FIXED.fullmatch(head.rstrip("\r")):
        yield from _fixed(text, told)
        return
    form = form_of(text, None, told.file, NODES)
    first = {name.lower(): i for i, name in reversed(list(enumerate(form.names)))}
    for line, row in lines_of(text, form, told):
        cells = form.cells(row)
        yield told.row({name: printable(cells[i]) for name, i in first.items()}, str(line))


def _fixed(text: str, told: Told) -> Iterator[Row]:
    """Rows of ``sinfo -R`` as it prints them, in columns: user, stamp and nodes hold no blanks."""
    for line, row in enumerate(text.split("\n")[1:], 2):
        if not row.strip():
            continue
        told.rows += 1
        cells = row.strip().rsplit(None, 3)
        if len(cells) < 3:
            told.fault(str(line), "row", row[:60], "REASON USER TIMESTAMP NODELIST")
            continue
        reason = cells[0] if len(cells) == 4 else ""
        yield told.row({"reason": reason, "timestamp": cells[-2], "nodelist": cells[-1]}, str(line))


def _cell(row: Row, what: str) -> str | None:
    for name in _NAMES[what]:
        text = row.cells.get(name)
        if text is not None:
            return None if text.lower() in _UNSET else text[:500]
    return None


def _stated(
    row: Row, told: Told, zone: str, cluster: str | None, saved_us: int
) -> Sequence[Stated]:
    listed = _cell(row, "node")
    if listed is None:
        told.note("events of the whole cluster are no node's, and are left out")
        return ()
    try:
        nodes = unfolded(listed)
    except ValueError:
        row.fault("NodeName", listed, "a list of nodes: node[001-004,007]")
        return ()
    start, end = _moment(row, "start", zone), _moment(row, "end", zone)
    if start is None or row.faults:
        if not row.faults:
            row.fault("TimeStart", None, "a moment")
        return ()
    if end is not None and end < start:
        row.fault("TimeEnd", _cell(row, "end"), "an end after the beginning")
        return ()
    lists_now = not {*_NAMES["end"]} & row.cells.keys()
    return [
        _event(
            ClusterNodeEvent(
                cluster=_cell(row, "cluster") or cluster or "cluster",
                node=node,
                state=_cell(row, "state") or "not said",
                reason=_cell(row, "reason") or "",
                start_us=start,
                end_us=end,
                seen_us=max(start, saved_us) if lists_now else None,
            )
        )
        for node in nodes
    ]


def _event(value: ClusterNodeEvent) -> Stated:
    said = sha256_hex(canonical(payload_of(value)))[:HASHED]
    return Stated(
        natural=f"node/{key_part(value.cluster)}/{key_part(value.node)}/{said}",
        value=value,
        subject=f"cluster:{name_part(value.cluster)}",
        valid_from=value.start_us,
        valid_to=value.seen_us if value.end_us is None else value.end_us,
        grade=Grade.METERED,
    )


def _moment(row: Row, what: str, zone: str) -> int | None:
    text = _cell(row, what)
    if text is None:
        return None
    known = moment_of(text)
    found: Sequence[int] = (known,) if known is not None else wall_moments(text, "", zone)
    if len(found) != 1:
        row.fault(what, text, f"a moment that clocks in {zone} show once")
        return None
    return found[0]
