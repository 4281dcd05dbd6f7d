"""A served model over time: the requests in flight, as a timeline beside the cores'.

Decides from what it is drawn: from the requests themselves where each was timed, else from what the
server said it was working on. A stretch that nobody told of is a gap in the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ouvrage.base.time import SECOND
from ouvrage.console.over_time import fewer
from ouvrage.console.page import Tile
from ouvrage.console.pictures import Step, Timeline
from ouvrage.console.shown import shown
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.run_view import RunView
from ouvrage.metering.serving import in_flight, requests_in
from ouvrage.pricing.inference_text import load_words, serves
from ouvrage.pricing.words import rounded

HEADING = "Requests in flight"


def flight_timeline(view: RunView, cores: Timeline) -> Timeline | None:
    """The timeline of requests; ``cores`` lends its phases and units. None where nothing is known."""
    flights = in_flight(requests_in(view.requests))
    steps = list(_sent(flights)) if flights else list(_windowed(view))
    if not any(step.cores for step in steps):
        return None
    wanted = view.load.concurrency if view.load else None
    return replace(
        cores,
        cores_allowed=float(wanted or 0),
        steps=tuple(fewer(steps)),
        what="requests in flight",
    )


def _sent(flights: list[tuple[int, int]]) -> Iterator[Step]:
    for (begin, number), (end, _) in pairwise(flights):
        yield Step(from_s=begin / SECOND, to_s=end / SECOND, cores=float(number))


def _windowed(view: RunView) -> Iterator[Step]:
    servers = {window.server for window in view.server_windows}
    for window in view.server_windows:
        if window.server != min(servers):
            continue
        running, covered = window.running_us, window.gauges_covered_us
        many = running / covered if running is not None and covered else None
        yield Step(from_s=window.from_us / SECOND, to_s=window.to_us / SECOND, cores=many)


def serving_tiles(sheet: Sheet) -> tuple[Tile, ...]:
    """What a million tokens cost and how long people waited, with the load beside it."""
    if not serves(sheet):
        return ()
    currency, under = f" {sheet['cost.total'].unit}", load_words(sheet, plain=False)
    root = "inference.cost_per_million_tokens"
    tiles = [
        Tile(
            label=f"Cost of a million tokens {way}",
            shown=shown(sheet, f"{root}.{way}", currency),
            note=f"{under}; it alone carries the whole cost",
        )
        for way in ("out", "in")
    ]
    for label, name in (("First token after", "first_token_s"), ("Whole answer after", "answer_s")):
        late = sheet.number(f"inference.{name}.p95")
        note = "half of the requests" + (f"; p95 {rounded(late)} s" if late is not None else "")
        tiles.append(
            Tile(label=label, shown=shown(sheet, f"inference.{name}.p50", " s"), note=note)
        )
    return tuple(tiles)
