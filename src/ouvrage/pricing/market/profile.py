"""A work profile: what a piece of work asks of a machine, and how long a unit took where it was seen.

Decides nothing about any offer. Times are seconds for one unit, divided among the eight places where a
run's time goes; what was not stated is None and stays unknown. A profile comes from a run's own
figures, or is written by hand and is then no better than what its author says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.grades import Grade

GB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A machine as far as it is known. ``gpus`` 0 says that there is none; None that nobody said."""

    name: str | None = None
    provider: str | None = None
    gpu: str | None = None
    gpus: Fraction | None = None
    vcpus: Fraction | None = None
    memory_mib: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds for one unit on a configuration: its time, the range around it, and who says so."""

    on: Configuration
    low: Fraction
    likely: Fraction
    high: Fraction
    grade: Grade
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the work cannot do without. None: not stated, so that nothing is excluded for it."""

    gpu_memory_mib: Fraction | None = None
    memory_mib: Fraction | None = None
    vcpus: Fraction | None = None
    disk_gb: Fraction | None = None
    gpu: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What is brought in, carried out, kept and reserved besides the machine itself, for all units.

    ``out_before_gb`` was carried out before in the same month, so that its tiers are reached already.
    ``egress_to`` is one of ``billing.DESTINATIONS``, or another word, to which nobody states a price.
    """

    dataset_gb: Fraction | None = None
    results_gb: Fraction | None = None
    out_before_gb: Fraction = Fraction(0)
    egress_to: str | None = None
    checkpoint_gb: Fraction | None = None
    checkpoint_every_s: Fraction | None = None
    volume_gb: Fraction | None = None
    image_gb: Fraction | None = None
    public_ips: int = 0
    reserved_h: Fraction | None = None
    exchange_gb: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """``terms`` are the seconds of one unit by place and add up to ``timing.likely``.

    ``units`` None asks for the marginal unit: no start, no increments, nothing that is paid once.
    ``tax`` is the rate at which the buyer is taxed, 0.19 for 19 %; None: not stated.
    """

    unit: str
    units: Fraction | None
    timing: Timing
    terms: Mapping[str, Fraction]
    terms_grade: Grade
    others: tuple[Timing, ...] = ()
    startup_s: Fraction = Fraction(0)
    restart_s: Fraction | None = None
    needs: Needs = Needs()
    moves: Moves = Moves()
    interruptible: bool | None = None
    mtbf_h: Fraction | None = None
    deadline_s: Fraction | None = None
    tax: Fraction | None = None
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = field(default=())

    @property
    def on(self) -> Configuration:
        """The configuration on which the unit was timed."""
        return self.timing.on
