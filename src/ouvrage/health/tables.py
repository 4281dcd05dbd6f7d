"""The tables that verdicts are made from: Xid codes, actions, recovery actions, repeats, thresholds.

Decides their form, and what a code that is in none of them means; the values are data (``health_data/``), read by
``adapters/health_tables``. What follows from an event is ``xid``'s and ``repeats``'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction

LIVE, SHADOW = MODES = ("live", "shadow")
HARD, SOFT, RATE = SORTS = ("hard", "soft", "rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a code or a rule asks for.

    ``fence`` is ``none``, ``drain`` (no new work, what runs may end) or ``now`` (what runs is in doubt as well).
    ``rung`` is where the ladder begins and ``at_drain`` what is due once the work has ended: ``model/health.ACTIONS``.
    """

    name: str
    verdict: str
    fence: str
    rung: str
    at_drain: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One code: what it means, whose fault it is by itself, and what it asks for.

    ``scope`` is what is at stake: job, gpu, nvlink_domain, node or vm. ``elsewhere`` is what public tables say of
    it, by the name of a source; ``dispute`` why this one was chosen where they disagree, empty where they do not.
    """

    code: int
    meaning: str
    sort: str
    action: str
    scope: str
    note: str
    elsewhere: Mapping[str, str]
    dispute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A value of the driver's own recovery action; of several that were seen the greatest ``weight`` stands."""

    value: int
    name: str
    action: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A code that comes again is more than it was: ``count`` events within ``window_us`` ask for ``action``.

    ``same`` says what must agree: ``gpu`` or ``place`` inside it. At least ``jobs`` different jobs of ``tenants``
    different owners must have met it, so that a user who tries a bad program again is not held against a GPU.
    """

    name: str
    codes: frozenset[int]
    count: int
    window_us: int
    same: str
    jobs: int
    tenants: int
    action: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkRule:
    """How a line of NVLink 5 (144 to 150) is judged: by its own word, and two exceptions."""

    fatal: str
    nonfatal: str
    watched_unit: str
    watched_code: int
    inspect_code: int
    inspect_subcodes: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneProgram:
    """Codes that are the program's fault first where one program meets them on ``gpus`` within ``within_us``."""

    codes: frozenset[int]
    gpus: int
    within_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A public table that ours was held against."""

    name: str
    what: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class XidTable:
    """Everything about Xid codes, in one version."""

    version: int
    as_of: str
    codes: Mapping[int, Xid]
    actions: Mapping[str, Action]
    recoveries: Mapping[int, Recovery]
    repeats: tuple[Repeat, ...]
    nvlink: NvlinkRule
    one_program: OneProgram
    sources: tuple[Source, ...]

    def action_of(self, code: int) -> Action:
        """What a code asks for by itself; a code that is not listed gets the action ``unknown``."""
        found = self.codes.get(code)
        return self.actions["unknown" if found is None else found.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One bound, with its unit, what it bounds and where it comes from."""

    name: str
    value: Fraction
    unit: str
    what: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    """How looks under rules whose names fit ``pattern`` become a verdict that may fence.

    ``sort`` is hard, soft or rate. A warning that lasts ``after_us`` without a break becomes ``becomes``; None: never.
    """

    pattern: str
    sort: str
    mode: str
    after_us: int
    becomes: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Every bound by its name, and how rules are debounced, in one version."""

    version: int
    as_of: str
    all: Mapping[str, Threshold]
    rules: tuple[Debounce, ...]

    def __getitem__(self, name: str) -> Fraction:
        return self.all[name].value

    def debounce(self, rule: str) -> Debounce:
        """How a rule is debounced: the first pattern that fits its name; the last one fits any."""
        return next(each for each in self.rules if fnmatchcase(rule, each.pattern))

    def us(self, name: str) -> int:
        """A bound in seconds or days, in microseconds."""
        bound = self.all[name]
        return int(bound.value * 1_000_000 * (86_400 if bound.unit == "days" else 1))
