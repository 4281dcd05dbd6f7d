"""The runs whose reports are kept as texts, in ``golden/``, for people to read and tests to hold."""

from __future__ import annotations

from ouvrage.metering.run_view import RunView
from tests.support.runs import (
    CHEAP,
    DEAR,
    OTHER_RUN,
    Line,
    busy,
    end,
    ends,
    header,
    marks,
    spans,
    view_of,
)

EPOCHS = ends(6.4, 10.81, 15.25, 19.62, 24.03, 28.44)
FASTER = ends(5.3, 8.63, 11.97, 15.28, 18.6, 21.9)
SPREAD = ends(5.3, 9.63, 13.97, 17.28, 21.6, 25.9)
UNTIMED = marks(("end", 1, None), ("end", 2, None))
TWO_CORES = {"cpus_allowed": 2}


def loop(wait: float, seconds: int) -> list[Line]:
    """A watched loop from the second second on: this long waiting in each."""
    return [spans(t, t + 1, cpu=0.55, data=wait) for t in range(2, seconds)]


def standard() -> RunView:
    return view_of(
        header(price=CHEAP, label="standard"), *busy(36), EPOCHS, *loop(0.38, 36), end(36)
    )


def optimised() -> RunView:
    first = header(price=DEAR, label="optimised", run=OTHER_RUN, host=TWO_CORES)
    return view_of(first, *busy(29), FASTER, *loop(0.18, 29), end(29))


def spread() -> RunView:
    first = header(price=DEAR, label="third", run="0192f0c1a2b37c4d8e1fb0b1d2d3e4f7")
    return view_of(first, *busy(29), SPREAD, *loop(0.18, 29), end(29))


def reports() -> dict[str, RunView]:
    """One run for each way in which a report can begin."""
    return {
        "waited": standard(),
        "lost": view_of(header(price=CHEAP), *busy(36), EPOCHS),
        "no-price-failed": view_of(header(), *busy(36), EPOCHS, end(36, 3)),
        "nothing-finished": view_of(header(price=CHEAP, unit="epoch"), *busy(36), end(36, 3)),
        "killed": view_of(header(price=CHEAP), *busy(36), end(36, None, signal=15)),
        "interrupted": view_of(
            header(price=CHEAP), *busy(36), EPOCHS, end(36, 130, interrupted=True)
        ),
        "command": view_of(header(price=CHEAP), *busy(36), end(36)),
        "little-sampled": view_of(header(price=CHEAP), *busy(10), end(36)),
        "no-time": view_of(header(price=CHEAP), end(0)),
        "untimed": view_of(header(price=CHEAP, label="\x1b[31mred"), *busy(36), UNTIMED, end(36)),
    }
