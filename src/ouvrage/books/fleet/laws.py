"""The laws of a fleet's books: what its GPUs did adds up to the time they stood there, and drafts to their charges.

They judge the last month that was read, by another road than the report takes: the time that GPUs stood there is counted from the listings of
nodes alone. Whether the cluster's own accounting is right they do not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ouvrage.books.fleet.record import FLEET_KINDS, clusters_in, fleet_of
from ouvrage.books.fleet.time import fleet_time
from ouvrage.books.period import Period, month_of
from ouvrage.ledger.facts import Recorded, line_of
from ouvrage.ledger.laws import Law


def _time_adds_up(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
    lines = [line_of(entry) for entry in records if entry.fact.kind in FLEET_KINDS]
    for cluster in clusters_in(lines):
        fleet = fleet_of(lines, cluster)
        if fleet.until_us is None:
            continue
        period: Period = month_of(fleet.until_us - 1, "UTC").until(fleet.until_us)
        found = fleet_time(fleet, period)
        told = sum(each.us for each in found.spent)
        if told != found.owned_us:
            yield (
                f"cluster:{cluster}",
                f"its GPUs' states take {told} us of the {found.owned_us} us that they stood there",
            )
        for each in found.spent:
            if each.us < 0:
                yield f"cluster:{cluster}", f"{each.node} was {each.state} for {each.us} us"


LAWS: tuple[Law, ...] = (
    Law(
        name="fleet/time-adds-up",
        statement="the states of a cluster's GPUs, idle time by cause, add up to the time that they stood there",
        check=_time_adds_up,
    ),
)
