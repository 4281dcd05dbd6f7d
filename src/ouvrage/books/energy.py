"""How much energy a site's machines took in a period: by meter where there is one, else by their states.

Decides that the meter at the wall says how much, and that counters of GPUs only divide it: two public
reports found the wall at 1.8 to 2.2 times the GPU's sensor. A machine's own meter counts before the
site's, and the site's says what is left for the machines without one. What no meter covers is estimated
from the watts of each device by its state, and stays apart. Joules of a meter are whole and every split
of them adds up: what a device takes of each reading is added up in a fine unit, and made whole once, at the
end. Time in one state under the same terms is added up first, so that a month of a thousand GPUs is a few
thousand sums.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import rounded_parts, split_whole
from ouvrage.base.time import SECOND
from ouvrage.books.calendar import Stretch
from ouvrage.books.cells import Cell, Grid
from ouvrage.books.record import Known, MeterRead, OwnerRecord
from ouvrage.books.spans import merged
from ouvrage.books.tariffs import KWH, PriceBook
from ouvrage.books.used import ATTO, BY_STATE, FINE, EnergyAccount, Lost, Used
from ouvrage.books.wall import ORDER, Counter, Like, Part, Reads, Running, cut_to, metered

TERMS = ("idle_power_w", "load_power_w")
UNSEEN = ("held", "unknown")
"""States in which nobody saw the load: power is taken half way between idle and full."""
_AT_WORK = {"working": Fraction(1), **dict.fromkeys(UNSEEN, Fraction(1, 2))}
_NO_WORK = Fraction(0)
"""The share of the way from idle to full power in a state; of the others it is nothing."""
_BY_GPU = "read by a meter ({}), divided by the GPUs' counters"
_BY_POWER = "read by a meter ({}), divided by watts x time"


def energy_of(
    record: OwnerRecord, grid: Grid, book: PriceBook, *, load: bool = False
) -> EnergyAccount:
    """The energy of every device of a site, cut where another source of prices begins."""
    return _Taking(record, grid, book, load).taken()


@dataclass(slots=True, kw_only=True)
class _Piece:
    """A piece of a device's stretch under the same terms and source of prices."""

    stretch: Stretch
    cell: Cell
    from_us: int
    to_us: int
    idle: Known[Fraction] | None
    load: Known[Fraction] | None
    share: Fraction
    cut: int
    place: int
    cooled: bool
    held: dict[tuple[Grade | None, str], Used] = field(init=False, default_factory=dict)
    """Where it was counted before: a piece is given to once for every change in its machine."""
    milliwatts: int = field(init=False, default=-1)
    given: Used | None = field(init=False, default=None)
    since: tuple[int, ...] = field(init=False, default=())
    """What it was last given to, of readings alike, and how far these had come when it began."""

    @property
    def watts(self) -> Fraction | None:
        if self.idle is None or self.load is None:
            return None
        return self.idle.value + (self.load.value - self.idle.value) * self.share

    def within(self, from_us: int, to_us: int) -> int:
        """How much of it lies between two moments."""
        return min(self.to_us, to_us) - max(self.from_us, from_us)


class _Taking:
    """One walk over the stretches of a site, with what meters read beside them."""

    def __init__(self, record: OwnerRecord, grid: Grid, book: PriceBook, load: bool) -> None:
        self.grid, self.book, self.keeps_load = grid, book, load
        self.begins, self.ends = grid.period.from_us, grid.period.to_us
        self.edges = [at for at in book.edges() if self.begins < at < self.ends]
        self.notes: dict[str, None] = {}
        self.about: dict[str, list[MeterRead]] = {}
        begins, ends = self.begins, self.ends
        for read in record.energy:
            if read.valid_to is not None and read.valid_from < ends and begins < read.valid_to:
                self.about.setdefault(read.about, []).append(read)
        self.site = f"site:{grid.site}"
        self.cooling = self._cooling()
        self.cooled = {
            node: merged(
                (part.from_us, part.to_us)
                for about, part in self.cooling
                if about in (self.site, f"node:{node}")
            )
            for node in grid.nodes
        }
        self.counters = {
            name: Counter(gpu)
            for name in grid.models
            if (gpu := _scoped(self.about.get(f"device:{name}", ()), ("gpu",)))
        }
        self.used: dict[tuple[object, ...], Used] = {}
        self.prices: dict[tuple[int, int], int] = {}
        self.milliwatts: dict[tuple[int, int, int], int] = {}
        self.given: dict[int, Used] = {}
        self.given_cost = self.given_j = 0
        self.lost: list[Lost] = []
        self.read_j: dict[str, int] = {}
        self.load: list[tuple[int, int, Fraction]] = []
        self.us = self.metered_us = 0
        self._tell_unread()

    def _tell_unread(self) -> None:
        for about, reads in self.about.items():
            if about.startswith("device:") and _scoped(reads, ORDER):
                self.notes[
                    f"the meter before {about} is not read: a meter counts before a node or a site"
                ] = None

    def _cooling(self) -> list[tuple[str, Part]]:
        found: list[tuple[str, Part]] = []
        for about in (self.site, *(f"node:{node}" for node in self.grid.nodes)):
            reads = _scoped(self.about.get(about, ()), ("cooling",))
            found += [
                (about, part)
                for part in metered(reads, ("cooling",), self.begins, self.ends, self.edges)
            ]
        return found

    def taken(self) -> EnergyAccount:
        own = {
            node: metered(
                _scoped(self.about.get(f"node:{node}", ()), ORDER), ORDER, self.begins, self.ends,
                self.edges,
            )
            for node in self.grid.nodes
        }  # fmt: skip
        whole = self._whole(own)
        shared: dict[int, list[_Piece]] = {index: [] for index in range(len(whole))}
        for node, parts in own.items():
            pieces = self._pieces(node, whole)
            if parts:
                pieces = self._read(node, parts, list(pieces))
            for piece in pieces:
                inside = _inside(whole, piece.from_us)
                if inside is None:
                    self._estimate(piece)
                else:
                    shared[inside].append(replace(piece, cooled=True))  # cooling is in it
        for index, pieces in shared.items():
            self._give(self.site, [whole[index]], pieces)
        self._settle()
        self.us += sum(stretch.us for stretch in self.grid.all())
        if self.keeps_load:
            self.load += [
                (part.from_us, part.to_us, Fraction(part.joules)) for _, part in self.cooling
            ]
        return EnergyAccount(
            used=list(self.used.values()), lost=self.lost, cooling=self.cooling, read_j=self.read_j,
            metered_us=self.metered_us, us=self.us, notes=tuple(self.notes), load=self.load,
        )  # fmt: skip

    def _whole(self, own: Mapping[str, Sequence[Part]]) -> list[Part]:
        """What the site's meter read beyond the meters of its machines and of its cooling."""
        reads = _scoped(self.about.get(self.site, ()), ORDER)
        if not reads:
            return []
        chilled: dict[str, list[Part]] = {}
        for about, part in self.cooling:
            chilled.setdefault(about, []).append(part)
        beside = [*own.values(), *chilled.values()]
        cuts = {at for parts in beside for part in parts for at in (part.from_us, part.to_us)}
        found: list[Part] = []
        for part in metered(reads, ORDER, self.begins, self.ends, {*cuts, *self.edges}):
            behind = [
                parts[index].joules_in(part.from_us, part.to_us)
                for parts in beside
                if (index := _inside(parts, part.from_us)) is not None
            ]
            left = part.joules - sum(behind)
            if left < 0:
                words = "the site's meter read less than the meters behind it: nothing is left then"
                self.notes[words] = None
            found.append(part._replace(joules=max(0, left), scope=f"{part.scope} of the site"))
        return found

    def _pieces(self, node: str, whole: Sequence[Part]) -> Iterator[_Piece]:
        """The stretches of a node's devices, cut where terms, prices or the site's meter change."""
        terms, edges = self.grid.terms, self.edges
        cooled = self.cooled[node]
        cuts = {at for part in whole for at in (part.from_us, part.to_us)}
        cuts |= {at for span in cooled for at in span}
        places = sorted(terms.edges(f"node:{node}", ("pue", "cooling_metered")))
        for device, lane in self.grid.lanes[node].items():
            about = f"device:{device}"
            inside = sorted({*cuts, *edges, *places, *terms.edges(about, TERMS)})
            same: list[Known[Fraction] | None] | None = None
            for stretch, cell in zip(lane.stretches, lane.cells, strict=True):
                share = _AT_WORK.get(stretch.state, _NO_WORK)
                first = bisect_right(inside, stretch.from_us)
                last = bisect_left(inside, stretch.to_us)
                for begins, ends in pairwise((stretch.from_us, *inside[first:last], stretch.to_us)):
                    if inside or same is None:
                        same = [terms.at(about, name, begins) for name in TERMS]
                    idle, load = same
                    yield _Piece(
                        stretch=stretch, cell=cell, from_us=begins, to_us=ends, idle=idle, load=load,
                        share=share, cut=bisect_right(edges, begins), place=bisect_right(places, begins),
                        cooled=bool(cooled) and any(a <= begins < b for a, b in cooled),
                    )  # fmt: skip

    def _used(self, piece: _Piece, read: Grade | None, method: str) -> Used:
        held = piece.held.get((read, method))
        if held is not None:
            return held
        key = (
            piece.cell, id(piece.share), piece.cut, piece.cooled, piece.place, id(piece.idle), id(piece.load),
            read, method,
        )  # fmt: skip
        used = self.used.get(key)
        if used is None:
            used = self.used[key] = Used(
                cell=piece.cell, from_us=piece.from_us, idle=piece.idle, load=piece.load,
                share=piece.share, cooled=piece.cooled, read=read, method=method,
            )  # fmt: skip
        piece.held[read, method] = used
        return used

    def _estimate(self, piece: _Piece, share: Fraction | None = None) -> None:
        """Count a piece, or the ``share`` of it that no meter covers, by its state."""
        used = self._used(piece, None, BY_STATE)
        us, priced = piece.to_us - piece.from_us, self.book.integral(piece.from_us, piece.to_us)
        if share is not None:
            us, priced = int(us * share), int(priced * share)
        used.us += us
        used.priced += priced
        used.facts.add(piece.stretch.facts)
        watts = piece.watts if self.keeps_load else None
        if watts is not None:
            joules = watts * us / SECOND
            self._keep(piece.from_us, piece.to_us, joules, piece.cell.node, cooled=piece.cooled)

    def _keep(self, from_us: int, to_us: int, joules: Fraction, node: str, *, cooled: bool) -> None:
        """Remember when energy was used, with what its cooling takes by PUE."""
        factor = Fraction(1) if cooled else overhead(self.grid, node, from_us)
        self.load.append((from_us, to_us, joules * factor))

    def _read(self, node: str, parts: Sequence[Part], pieces: list[_Piece]) -> Iterator[_Piece]:
        """Give what a node's meter read to its devices; the pieces of time that it does not cover."""
        about = f"node:{node}"
        for piece in pieces:
            piece.milliwatts = self._milliwatts(piece)
        counted = any(piece.stretch.device in self.counters for piece in pieces)
        short = not (counted or self.keeps_load)
        flow = _Flow(self, Running(parts, self._cost)) if short else None
        for begins, ends, standing in _frames(pieces, self.begins, self.ends, flow):
            if flow is not None and standing and flow.goes_on(begins, ends, standing):
                continue
            inside = list(standing.values())
            runs: dict[tuple[object, ...], list[Part]] = {}
            at = begins
            for part in _between(parts, begins, ends):
                if at < part.from_us:
                    yield from (replace(p, from_us=at, to_us=part.from_us) for p in inside)
                at = part.to_us
                alone = part.from_us if counted or part.covered < 1 else None
                runs.setdefault((part.grade, part.scope, alone), []).append(part)
            if at < ends:
                yield from (replace(p, from_us=at, to_us=ends) for p in inside)
            for run in runs.values():
                self._give(about, run, inside)
        if flow is not None and flow.took:
            self.read_j[about] = self.read_j.get(about, 0) + flow.joules
        self._settle()

    def _give(self, about: str, run: Sequence[Part], pieces: Sequence[_Piece]) -> None:
        """Give what a meter read in parts alike to the devices behind it; nothing of it is lost."""
        joules = sum(part.joules for part in run)
        self.read_j[about] = self.read_j.get(about, 0) + joules
        for part in run:
            self._keep_part(about, part)
        if not pieces:
            self.lost += [Lost(about=about, part=part, joules=part.joules) for part in run]
            return
        covered = run[0].covered
        us = sum(part.to_us - part.from_us for part in run)
        weights, by_gpu = self._weights(run, pieces)
        cost = sum(self._cost(part) for part in run)
        method = (_BY_GPU if by_gpu else _BY_POWER).format(run[0].scope)
        keys = tuple(key for part in run for key in part.keys)
        grade, begins, ends = run[0].grade, run[0].from_us, run[-1].to_us
        of_joules, of_cost = fine(joules, sum(weights)), fine(cost, sum(weights))
        self.given_j += joules
        self.given_cost += cost
        for piece, weight in zip(pieces, weights, strict=True):
            within = min(us, piece.within(begins, ends))
            within = within if covered == 1 else int(within * covered)
            used = self.give(piece, grade, method)
            used.us += within
            self.metered_us += within
            used.fine_j += of_joules * weight
            used.fine_cost += of_cost * weight
            used.facts.add(keys)
            used.facts.add(by_gpu.get(piece.stretch.device, ()))
            if covered < 1:
                left = replace(piece, from_us=max(piece.from_us, run[0].from_us),
                               to_us=min(piece.to_us, run[0].to_us))  # fmt: skip
                self._estimate(left, 1 - covered)

    def give(self, piece: _Piece, grade: Grade, method: str) -> Used:
        """What a piece is counted under where a meter read it."""
        used = self._used(piece, grade, method)
        self.given[id(used)] = used
        return used

    def _settle(self) -> None:
        """Make whole what one meter's readings gave to each; together they are what it read."""
        all_given = list(self.given.values())
        joules = rounded_parts(self.given_j, [used.fine_j for used in all_given], FINE)
        costs = rounded_parts(self.given_cost, [used.fine_cost for used in all_given], FINE)
        for used, part, cost in zip(all_given, joules, costs, strict=True):
            used.joules, used.cost = part, cost
        self.given, self.given_j, self.given_cost = {}, 0, 0

    def _cost(self, part: Part) -> int:
        """What was read in a part at the prices of its time, in 10^-18 of the currency."""
        span = part.from_us, part.to_us
        price = self.prices.get(span)
        if price is None:  # the same hour is asked for by every machine
            price = self.prices[span] = self.book.integral(*span) * ATTO
        return part.joules * price // (self.book.denominator * KWH * (span[1] - span[0]))

    def _keep_part(self, about: str, part: Part) -> None:
        if self.keeps_load:
            node = about.removeprefix("node:")
            inside = about == self.site or any(
                a <= part.from_us < b for a, b in self.cooled.get(node, ())
            )
            joules = Fraction(part.joules)
            self._keep(part.from_us, part.to_us, joules, node, cooled=inside)

    def _milliwatts(self, piece: _Piece) -> int:
        place = id(piece.idle), id(piece.load), id(piece.share)
        if place not in self.milliwatts:
            self.milliwatts[place] = max(0, round((piece.watts or 0) * 1000))
        return self.milliwatts[place]

    def _weights(
        self, run: Sequence[Part], pieces: Sequence[_Piece]
    ) -> tuple[list[int], dict[str, tuple[str, ...]]]:
        """In what proportion pieces take what was read, and the GPUs' facts where these said it."""
        part = run[0]
        times = [piece.within(part.from_us, run[-1].to_us) for piece in pieces]
        times = times if len(set(times)) > 1 else [1] * len(times)
        by_power = [self._milliwatts(piece) * us for piece, us in zip(pieces, times, strict=True)]
        by_power = by_power if any(by_power) else times
        devices = dict.fromkeys(piece.stretch.device for piece in pieces)
        if len(run) > 1 or len(devices) < 2 or not devices.keys() <= self.counters.keys():
            return by_power, {}
        read = {name: self.counters[name].between(part.from_us, part.to_us) for name in devices}
        joules = {name: found[0] for name, found in read.items() if found is not None}
        if len(joules) < len(devices) or not any(joules.values()):
            return by_power, {}
        keys = {name: found[1] for name, found in read.items() if found is not None}
        weights = list(by_power)
        for name, whole in joules.items():
            mine = [index for index, piece in enumerate(pieces) if piece.stretch.device == name]
            inside = [by_power[i] for i in mine]
            inside = inside if any(inside) else [1] * len(mine)
            for index, share in zip(mine, split_whole(whole * 10**6, inside), strict=True):
                weights[index] = share
        return weights, keys


class _Flow:
    """What was read before a machine as time goes on, for each unit of the power that stood there then.

    A piece of time takes its power times what was added while it stood, so that a reading is not given to
    each device: devices differ in their power alone where parts alike cover all of a frame.
    """

    def __init__(self, taking: _Taking, running: Running) -> None:
        self._taking, self._running = taking, running
        self._like: Like | None = None
        self._method, self._power, self._count = "", 0, 0
        self._at: tuple[int, ...] = (0, 0, 0, 0, 0)
        self._fresh: list[_Piece] = []
        self.joules = 0

    @property
    def took(self) -> bool:
        """Whether any frame was metered."""
        return self._like is not None

    def begins(self, piece: _Piece) -> None:
        """A piece begins to stand."""
        self._power += piece.milliwatts
        self._count += 1
        self._fresh.append(piece)

    def ends(self, piece: _Piece) -> None:
        """A piece ends: it takes its share."""
        self._power -= piece.milliwatts
        self._count -= 1
        self._take(piece)

    def goes_on(self, begins: int, ends: int, standing: Mapping[int, _Piece]) -> bool:
        """Add what was read in a frame; False where it is not metered throughout, alike and to the full."""
        over = self._running.over(begins, ends)
        if over is None:
            return False
        if over.like is not self._like:
            for piece in standing.values():
                self._take(piece)
            self._like, self._method = over.like, _BY_POWER.format(over.like.scope)
            self._fresh = list(standing.values())
        if self._fresh:
            self._begin(over.like, standing)
        us, j, cost, bare_j, bare_cost = self._at
        if self._power:
            j, cost = j + fine(over.joules, self._power), cost + fine(over.cost, self._power)
        else:  # nobody knows the power of any: all alike
            bare_j += fine(over.joules, self._count)
            bare_cost += fine(over.cost, self._count)
        self._at = (us + ends - begins, j, cost, bare_j, bare_cost)
        self.joules += over.joules
        taking = self._taking
        taking.given_j += over.joules
        taking.given_cost += over.cost
        taking.metered_us += (ends - begins) * self._count
        return True

    def _begin(self, like: Like, standing: Mapping[int, _Piece]) -> None:
        """Those that began to stand since the last frame begin to take."""
        for piece in self._fresh:
            if id(piece) in standing:
                piece.given = used = self._taking.give(piece, like.grade, self._method)
                used.facts.add(self._running.keys(piece.from_us, piece.to_us, like))
                piece.since = self._at
        self._fresh = []

    def _take(self, piece: _Piece) -> None:
        used = piece.given
        if used is None:
            return
        us, j, cost, bare_j, bare_cost = piece.since
        now_us, now_j, now_cost, now_bare_j, now_bare_cost = self._at
        used.us += now_us - us
        used.fine_j += piece.milliwatts * (now_j - j) + now_bare_j - bare_j
        used.fine_cost += piece.milliwatts * (now_cost - cost) + now_bare_cost - bare_cost
        piece.given = None


def fine(amount: int, among: int) -> int:
    """What one of ``among`` takes of an amount, in ``2 ** -FINE``."""
    return (amount << FINE) // among


def _frames(
    pieces: Sequence[_Piece], from_us: int, to_us: int, flow: _Flow | None
) -> Iterator[tuple[int, int, dict[int, _Piece]]]:
    """Stretches of time in which the same pieces of all devices stand, those without any among them.

    What stands is one table that changes from one to the next. ``flow`` is told of each change.
    """
    coming: dict[int, list[_Piece]] = {from_us: [], to_us: []}
    going: dict[int, list[_Piece]] = {}
    for piece in pieces:
        coming.setdefault(piece.from_us, []).append(piece)
        going.setdefault(piece.to_us, []).append(piece)
    standing: dict[int, _Piece] = {}
    before = None
    for at in sorted({*coming, *going}):
        if before is not None:
            yield before, at, standing
        for piece in going.get(at, ()):
            del standing[id(piece)]
            if flow is not None:
                flow.ends(piece)
        for piece in coming.get(at, ()):
            standing[id(piece)] = piece
            if flow is not None:
                flow.begins(piece)
        before = at


def _between(parts: Sequence[Part], from_us: int, to_us: int) -> Iterator[Part]:
    """The parts of a stretch of time, cut at its ends."""
    first = bisect_right(parts, from_us, key=lambda part: part.to_us)
    for part in parts[first:]:
        if part.from_us >= to_us:
            return
        whole = from_us <= part.from_us and part.to_us <= to_us
        yield part if whole else cut_to(part, from_us, to_us)


def overhead(grid: Grid, node: str, at_us: int) -> Fraction:
    """By what the energy of a machine is multiplied for its cooling: its PUE, 1 where none counts."""
    about = f"node:{node}" if node in grid.nodes else f"site:{grid.site}"
    pue, off = (grid.terms.at(about, name, at_us) for name in ("pue", "cooling_metered"))
    return Fraction(1) if pue is None or (off is not None and off.value) else pue.value


def _scoped(reads: Reads, scopes: Sequence[str]) -> list[MeterRead]:
    return [read for read in reads if read.scope in scopes]


def _inside(parts: Sequence[Part], at_us: int) -> int | None:
    """The number of the part in which a moment lies."""
    index = bisect_right(parts, at_us, key=lambda part: part.from_us) - 1
    return index if index >= 0 and at_us < parts[index].to_us else None
