"""Which cluster and which time a question about a fleet means.

Decides that the only cluster that is known is meant where none is named, and all of its time of which every job is known where no
period is; a period never reaches beyond the last reading, since nothing is known there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.base.errors import OuvrageError
from ouvrage.books.fleet.record import Fleet, clusters_in, fleet_of
from ouvrage.books.period import Period, day_of, period_named
from ouvrage.ledger.facts import Line


def the_fleet(lines: Sequence[Line], cluster: str | None) -> Fleet:
    """The cluster that is meant. Raises ``OuvrageError`` ``fleet/none``, ``fleet/which`` or ``fleet/unknown``."""
    known = clusters_in(lines)
    first = next(iter(known), None)
    if first is None:
        raise OuvrageError(
            "fleet/none",
            "no cluster is known here",
            hint="on a login node: ouvrage fleet adopt; from elsewhere: --ssh HOST",
        )
    if cluster is not None and cluster not in known:
        raise OuvrageError(
            "fleet/unknown",
            f"no cluster {cluster!r} is known here",
            where=known,
            hint=f"--cluster {first}",
        )
    if cluster is None and len(known) != 1:
        raise OuvrageError(
            "fleet/which",
            f"{len(known)} clusters are known",
            where=known,
            hint=f"--cluster {first}",
        )
    return fleet_of(lines, cluster or first)


def the_period(fleet: Fleet, name: str | None, zone: str) -> Period:
    """The period that is asked about, as far as the cluster was read; all of that where none is named."""
    if fleet.from_us is None or fleet.until_us is None:
        raise OuvrageError(
            "fleet/none",
            f"{fleet.cluster} was never read",
            hint="on a login node: ouvrage fleet adopt",
        )
    if name is not None:
        asked = period_named(name, zone)
        if asked.from_us >= fleet.until_us:
            raise OuvrageError(
                "fleet/period", f"{fleet.cluster} was read until {day_of(fleet.until_us, zone)}, and not since",
                hint="ouvrage fleet adopt reads on",
            )  # fmt: skip
        return asked.until(fleet.until_us)
    stood = min((each[0].valid_from for each in fleet.nodes.values()), default=fleet.from_us)
    begins = max(fleet.from_us, stood)
    ends = fleet.until_us if fleet.known_us is None else max(begins, fleet.known_us)
    first, last = day_of(begins, zone), day_of(ends, zone)
    return Period(
        from_us=begins,
        to_us=ends,
        name=f"{first} to {last}" if first != last else f"{first}",
        zone=zone,
    )
