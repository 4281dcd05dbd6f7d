"""How parts on the PCI bus reach one another, from the bridges above them; and the driver's table of NVLinks beside it.

Decides the nearest way between two places in the words of ``nvidia-smi topo -m`` (``metering.topology.WAYS``), so that
it is known without a driver, and for network cards and disks too. The driver's word counts for NVLink alone, which
the bus does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ouvrage.metering.topology import way
from ouvrage.model.around import RunTopology
from ouvrage.model.health import Place, Way

_BEHIND_ONE_SWITCH = 2
"""The switch's own port and the device: what lies below a shared bridge when no second switch does."""


def link_between(one: Place, other: Place) -> str:
    """The way between two places: ``PIX``, ``PXB``, ``PHB``, ``NODE``, ``SYS``.

    ``path`` begins with the host bridge. Through no host bridge: by one switch or by several.
    """
    shared = _shared(one.path, other.path)
    if shared > 1:
        below = max(len(one.path), len(other.path)) - shared
        return "PIX" if below <= _BEHIND_ONE_SWITCH else "PXB"
    if shared == 1:
        return "PHB"
    known = one.numa is not None and other.numa is not None
    return "NODE" if known and one.numa == other.numa else "SYS"


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many steps from the root two ways down have in common, the devices themselves left out."""
    count = 0
    for a, b in zip(one[:-1], other[:-1], strict=False):
        if a != b:
            return count
        count += 1
    return count


def ways(
    places: Sequence[Place], gpus: Sequence[str], nvlinks: Mapping[tuple[str, str], str]
) -> tuple[Way, ...]:
    """The way of every GPU to each other one and to each other part; pairs without a GPU are left out."""
    found: list[Way] = []
    ordered = sorted(places, key=lambda place: (place.slot not in gpus, place.slot))
    for one, other in combinations(ordered, 2):
        if one.slot not in gpus:
            break
        link = nvlinks.get((one.slot, other.slot)) or nvlinks.get((other.slot, one.slot))
        found.append(Way(one=one.slot, other=other.slot, link=link or link_between(one, other)))
    return tuple(found)


def nvlinks_of(table: RunTopology, gpus: Sequence[str]) -> dict[tuple[str, str], str]:
    """The NVLinks of a table, by the places of its GPUs; ``gpus`` are these in the driver's order."""
    return dict(_nvlinks(table, gpus))


def _nvlinks(table: RunTopology, gpus: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    rows = {row.name: row for row in table.rows}
    for (i, one), (j, other) in combinations(enumerate(gpus), 2):
        row = rows.get(f"GPU{i}")
        at = next((n for n, each in enumerate(table.rows) if each.name == f"GPU{j}"), None)
        if row is not None and at is not None and way(row.links[at]) == "NV":
            yield (one, other), row.links[at]
