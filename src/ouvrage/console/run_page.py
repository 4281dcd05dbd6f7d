"""The page of one run: what a unit cost, where the time went, the run over time, its units.

Decides which figures lead and which pictures follow; words and digits are the command's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.time import utc_text
from ouvrage.console.gpus_over_time import gpu_timelines
from ouvrage.console.over_time import bars_of, cores_allowed, timeline_of
from ouvrage.console.page import Drawing, Page, Tile
from ouvrage.console.pictures import Interval, Strip, Timeline, strips, timeline, unit_bars
from ouvrage.console.serving_over_time import HEADING, flight_timeline, serving_tiles
from ouvrage.console.shown import name_in, shown, shown_to_precision, strip_parts
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.cause import NAMES, cause_of
from ouvrage.metering.gpus import GpuTrack
from ouvrage.metering.phases import WARMUP_RULE
from ouvrage.metering.reckoning import Reckoning, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.windows import Columns
from ouvrage.pricing.accepted import SORTS
from ouvrage.pricing.report import hints_of, report_text
from ouvrage.pricing.words import counted, duration, percent, plural, rounded


def run_page(
    view: RunView, sheet: Sheet, columns: Columns | None, gpus: Sequence[GpuTrack] = ()
) -> Page:
    """The page of a run; ``columns`` and ``gpus`` are raw samples where they are at hand."""
    reckoning = reckon(view)
    said = report_text(view, sheet, plain=False)
    started = view.started
    notes = view.ended.notes if view.ended else ()
    return Page(
        title=f"{view.code} {started.label or ''} · Ouvrage",
        headline=said.splitlines()[0],
        lead=(f"{started.label or view.code}: {' '.join(started.command)}",),
        tiles=(*serving_tiles(sheet), *_tiles(sheet, reckoning)),
        drawings=tuple(_drawings(view, sheet, reckoning, columns, gpus)),
        notes=(*hints_of(view, reckoning), *notes),
        about=_about(view, reckoning),
        said=said,
        as_of=utc_text(sheet.as_of),
    )


def _tiles(sheet: Sheet, reckoning: Reckoning) -> tuple[Tile, ...]:
    name, currency = reckoning.units.name, f" {sheet['cost.total'].unit}"
    cost, cost_range = shown_to_precision(sheet, "cost_per_unit.marginal", currency)
    each, each_range = shown_to_precision(sheet, "seconds_per_unit.median", " s")
    tiles = [
        Tile(label=f"Cost per {name}", shown=cost, note=cost_range),
        Tile(
            label=f"All-in per {name}",
            shown=shown(sheet, "cost_per_unit.all_in", currency),
            note="start-up, warm-up and everything after included",
        ),
        Tile(label=f"Time per {name}", shown=each, note=each_range),
        Tile(
            label=f"Finished {plural(name)}",
            shown=shown(sheet, "units"),
            note=f"in {duration(round((sheet.number('wall_s') or 0) * 1_000_000))}",
        ),
    ]
    if sheet.number("units_accepted") is not None:
        tiles.append(
            Tile(
                label=f"Cost per accepted {name}",
                shown=shown(sheet, "cost_per_accepted_unit", currency),
                note=_accepted_words(sheet),
            )
        )
    key = reckoning.steady.largest_wait()
    if key is not None and sheet.number("worth.seconds_per_unit") is not None:
        tiles.append(
            Tile(
                label="Still on the table",
                shown=shown(sheet, "worth.seconds_per_unit", " s"),
                note=f"per {name}, if it were never {NAMES[key]}",
            )
        )
    return tuple(tiles)


def _accepted_words(sheet: Sheet) -> str:
    accepted, rejected = sheet.number("units_accepted"), sheet.number("units_rejected")
    words = f"{accepted} accepted, {rejected} not"
    lost = [
        f"{rounded(cost)} {sort}" for sort in SORTS[1:] if (cost := sheet.number(f"cost.{sort}"))
    ]
    return f"{words}; {', '.join(lost)}" if lost else words


def _drawings(
    view: RunView,
    sheet: Sheet,
    reckoning: Reckoning,
    columns: Columns | None,
    gpus: Sequence[GpuTrack],
) -> list[Drawing]:
    drawings = []
    use = reckoning.steady
    if use.total_us and view.load is None:
        steady = "" if use.total_us == reckoning.whole.total_us else ", steady phase"
        heading = f"Where the time went{steady}"
        strip = Strip(name="", note="", length=1.0, parts=strip_parts(use))
        cause = cause_of(view, reckoning)
        drawings.append(
            Drawing(
                heading=heading,
                svg=strips("time", heading, [strip]),
                caption=_sentence(cause.evidence),
            )
        )
    if view.wall_us:
        line = timeline_of(view, columns, reckoning.units, reckoning.phases)
        drawings += _flight_and_cores(view, reckoning, line)
        for number, (heading, gpu) in enumerate(gpu_timelines(view, gpus, line)):
            picture = timeline(f"gpu-{number}", heading, gpu)
            drawings.append(Drawing(heading=heading, svg=picture, caption=_gpu_words(sheet)))
    bars = bars_of(reckoning.units, reckoning.phases.warmup_laps)
    if bars and not reckoning.units.is_command:
        heading = f"Seconds per {reckoning.units.name}"
        picture = unit_bars("units", heading, bars, _middle(sheet), reckoning.units.name)
        drawings.append(
            Drawing(heading=heading, svg=picture, caption=_bars_words(sheet, reckoning))
        )
    return drawings


def _flight_and_cores(view: RunView, reckoning: Reckoning, line: Timeline) -> list[Drawing]:
    """Requests in flight, where there were any; the cores, unless only a client used them."""
    drawings: list[Drawing] = []
    flight = flight_timeline(view, line)
    if flight:
        caption = "Sent and not yet answered, or as many as the server said it was working on."
        picture = timeline("flight", HEADING, flight)
        drawings.append(Drawing(heading=HEADING, svg=picture, caption=caption))
    if view.load is None:
        caption = f"The dashed line is what it may use. {_ticks_words(reckoning)}"
        heading = "Cores at work"
        picture = timeline("cores", heading, line)
        drawings.append(Drawing(heading=heading, svg=picture, caption=caption))
    return drawings


def _gpu_words(sheet: Sheet) -> str:
    total, covered = sheet.number("energy_j"), sheet.number("energy.coverage")
    if total is None or covered is None:
        return ""
    return f"Energy of the GPUs: {rounded(total)} J in {percent(covered)} of the run."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _ticks_words(reckoning: Reckoning) -> str:
    units = reckoning.units
    if units.is_command or not units.laps:
        return ""
    return f"A line marks the end of each {units.name} whose moment is known."


def _bars_words(sheet: Sheet, reckoning: Reckoning) -> str:
    words = []
    if reckoning.phases.warmup_laps:
        words.append("Hollow bars are warm-up and not counted.")
    if reckoning.units.untimed:
        units = reckoning.units
        many = f"{counted(units.untimed, units.name)} could not be timed and"
        words.append(f"{many} {'is' if units.untimed == 1 else 'are'} not drawn.")
    confidence = sheet.number("seconds_per_unit.confidence")
    if confidence is not None:
        words.append(f"The band holds the median with {percent(confidence)} confidence.")
    return " ".join(words)


def _middle(sheet: Sheet) -> Interval | None:
    value = sheet.number("seconds_per_unit.median")
    if value is None:
        return None
    low, high = sheet.number("seconds_per_unit.low"), sheet.number("seconds_per_unit.high")
    text, _ = shown_to_precision(sheet, "seconds_per_unit.median", " s")
    return Interval(
        name=name_in(sheet, "seconds_per_unit.median"),
        value=float(value),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        label=f"median {text.text}",
    )


def _about(view: RunView, reckoning: Reckoning) -> tuple[tuple[str, str], ...]:
    host, started = view.started.host, view.started
    cores = f"{cores_allowed(host):g} of {host.cpus_online or '?'} cores allowed"
    memory = host.memory_limit_bytes or host.memory_bytes
    machine = [host.cpu_model or "CPU not known", cores]
    if memory:
        machine.append(f"{rounded(Fraction(memory, 1 << 30))} GiB of memory")
    return (
        ("Run", f"{view.code}, {view.run}"),
        (
            "Outcome",
            f"{view.outcome}, {duration(view.wall_us)} from {utc_text(started.started_us)}",
        ),
        ("Command", " ".join(started.command)),
        ("In", started.cwd),
        ("Client" if view.load else "Host", ", ".join(machine)),
        ("Price", started.price.text() if started.price else "none was given"),
        ("Units", reckoning.units.how),
        ("Warm-up", WARMUP_RULE),
        *(() if view.load else (("Waits", cause_of(view, reckoning).rule),)),
    )
