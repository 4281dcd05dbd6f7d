"""What a unit costs under each power limit, from runs that were metered under them.

Decides what is compared: runs are put together by the limit that their own GPUs reported, and a run
in which it changed is left out. A timed unit is one observation of seconds; of joules it is a block of
units that lasts some seconds, so that readings once a second can say what it drew. The owner pays for
energy (and amortises by the hour, if told so), the renter for time. A limit is called cheapest with
the names of those that cannot be told from it at 95 % confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.energy_price import EnergyPrice
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, weakest
from ouvrage.base.price import Price
from ouvrage.base.text import safe
from ouvrage.metering.gpu_use import Energy, device_uses, metered_energy
from ouvrage.metering.gpus import gpu_windows, meter_windows
from ouvrage.metering.laps import Lap
from ouvrage.metering.reckoning import Reckoning, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.spool import Spool
from ouvrage.metering.statistics import Interval, median, median_interval, ratio_interval

US = 1_000_000
J_PER_KWH = 3_600_000
BLOCK_US = 3 * US
"""Shorter blocks would stand on two readings of power, which an edge between them can move."""
LEAST_COVERED, WELL_COVERED = Fraction(90, 100), Fraction(98, 100)
NO_LIMIT = "its GPUs told no power limit, as in a run of less than a second or two"
TOO_FEW = "too few observations for 95 % confidence, where 4 a limit would do"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some finished units: seconds and joules (None: not well enough read) for one of them.

    ``covered`` is the share of the block's time that the energy was read in.
    """

    units: int
    seconds: Fraction
    joules: Fraction | None
    covered: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is paid: by the owner for energy and time, by the renter for time; None: not told."""

    electricity: EnergyPrice | None
    rate: Price | None
    price: Price | None

    @property
    def currency(self) -> str | None:
        """The one currency of all that is told."""
        told = (self.electricity, self.rate, self.price)
        return next((each.currency for each in told if each), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of some observations, its interval, and its grade."""

    values: tuple[Fraction, ...]
    grade: Grade

    @property
    def median(self) -> Fraction:
        """The middle of them."""
        return median(self.values)

    @property
    def interval(self) -> Interval | None:
        """Its interval, None for one observation alone."""
        return median_interval(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One power limit: its runs, their blocks, and the seconds of each timed unit after warm-up.

    ``method`` says how the energy is known.
    """

    limit_w: Fraction
    runs: tuple[RunView, ...]
    blocks: tuple[Block, ...]
    times: tuple[Fraction, ...]
    grade: Grade
    method: str | None

    def seconds(self) -> Spread:
        """Seconds a unit."""
        return Spread(values=self.times, grade=self.grade)

    def joules(self) -> Spread | None:
        """Joules a unit, of the blocks that were read well enough; None where none was."""
        read = [block for block in self.blocks if block.joules is not None]
        if not read:
            return None
        whole = min(block.covered for block in read) >= WELL_COVERED
        grade = self.grade if whole else weakest((Grade.ASSUMED, self.grade))
        return Spread(values=tuple(_told(block.joules) for block in read), grade=grade)

    def covered(self) -> Fraction | None:
        """The least share of a block's time that its energy was read in; None: no energy."""
        return min((b.covered for b in self.blocks if b.joules is not None), default=None)

    def owner(self, terms: Terms) -> Spread | None:
        """What a unit costs the owner; joules where electricity has no price."""
        drawn = self.joules()
        if terms.electricity is None or drawn is None:
            return drawn
        per_j, rate = terms.electricity.per_kwh / J_PER_KWH, terms.rate
        values = tuple(
            block.joules * per_j + (rate.cost_of(block.seconds * US) if rate else 0)
            for block in self.blocks
            if block.joules is not None
        )
        return Spread(values=values, grade=weakest((Grade.ASSUMED, drawn.grade)))

    def renter(self, terms: Terms) -> Spread | None:
        """What a unit costs the renter; seconds where the machine has no price."""
        if terms.price is None:
            return self.seconds()
        values = tuple(terms.price.cost_of(seconds * US) for seconds in self.times)
        return Spread(values=values, grade=weakest((Grade.ASSUMED, self.grade)))


Side = Callable[[Setting], "Spread | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The limit whose unit costs one side least, and the limits that it cannot be told from.

    ``against`` is the highest other limit, ``saving`` the interval of the cost ratio (this by that).
    """

    setting: Setting
    spread: Spread
    alike: tuple[Fraction, ...]
    why_alike: str | None
    against: Setting | None
    saving: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run that stands under no limit, and why."""

    run: RunView
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The settings in order of their limits, and what is paid."""

    unit: str
    settings: tuple[Setting, ...]
    left_out: tuple[LeftOut, ...]
    terms: Terms

    def owner(self) -> Cheapest | None:
        """The cheapest for the owner; None where no energy was read under any limit."""
        return _cheapest(self.settings, lambda setting: setting.owner(self.terms))

    def renter(self) -> Cheapest | None:
        """The cheapest for the renter."""
        return _cheapest(self.settings, lambda setting: setting.renter(self.terms))


def finer(view: RunView, spool: Spool | None) -> RunView:
    """The same run with windows of one sampling period, where its raw samples are at hand.

    A unit that lasts seconds has no energy of its own in windows of ten.
    """
    if spool is None:
        return view
    period = spool.started.period_us
    wall = {"wall_us": spool.wall_us, "period_us": period, "window_us": period}
    gpus = (window for track in spool.gpus for window in gpu_windows(track, **wall))
    meters = (window for track in spool.meters for window in meter_windows(track, **wall))
    return replace(view, gpu_windows=tuple(gpus), energy_windows=tuple(meters))


def tuning_of(views: Sequence[RunView], terms: Terms) -> Tuning:
    """Put runs together by their limits. Raises ``OuvrageError`` ``tune/...``: nothing to compare.

    ``views`` may hold finer GPU windows than the ledger's facts do; the figures are then finer too.
    """
    names = {reckon(view).units.name for view in views if reckon(view).units.finished}
    if len(names) > 1:
        raise OuvrageError(
            "tune/unit",
            f"the runs finished different units: {', '.join(sorted(map(safe, names)))}",
            hint="name the one to count: --unit NAME",
        )
    grouped: dict[Fraction, list[RunView]] = {}
    left_out: list[LeftOut] = []
    for view in views:
        limit, why = _limit_of(view)
        if limit is None:
            left_out.append(LeftOut(run=view, why=why))
        else:
            grouped.setdefault(limit, []).append(view)
    if not grouped:
        why = left_out[0].why if left_out else "there is none"
        raise OuvrageError(
            "tune/no-runs", f"no run can be compared: {why}",
            hint="ouvrage report --campaign NAME shows what was metered",
        )  # fmt: skip
    with_host = all(
        metered_energy(view, "rapl", 0, view.wall_us)
        for group in grouped.values()
        for view in group
    )
    return Tuning(
        unit=names.pop(),
        settings=tuple(_setting(limit, grouped[limit], with_host) for limit in sorted(grouped)),
        left_out=tuple(left_out),
        terms=terms,
    )


def _limit_of(view: RunView) -> tuple[Fraction | None, str]:
    """The limit that all of the run's GPUs reported from beginning to end."""
    if view.outcome != "completed":
        return None, f"it ended as {view.outcome}"
    if not reckon(view).units.finished:
        return None, "it finished no unit"
    chosen = {device.gpu for device in view.devices if device.chosen}
    seen = {w.power_limit_mw for w in view.gpu_windows if w.gpu in chosen} - {None}
    if len(seen) != 1:
        return None, "its power limit changed" if seen else NO_LIMIT
    return Fraction(next(iter(seen)) or 0, 1000), ""


def _setting(limit: Fraction, views: Sequence[RunView], with_host: bool) -> Setting:
    blocks = [block for view in views for block in _blocks(view, with_host)]
    laps = [us for view in views for us in reckon(view).per_unit_us]
    read = any(block.joules is not None for block in blocks)
    return Setting(
        limit_w=limit,
        runs=tuple(views),
        blocks=tuple(blocks),
        times=tuple(us / US for us in laps) or tuple(block.seconds for block in blocks),
        grade=weakest(view.grade for view in views),
        method=_method(views[0], with_host) if read else None,
    )


def _method(view: RunView, with_host: bool) -> str:
    found = {use.energy.method for use in device_uses(view, 0, view.wall_us) if use.energy}
    words = " and ".join(sorted(found))
    return f"of the GPUs: {words}" + (
        "; of the processors', by their counters" if with_host else ""
    )


def _blocks(view: RunView, with_host: bool) -> list[Block]:
    """The steady units of a run in blocks; the whole run where no unit of it could be timed."""
    reckoning = reckon(view)
    return [_block(view, laps, with_host) for laps in _grouped(reckoning, view.wall_us)]


def _grouped(reckoning: Reckoning, wall_us: int) -> Iterable[list[Lap]]:
    """Neighbouring laps until they last long enough; what is left over joins the last block."""
    laps = list(reckoning.phases.steady)
    if not laps:
        return [[Lap(count=reckoning.units.finished, from_us=0, to_us=wall_us)]] if wall_us else []
    groups: list[list[Lap]] = [[]]
    for lap in laps:
        if _length(groups[-1]) >= BLOCK_US:
            groups.append([])
        groups[-1].append(lap)
    if len(groups) > 1 and _length(groups[-1]) < BLOCK_US:
        groups[-2:] = [groups[-2] + groups[-1]]
    return groups


def _length(laps: Sequence[Lap]) -> int:
    return sum(lap.to_us - lap.from_us for lap in laps)


def _block(view: RunView, laps: Sequence[Lap], with_host: bool) -> Block:
    units, length = sum(lap.count for lap in laps), _length(laps)
    joules, covered = Fraction(0), Fraction(0)
    for lap in laps:
        drawn, seen = _drawn(view, lap.from_us, lap.to_us, with_host)
        joules += drawn
        covered += seen
    share = covered / length if length else Fraction(0)
    return Block(
        units=units,
        seconds=Fraction(length, US * units),
        joules=joules / share / units if share >= LEAST_COVERED else None,
        covered=share,
    )


def _drawn(view: RunView, start: int, end: int, with_host: bool) -> tuple[Fraction, Fraction]:
    """Joules that were read in a period, and how much of it (us) all of its meters covered."""
    parts: list[Energy | None] = [use.energy for use in device_uses(view, start, end)]
    if with_host:
        parts.append(metered_energy(view, "rapl", start, end))
    read = [part for part in parts if part is not None]
    if not read or len(read) < len(parts):
        return Fraction(0), Fraction(0)
    covered = min(part.covered_us for part in read)
    # Each at its own mean power, over the time that the worst of them covers.
    return sum((p.uj / p.covered_us for p in read), Fraction(0)) * covered / US, covered


def _cheapest(settings: Sequence[Setting], side: Side) -> Cheapest | None:
    """A tie goes to the higher limit: it is the faster one, and further from the card's edge."""
    told = [(setting, spread) for setting in settings if (spread := side(setting)) is not None]
    if not told:
        return None
    best, spread = min(told, key=lambda pair: (pair[1].median, -pair[0].limit_w))
    others = [pair for pair in told if pair[0] is not best]
    alike, why = _alike(spread, others)
    against = others[-1] if others else None
    return Cheapest(
        setting=best,
        spread=spread,
        alike=alike,
        why_alike=why,
        against=against[0] if against else None,
        saving=ratio_interval(against[1].values, spread.values) if against else None,
    )


def _alike(
    best: Spread, others: Sequence[tuple[Setting, Spread]]
) -> tuple[tuple[Fraction, ...], str | None]:
    """The limits whose cost is not greater with 95 % confidence, and what stands in the way."""
    alike: list[Fraction] = []
    few = False
    for setting, spread in others:
        interval = ratio_interval(best.values, spread.values)
        few = few or interval is None
        if interval is None or interval.low <= 1:
            alike.append(setting.limit_w)
    if not alike:
        return (), None
    return tuple(alike), TOO_FEW if few else "the 95 % interval of the cost ratio includes 1"


def _told(value: Fraction | None) -> Fraction:
    assert value is not None
    return value
