"""A rate plan as values: what a provider charges for, by which rule, since when, and who says so.

A plan has versions that follow one another in time, a version has rules, a rule prices one part of
what is rented. Everything a bill depends on is a field here and never a branch in the engine. A
value says nothing about whether it is right: that is ``Source.confidence``, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.time import utc_text
from ouvrage.pricing.rates.quantity import GB_DECIMAL, Rate

CONFIDENCES = ("verified", "secondary", "conflict", "unverified")
"""How well a field is known, best first: read at the source itself, read elsewhere, contradicted by
another official text, not confirmed by anybody."""

LIFECYCLE = (
    "requested",
    "created",
    "active",
    "healthy",
    "stopped",
    "deallocated",
    "offline",
    "started",
    "terminated",
    "cancelled",
)
"""Events that change the state of a resource; the state after one is called as the event."""

PARTS = (
    "compute",
    "storage",
    "traffic",
    "address",
    "licence",
    "reservation",
    "commitment",
    "other",
)
GIVEN = "rate"
"""The name under which ``--rate`` gives a rate when it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who states some fields of a plan: address, the text's own date, the day it was read."""

    id: str
    at: str
    dated: str
    read: str
    confidence: str
    says: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """``rate`` up to a quantity (None: without end). No rate means free of charge."""

    up_to: Fraction | None
    rate: Rate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Events that start and that stop the meter. No starting event: it runs while there is something
    to meter. ``states`` holds the multiplier of the price in a state; 0 means not billed there."""

    starts: frozenset[str] = frozenset()
    stops: frozenset[str] = frozenset()
    states: Mapping[str, Fraction] = field(default_factory=dict)

    def weight(self, state: str | None) -> Fraction:
        """The multiplier of the price in a state; 1 where the plan says nothing else."""
        return Fraction(1) if state is None else self.states.get(state, Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How metered time becomes billed time.

    ``increment_us`` 0 bills as metered; ``calendar`` (``day``, ``month``) bills whole days or months
    of the calendar instead. ``rounding`` is ``up``, ``down`` or ``nearest``. ``align`` says whether
    increments count from the start (``duration``) or lie on the clock of ``zone``. ``count_per`` and
    ``minimum_per`` (``start`` or ``resource``) say what is rounded, and what the minimum is for.
    """

    increment_us: int = 0
    calendar: str | None = None
    rounding: str = "up"
    minimum_us: int = 0
    minimum_per: str = "start"
    count_per: str = "start"
    align: str = "duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The clock of a rule: its zone, when its day starts (µs after midnight), how long a month is
    (None: not stated; ``0``: as long as the calendar's own), and where rows of a bill are cut."""

    zone: str = "UTC"
    day_starts_us: int = 0
    month_us: int | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What is added up before tiers and the free allowance apply.

    ``scope``: ``resource``, ``account``, or the name of a setting such as ``region``. ``period``:
    ``month``, ``day`` or ``always``. ``tiering``: ``marginal``, or ``whole`` when the tier reached
    prices everything. ``tier_by``: the ``total`` of the period, or the ``level`` held at a moment.
    """

    scope: str = "account"
    period: str = "month"
    free: Fraction = Fraction(0)
    tiering: str = "marginal"
    tier_by: str = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """A purchase for a term. Its clock runs whatever happens to the machine.

    ``discount`` is the share off the rate; ``upfront`` is paid at the purchase. An early cancel gives
    back: unused − discount received − ``fee`` of ``fee_on`` (``discount``, ``unused`` or
    ``remainder``, what is left after the discount), never below ``floor``.
    """

    discount: Fraction = Fraction(0)
    upfront: bool = True
    refundable: bool = False
    fee: Fraction = Fraction(0)
    fee_on: str = "discount"
    floor: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Another form of a rule, for resources with these settings, such as ``os = suse``.

    ``fields`` are those that it replaces.
    """

    when: Mapping[str, str]
    rule: Rule
    fields: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """``os is suse``."""
        return " and ".join(f"{name} is {value}" for name, value in self.when.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one part is priced. ``kind``: ``metered``, ``reservation`` or ``commitment``.

    ``rate`` is the price, or ``rate_name`` names the one given on the command line. ``of`` are the
    quantities it counts (none: the resource itself). ``includes`` are quantities that it covers at no
    charge. ``covered_by`` names a reservation that pays for it. ``evidence`` maps fields to sources.
    """

    name: str
    part: str
    kind: str = "metered"
    rate: Rate | None = None
    rate_name: str | None = None
    tiers: tuple[Tier, ...] = ()
    of: tuple[str, ...] = ()
    meter: Meter = Meter()
    steps: Steps = Steps()
    calendar: Calendar = Calendar()
    grouping: Grouping = Grouping()
    commitment: Commitment | None = None
    includes: tuple[str, ...] = ()
    covered_by: str | None = None
    note: str | None = None
    overrides: tuple[Override, ...] = ()
    fields: tuple[str, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def timed(self) -> bool | None:
        """Whether its prices must be per time (True), must not (False), or may be either (None)."""
        if self.part == "traffic":
            return False
        if self.kind == "reservation":
            return True
        return None if self.kind == "commitment" or (self.of and self.part == "other") else True

    @property
    def form(self) -> Rate | None:
        """A rate that shows what the rule's prices are for; they all agree in that."""
        return self.rate or next((tier.rate for tier in self.tiers if tier.rate), None)

    def source_of(self, name: str) -> str | None:
        """The id of the source of a field."""
        return self.evidence.get(name, self.evidence.get("all"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """How amounts are rounded: ``mode``, to which ``step``, each ``charge`` or the ``total``."""

    mode: str = "half-even"
    step: Fraction = Fraction(0)
    level: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tax:
    """``excluded``, ``included``, ``none`` or ``unknown``, and the rate where one is stated."""

    status: str = "unknown"
    rate: Fraction | None = None
    name: str = "tax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepaid:
    """A balance paid in advance. ``negative``: ``stops`` the service or ``accrues``.

    ``stop_below_us`` is how much running time must be left in the balance.
    """

    negative: str
    stop_below_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The rules from ``valid_from`` (None: since when is not known) to ``valid_until`` (None: open)."""

    valid_from: int | None
    valid_until: int | None
    currency: str | None
    rules: tuple[Rule, ...]
    gb: int = GB_DECIMAL
    money: Money = Money()
    tax: Tax = Tax()
    prepaid: Prepaid | None = None
    fields: tuple[str, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def period(self) -> str:
        """``2017-10-02 … 2021-06-11``, with words where an end is open."""
        start = "start not stated" if self.valid_from is None else day_text(self.valid_from)
        return f"{start} … {'open' if self.valid_until is None else day_text(self.valid_until)}"

    def rule(self, name: str) -> Rule:
        """The rule of this name."""
        return next(rule for rule in self.rules if rule.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All versions of one plan, in order, and the sources they stand on.

    ``sha256`` is the hash of the text that it was read from.
    """

    name: str
    title: str
    provider: str | None
    file: str
    versions: tuple[Version, ...]
    sources: Mapping[str, Source]
    conflicts_with: tuple[str, ...] = ()
    note: str | None = None
    sha256: str = ""

    def confidence(self, rule: Rule) -> str:
        """The weakest confidence among the fields of a rule; ``unverified`` without any source."""
        ids = {rule.source_of(name) for name in rule.fields} or {None}
        return max((self.standing(each) for each in ids), key=CONFIDENCES.index)

    def standing(self, source: str | None) -> str:
        """The confidence of a source; ``unverified`` for none."""
        return "unverified" if source is None else self.sources[source].confidence


def day_text(at_us: int) -> str:
    """A date where a moment is a midnight UTC, else the whole moment."""
    text = utc_text(at_us)
    return text[:10] if text[11:] == "00:00:00.000000Z" else text
