"""Which units finished, and how long each took.

Decides what the counted stream of marks (``streams``) amounts to, and what a reader should know
about it. Without any mark, the command itself is the unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.metering.laps import Count, Lap
from ouvrage.metering.run_view import RunView
from ouvrage.metering.streams import choose, how, source_hints, streams_of
from ouvrage.model.runs import RunMarks

COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of one run. ``how`` says in words which marks were counted.

    ``first_us`` is where the first unit began, None when not known; ``first_timed`` says whether
    the run's first unit has a lap of its own.
    """

    name: str
    via: str | None
    how: str
    finished: int
    untimed: int
    laps: tuple[Lap, ...]
    first_us: int | None
    first_timed: bool
    hints: tuple[str, ...]

    @property
    def is_command(self) -> bool:
        """Whether nothing marked a unit, so that the command itself is the one."""
        return self.via is None


def units_of(view: RunView) -> Units:
    """The finished units of a run; without any mark, the command itself is the unit."""
    streams = streams_of(view)
    if not streams:
        return _command(view)
    chosen = choose(streams, view.started.unit)
    count, name, via = chosen.count, chosen.name, chosen.via
    return Units(
        name=name,
        via=via,
        how=how(via),
        finished=count.finished,
        untimed=count.untimed,
        laps=tuple(count.laps),
        first_us=count.first_us,
        first_timed=count.first_timed,
        hints=(*source_hints(view, streams, chosen), *_count_hints(count, name)),
    )


def facts_of_units(view: RunView, units: Units) -> tuple[str, ...]:
    """Keys of the facts that the units stand on: their marks, or the run's end."""
    if units.is_command:
        return view.facts("run.ended")
    pairs = zip(view.marks, view.facts(RunMarks.KIND), strict=True)
    keys = [key for marks, key in pairs if (marks.name, marks.via) == (units.name, units.via)]
    return (*keys, *view.facts("run.ended"))


def _command(view: RunView) -> Units:
    done = view.outcome == "completed"
    laps = (Lap(count=1, from_us=0, to_us=view.wall_us),) if done and view.wall_us > 0 else ()
    found = "no unit was found" + (", so the command itself is the unit" if done else "")
    return Units(
        name=COMMAND if done else view.started.unit or COMMAND,
        via=None,
        how="the command itself, finished when it exits with 0",
        finished=1 if done else 0,
        untimed=1 if done and not laps else 0,
        laps=laps,
        first_us=0,
        first_timed=True,
        hints=(f'{found}; name one with --unit-regex or ouvrage.unit("epoch")',),
    )


def _count_hints(count: Count, name: str) -> list[str]:
    hints: list[str] = []
    if count.finished > 1 and not count.laps:
        hints.append(
            f"the {count.finished} {name}s came out of a buffer together, so none could be timed: "
            "run python -u, or set PYTHONUNBUFFERED=1"
        )
    elif count.laps and count.untimed > 1:
        hints.append(f"{count.untimed} of {count.finished} {name}s could not be timed")
    if count.every:
        hints.append(f"a line came every {count.every} {name}s; each counts for all of them")
    elif (count.earliest or 0) > 1:
        hints.append(
            f"the first {name} that was seen is number {count.earliest}; none before it is counted"
        )
    if count.series > 1:
        hints.append(f"the numbers began anew {count.series - 1} times; all series are counted")
    if count.stepped_back:
        hints.append(f"{count.stepped_back} lines stepped back in number and were not counted")
    return hints
