"""``nvidia-smi topo -m``: the table of what joins the GPUs and network cards of a machine, read.

Decides what is a table and what its columns are; the legend below it and escapes of a terminal are left
out. What it tells is by which way two devices can reach each other, never that anything went that way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ouvrage.base.errors import OuvrageError
from ouvrage.model.around import RunTopology, TopologyRow

MOST_DEVICES = 128
LONGEST = 65_536
WAYS = {
    "NV": "NVLink",
    "PIX": "one PCIe bridge",
    "PXB": "several PCIe bridges",
    "PSB": "one PCIe bridge on the board",
    "PHB": "the processor's PCIe host bridge",
    "NODE": "PCIe and the links between host bridges of one processor",
    "SYS": "PCIe and the link between processors",
    "SOC": "PCIe and the link between processors",
}
"""What each word of the table means, the nearest way first, in our words."""
_ORDER = tuple(WAYS)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DEVICE = re.compile(
    r"(?:GPU|NIC)[0-9]{1,3}|(?:mlx|hfi|bnxt|efa|irdma)[A-Za-z0-9_]{1,30}", re.ASCII
)
_LINK = re.compile(r"X|NV[0-9]{1,3}|PIX|PXB|PSB|PHB|NODE|SYS|SOC|N/A", re.ASCII)
_NIC_NAME = re.compile(r"\s*NIC([0-9]{1,3}):\s+(\S{1,40})\s*", re.ASCII)
_NONE = ("", "N/A")


def topology_in(text: str, *, run: str, source: str) -> RunTopology:
    """The table in a text. Raises ``OuvrageError`` ``topology/...`` with the line where it has none."""
    lines = [_ESCAPE.sub("", line) for line in text[:LONGEST].splitlines()]
    at, names = _head(lines, source)
    rows: list[TopologyRow] = []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        if not line.strip():
            break
        rows.append(_row(line, names, source, number))
    if [row.name for row in rows] != names:
        found = ", ".join(row.name for row in rows) or "none"
        raise _unreadable(
            source, at + 1, f"rows for {found}", f"a row for each of {', '.join(names)}"
        )
    nics = {match[1]: match[2] for line in lines if (match := _NIC_NAME.fullmatch(line))}
    named = tuple(nics[key] for key in sorted(nics, key=int))
    return RunTopology(run=run, source=source, rows=tuple(rows), nics=named)


def _head(lines: Sequence[str], source: str) -> tuple[int, list[str]]:
    """Which line heads the table, and the devices in its columns."""
    for index, line in enumerate(lines):
        words = line.split()
        names = words[
            : next((i for i, w in enumerate(words) if not _DEVICE.fullmatch(w)), len(words))
        ]
        following = lines[index + 1].split() if index + 1 < len(lines) else []
        if names and names[0].startswith("GPU") and following[:1] == names[:1]:
            if len(set(names)) < len(names) or len(names) > MOST_DEVICES:
                raise _unreadable(source, index + 1, f"{len(names)} columns", "each device once")
            return index, names
    raise _unreadable(
        source, 1, "no line that begins with GPU0 above a row of it", "the whole output"
    )


def _row(line: str, names: Sequence[str], source: str, number: int) -> TopologyRow:
    cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
    name, links, rest = cells[0], cells[1 : len(names) + 1], cells[len(names) + 1 :]
    bad = next((link for link in links if not _LINK.fullmatch(link)), None)
    if len(links) < len(names) or bad is not None:
        found = f"{bad!r}" if bad is not None else f"{len(links)} links"
        raise _unreadable(
            source, number, f"{name[:40]}: {found}", f"{len(names)} of X, NV#, PIX … SYS"
        )
    near = [*(None if cell in _NONE else cell[:200] for cell in rest), None, None]
    return TopologyRow(name=name, links=tuple(links), cpus=near[0], numa=near[1])


def _unreadable(source: str, number: int, found: str, expected: str) -> OuvrageError:
    return OuvrageError(
        "topology/unreadable",
        f"{source} is no table of nvidia-smi topo -m: {found}, where {expected} was expected",
        where=(f"{source}:{number}",),
        hint="nvidia-smi topo -m > topology.txt, and the whole of it",
    )


def way(link: str) -> str:
    """``NV18`` is a way of the sort ``NV``; the others are sorts themselves."""
    return "NV" if link.startswith("NV") else link


def gpu_links(topology: RunTopology) -> tuple[tuple[str, int], ...]:
    """How many pairs of GPUs are joined by which link, the nearest way first; NVLinks by their number."""
    return _counted(topology, "GPU", "GPU")


def nic_links(topology: RunTopology) -> tuple[tuple[str, int], ...]:
    """How many GPUs have their nearest network card by which link."""
    others = [i for i, row in enumerate(topology.rows) if not row.name.startswith("GPU")]
    nearest = [
        min((row.links[i] for i in others), key=_distance)
        for row in topology.rows
        if others and row.name.startswith("GPU")
    ]
    return _ordered(Counter(nearest).items())


def _counted(topology: RunTopology, one: str, other: str) -> tuple[tuple[str, int], ...]:
    found: Counter[str] = Counter()
    for i, row in enumerate(topology.rows):
        for j in range(i + 1, len(topology.rows)):
            if row.name.startswith(one) and topology.rows[j].name.startswith(other):
                found[row.links[j]] += 1
    return _ordered(found.items())


def _distance(link: str) -> tuple[int, int]:
    sort = way(link)
    place = _ORDER.index(sort) if sort in WAYS else len(_ORDER)
    return place, -int(link[2:]) if sort == "NV" and link[2:] else 0


def _ordered(pairs: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(pairs, key=lambda pair: _distance(pair[0])))


def topology_words(topology: RunTopology) -> str:
    """``8 GPUs: all 28 pairs by NV18 (NVLink); nearest network card by PIX``: what could be used."""
    gpus = sum(row.name.startswith("GPU") for row in topology.rows)
    if gpus < 2:
        return "1 GPU, so no way between GPUs"
    pairs = gpu_links(topology)
    total = sum(many for _, many in pairs)
    told = [
        f"{'all ' if many == total else ''}{many} pairs by {link} ({WAYS.get(way(link), 'not told')})"
        for link, many in pairs
    ]
    near = nic_links(topology)
    card = f"; nearest network card by {', '.join(link for link, _ in near)}" if near else ""
    return f"{gpus} GPUs: {', '.join(told)}{card}"


def topology_fault(topology: RunTopology) -> str | None:
    """Why a recorded table cannot be reckoned with; None when it can."""
    many = len(topology.rows)
    if not many or many > MOST_DEVICES:
        return f"a table of {many} devices"
    if any(
        len(row.links) != many or not all(map(_LINK.fullmatch, row.links)) for row in topology.rows
    ):
        return "a table that is not square, or with words that no driver writes"
    return None
