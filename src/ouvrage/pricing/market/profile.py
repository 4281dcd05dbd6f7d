"""A work profile: what a piece of work asks of a machine, and how long a unit took where it was seen.

Decides nothing about any offer. Times are seconds for one unit, divided among the eight places where a
run's time goes; what was not stated is None and stays unknown. A profile comes from a run's own
figures, or is written by hand and is then no better than what its author says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import KEYS
from ouvrage.pricing.market.gpus import model_of

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
    """What is brought in, carried out, kept and reserved besides the machine itself, for all units."""

    dataset_gb: Fraction | None = None
    results_gb: Fraction | None = None
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
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = field(default=())

    @property
    def on(self) -> Configuration:
        """The configuration on which the unit was timed."""
        return self.timing.on


def profile_of_run(
    view: RunView, sheet: Sheet, *, gpu: str | None = None, provider: str | None = None
) -> Profile | None:
    """What a metered run says about its work; None where no unit could be timed.

    ``gpu`` says which GPU it used where the meter saw none (``none`` where there is none).
    """
    likely = sheet.number("seconds_per_unit.median")
    if likely is None:
        return None
    reckoning = reckon(view)
    use = reckoning.steady
    terms = {
        key: likely * use.us[key] / use.total_us if use.total_us else Fraction(0) for key in KEYS
    }
    if not use.total_us:
        terms["unknown"] = likely
    low, high = sheet.number("seconds_per_unit.low"), sheet.number("seconds_per_unit.high")
    startup = (sheet.number("phases.startup_s") or Fraction(0)) + _warmup_excess(sheet, likely)
    told = [grade for key in KEYS if (grade := sheet[f"steady.{key}"].grade) is not None]
    timing = Timing(
        on=_host(view, gpu, provider),
        low=likely if low is None else low,
        likely=likely,
        high=likely if high is None else high,
        grade=view.grade,
        said_by=f"run {view.code}",
    )
    return Profile(
        unit=reckoning.units.name,
        units=Fraction(reckoning.units.finished),
        timing=timing,
        terms=terms,
        terms_grade=weakest(told),
        startup_s=startup,
        needs=_used(view, gpu),
        facts=view.facts("run.started", "run.window", "run.marks", "run.spans"),
    )


def _warmup_excess(sheet: Sheet, likely: Fraction) -> Fraction:
    """Seconds by which the warm-up's units took longer than others: paid once, not per unit."""
    warm, steady = sheet.number("phases.warmup_s"), sheet.number("phases.steady_s")
    units = sheet.number("units")
    if not warm or steady is None or not units:
        return Fraction(0)
    in_warmup = max(Fraction(0), units - round(steady / likely)) if likely else Fraction(0)
    return max(Fraction(0), warm - in_warmup * likely)


def _host(view: RunView, gpu: str | None, provider: str | None) -> Configuration:
    host = view.started.host
    cores = Fraction(host.cpus_allowed)
    if host.cpu_quota_ppm is not None:
        cores = min(cores, Fraction(host.cpu_quota_ppm, 10**6))
    memory = [m for m in (host.memory_bytes, host.memory_limit_bytes) if m is not None]
    model, count = _gpu(view, gpu)
    return Configuration(
        name=view.started.label,
        provider=provider,
        gpu=model,
        gpus=count,
        vcpus=cores,
        memory_mib=Fraction(min(memory), 2**20) if memory else None,
    )


def _gpu(view: RunView, gpu: str | None) -> tuple[str | None, Fraction | None]:
    """The model and number of GPUs: as somebody says, else as the meter saw them."""
    seen = [device for device in view.devices if device.chosen]
    if gpu is not None and gpu.lower() == "none":
        return None, Fraction(0)
    if gpu is not None:
        return model_of(gpu), Fraction(max(1, len(seen)))
    first = next((device for device in seen if device.name), None)
    if first is None or first.name is None:
        return None, None
    memory = None if first.memory_bytes is None else first.memory_bytes // 2**20
    return model_of(first.name, memory), Fraction(len(seen))


def _used(view: RunView, gpu: str | None) -> Needs:
    """Memory that the run was seen to use. Nothing says that it could do with less."""
    peaks = [w.rss_max_bytes for w in view.windows if w.rss_max_bytes is not None]
    held = [w.memory_used_max_bytes for w in view.gpu_windows if w.memory_used_max_bytes]
    count = _gpu(view, gpu)[1]
    return Needs(
        gpu_memory_mib=Fraction(max(held), 2**20) if held and count else None,
        memory_mib=Fraction(max(peaks), 2**20) if peaks else None,
        gpu=None if count is None else count > 0,
    )


def together(profiles: list[Profile]) -> Profile:
    """Several runs of the same work: the first is carried over, the others count where they stood."""
    first, *rest = profiles
    return replace(first, others=(*first.others, *(each.timing for each in rest)))
