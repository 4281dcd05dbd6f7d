"""From readings to marks: what one kind of line has said so far about one unit.

Decides which reading marks something new and which only repeats what is known: a bar redrawn, a
unit that several ranks print, validation of a unit left behind. Numbered units become heads and
ends; totals, counts and rates become counts, gathered so that a bar redrawn ten times a second is
one mark a second. A total that runs backwards is noted and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ouvrage.base.time import SECOND
from ouvrage.metering.recognisers import rule
from ouvrage.metering.recognisers.rule import Reading

EVERY_US = SECOND
RATE_EVERY_S = 10
_LONGEST_RATE_S = 300
_DAY_S = 86_400
_MOST_SERIES = 64


@dataclass(frozen=True, slots=True)
class Mark:
    """One boundary of a unit: ``mark`` is ``head``, ``end`` or ``count``, as ``RunMarks`` says.

    ``t`` is the moment of the read that brought the line, or None when it is not known.
    """

    name: str
    via: str
    mark: str
    n: int
    t: int | None


@dataclass(slots=True)
class Numbers:
    """Units that bear a number: which is under way, and which ended last."""

    headed: int | None = None
    ended: int | None = None

    def head(self, line: Reading) -> bool:
        """Whether the line heads a unit that was not yet under way."""
        latest = self.ended if self.headed is None else self.headed
        again = line.alone and line.n == line.of == 1
        if line.n == latest and not again:
            return False
        within = self.headed is not None and not line.alone and not line.first
        if latest is not None and line.n < latest and within:
            return False  # a bar of another series redrawn beside this one
        self.headed = line.n
        return True

    def end(self, n: int) -> bool:
        """Whether the line ends a unit, and does not only say more about one that ended."""
        if self.headed is not None and n < self.headed:
            return False
        if n == self.ended and self.headed is None:
            return False
        self.ended, self.headed = n, None
        return True


@dataclass(slots=True)
class Totals:
    """One total at a time: the bar that began first, until it is full.

    A bar once seen inside another is never counted, also where it is drawn alone later, as an
    evaluation is after the last step. ``wiped``: a bar was taken off the screen and has not been
    drawn since. ``backwards`` counts lines that fell back without beginning anew.
    """

    series: bytes | None = None
    of: int | None = None
    positions: dict[bytes, int] = field(default_factory=dict[bytes, int])
    inner: set[bytes] = field(default_factory=set[bytes])
    wiped: bool = False
    backwards: int = 0

    def gain(self, line: Reading) -> int | None:
        """How many more are finished; None where a total begins at what the line shows."""
        held = self.positions.get(line.series)
        if line.series != self.series:
            if self._under_way:
                self.inner.add(line.series)
            if line.series in self.inner or len(self.positions) >= _MOST_SERIES:
                return 0
        self.wiped = False
        if held is not None and line.n >= held and not (line.first and held):
            self.positions[line.series] = line.n
            return line.n - held
        if held is not None and not line.first and line.n > 1:
            self.backwards += 1
            return 0
        self.series, self.of = line.series, line.of
        self.positions[line.series] = line.n
        return None if line.first else line.n

    @property
    def _under_way(self) -> bool:
        """Whether the total that is counted is not yet full, as far as is known."""
        if self.series is None or self.wiped:
            return False
        return self.of is None or self.positions[self.series] < self.of

    @property
    def full(self) -> bool:
        """Whether the total that is counted has reached its end."""
        return self.series is not None and self.positions[self.series] == self.of

    def restart(self) -> None:
        """The next line begins a new total."""
        self.series = None
        self.positions.clear()


@dataclass(slots=True)
class Rate:
    """Mean rates of one engine, as units: a rate times the time since the line before.

    The time is that between the clocks of two lines. It is ``RATE_EVERY_S`` for the first line and
    after a pause, in which nothing is printed; a pause begins with a line that says 0.
    """

    clock: int | None = None
    idle: bool = True
    tenths: int = 0

    def gain(self, line: Reading) -> int:
        """How many units the line stands for; what is less than one is kept for the next."""
        passed = RATE_EVERY_S
        if not self.idle and line.clock is not None and self.clock is not None:
            between = (line.clock - self.clock) % _DAY_S
            passed = between if 0 < between <= _LONGEST_RATE_S else RATE_EVERY_S
        self.clock, self.idle = line.clock, line.n == 0
        gained, self.tenths = divmod(self.tenths + line.n * passed, 10)
        return gained


@dataclass(slots=True)
class Tally:
    """What one kind of line (``via``) said of the unit ``name``.

    ``leader`` is the rank that is listened to where several print the same, ``ranks`` all that were
    seen. ``pending`` units are counted and not yet marked; ``lines`` is how many lines of this read
    counted some.
    """

    name: str
    via: str
    leader: bytes | None = None
    ranks: set[bytes] = field(default_factory=set[bytes])
    pending: int = 0
    lines: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    totals: Totals = field(default_factory=Totals)
    rates: dict[bytes, Rate] = field(default_factory=dict[bytes, Rate])
    _asked: int = 0
    _marked: int | None = None
    _gained: int | None = None
    _found: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])

    def take(self, line: Reading, rank: bytes | None) -> None:
        """Note what a line says, if its rank is the one that is listened to."""
        if rank is not None:
            self.ranks.add(rank)
            self.leader = self.leader or rank
            if rank != self.leader:
                return
        if line.mark == rule.HEAD:
            if self.numbers.head(line):
                self._found.append((rule.HEAD, line.n, True))
        elif line.mark == rule.END:
            self._end(line)
        elif line.mark == rule.CLOSE:
            if self.numbers.headed is not None:
                self._end(replace(line, n=self.numbers.headed))
        else:
            self._gather(line)

    def matched(self, n: int | None) -> None:
        """A line matched the user's own pattern, and perhaps bore a number."""
        if n is None:
            self._found.append((rule.COUNT, 1, True))
        elif n != self.numbers.ended:
            self.numbers.ended = n
            self._found.append((rule.END, n, True))

    def _end(self, line: Reading) -> None:
        if self.numbers.end(line.n):
            self._found.append((rule.END, line.n, line.exact))

    def _gather(self, line: Reading) -> None:
        gained: int | None = line.n
        if line.mark == rule.BEGIN:
            self.totals.restart()
            gained = None
        elif line.mark == rule.ASKED:
            gained = 0 if self._asked else None
            self._asked += 1
        elif line.mark == rule.COUNT:
            self._asked = max(0, self._asked - 1)
        elif line.mark == rule.RATE:
            gained = self._rate(line)
        else:
            gained = self.totals.gain(line)
        if gained is None:
            self._begin()
        elif gained:
            self.pending += gained
            self.lines += 1

    def _rate(self, line: Reading) -> int:
        if line.series not in self.rates and len(self.rates) >= _MOST_SERIES:
            return 0
        return self.rates.setdefault(line.series, Rate()).gain(line)

    def _begin(self) -> None:
        """From here on, units are timed; what came before is marked first."""
        if self.pending:
            self._found.append((rule.COUNT, self.pending, False))
            self.pending = 0
        self._found.append((rule.COUNT, 0, True))

    def settle(self, t: int | None, *, short: bool) -> list[Mark]:
        """The marks of the read that came at ``t``; ``short``: too short to be a full buffer."""
        found, self._found = self._found, []
        known = t is not None and _moments_known([mark for mark, _, _ in found])
        marks = [
            Mark(self.name, self.via, mark, n, t if known and exact else None)
            for mark, n, exact in found
        ]
        if self.lines:
            self._gained = t if self.lines == 1 or short else None
            if self._gained is not None and self._due(self._gained):
                marks += self.rest()
        self.lines = 0
        return marks

    def _due(self, t: int) -> bool:
        return self.totals.full or self._marked is None or t - self._marked >= EVERY_US

    def rest(self) -> list[Mark]:
        """What is counted and not yet marked; its moment is that of the last line that counted."""
        pending, self.pending, self._marked = self.pending, 0, self._gained
        return [Mark(self.name, self.via, rule.COUNT, pending, self._gained)] if pending else []


def _moments_known(marks: list[str]) -> bool:
    """False when one read brought two units at once, so that neither has a moment of its own.

    The end of a unit and the head of the next are one moment and may come together.
    """
    ends = [i for i, mark in enumerate(marks) if mark != rule.HEAD]
    heads = [i for i, mark in enumerate(marks) if mark == rule.HEAD]
    if len(ends) > 1 or len(heads) > 1:
        return False
    return not (ends and heads and heads[0] < ends[0])
