"""Telemetry on the pages of a node and of a job: the last hour of its GPUs, and of its cores, as lines and as a table.

Decides who is shown what: whoever keeps the machines sees all of a node; those to whom a job belongs see the GPUs that it has, while it has them, and nothing of
the rest of the machine. What was not read is a gap in the line and is missing from the table's minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.base.time import HOUR, utc_text
from ouvrage.console import svg
from ouvrage.console.blocks import Block, Cell, Picture, Table
from ouvrage.console.lines import SPELLS, Line, drawn, spells
from ouvrage.server.access import intake_of
from ouvrage.server.pages.frame import Visit
from ouvrage.server.recent import Seen
from ouvrage.store.platform.work import attempts_of
from ouvrage.wire.work import JobShown

_MARKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """A column of telemetry, its words and unit, by what it is divided, and the top of its picture (None: by what was read)."""

    column: str
    words: str
    unit: str
    by: float
    top: float | None


_OF_GPUS = (
    _Measure(column="busy_percent", words="GPU busy", unit="%", by=1, top=100),
    _Measure(column="power_mw", words="GPU power", unit="W", by=1000, top=None),
    _Measure(column="temperature_c", words="GPU temperature", unit="°C", by=1, top=None),
)
_OF_CORES = _Measure(column="cpu_permille", words="Cores busy", unit="%", by=10, top=100)


def of_node(seen: Visit, node: str) -> list[Block]:
    """A node's last hour."""
    now = seen.platform.clock()
    found = _recent(seen, node, now - HOUR)
    blocks = _of_gpus(seen, found, tuple(found.gpus), now - HOUR, now)
    cores = (
        spells(found.times, found.node[_OF_CORES.column], now - HOUR, now) if found.times else ()
    )
    if any(value is not None for value in cores):
        lines = [_line(seen.word("All cores"), cores, _OF_CORES)]
        blocks += [(_OF_CORES, lines)]
    return _shown(seen, blocks, now - HOUR, now)


def of_job(seen: Visit, told: JobShown) -> list[Block]:
    """The last hour of the GPUs that a job's last attempt has or had, as far as it had them."""
    with seen.platform.reading() as connection:
        last = next(reversed(attempts_of(connection, told.job)), None)
    if last is None or last.began_us is None or not last.placed.devices:
        return []
    now = seen.platform.clock()
    begin, end = max(now - HOUR, last.began_us), min(now, last.ended_us or now)
    if begin >= end:
        return []
    found = _recent(seen, last.node, begin)
    return _shown(seen, _of_gpus(seen, found, last.placed.devices, begin, end), begin, end)


def _recent(seen: Visit, node: str, since_us: int) -> Seen:
    return intake_of(seen.request).recent.of(node, since_us)


_Shown = list[tuple[_Measure, list[Line]]]


def _of_gpus(seen: Visit, found: Seen, devices: Sequence[str], from_us: int, to_us: int) -> _Shown:
    shown: _Shown = []
    held = sorted(set(devices) & found.gpus.keys())
    for measure in _OF_GPUS:
        lines = [
            _line(
                f"GPU {device[-6:]}" if len(held) > 1 else "GPU",
                spells(found.times, found.gpus[device][measure.column], from_us, to_us),
                measure,
            )
            for device in held
        ]
        if any(line.known for line in lines):
            shown.append((measure, lines))
    return shown


def _line(name: str, values: Sequence[float | None], measure: _Measure) -> Line:
    scaled = tuple(None if value is None else value / measure.by for value in values)
    return Line(name=name, values=scaled)


def _shown(seen: Visit, found: _Shown, from_us: int, to_us: int) -> list[Block]:
    """A picture for each measure, and one table that says the same to whoever does not see them."""
    if not found:
        return []
    blocks: list[Block] = [
        _picture(seen, measure, lines, from_us, to_us) for measure, lines in found
    ]
    _ = seen.word
    rows = tuple(_row(seen, measure, line) for measure, lines in found for line in lines)
    columns = (_("What"), _("Last"), _("Mean"), _("Least"), _("Most"), _("Covered"))
    return [*blocks, Table(heading=_("The same in numbers"), columns=columns, rows=rows)]


def _picture(
    seen: Visit, measure: _Measure, lines: list[Line], from_us: int, to_us: int
) -> Picture:
    highest = max((value for line in lines for value in line.known), default=0.0)
    top = measure.top or svg.ticks(highest * 1.15 or 1.0, 4)[-1] or 1.0
    marks = [(at, utc_text(int(from_us + at * (to_us - from_us)))[11:16]) for at in _MARKS]
    heading = f"{seen.word(measure.words)}, {measure.unit}"
    return Picture(
        heading=heading,
        svg=drawn(f"t-{measure.column}", heading, lines, max(top, highest), marks),
        caption=seen.word(
            "Means of a sixtieth of the time each, UTC; a gap is where nothing was read."
        ),
    )


def _row(seen: Visit, measure: _Measure, line: Line) -> tuple[Cell, ...]:
    known = line.known
    name = Cell(text=f"{line.name}: {seen.word(measure.words)}")
    if not known:
        return (
            name,
            *(Cell(text="–", number=True) for _ in range(4)),
            Cell(text="0 %", number=True),
        )
    values = (known[-1], sum(known) / len(known), min(known), max(known))
    return (
        name,
        *(Cell(text=f"{value:.0f}\u00a0{measure.unit}", number=True) for value in values),
        Cell(text=f"{100 * len(known) // SPELLS}\u00a0%", number=True),
    )
