"""What held a run up most, in words, with the rule and the evidence.

Decides which wait is worth naming and how sure the words may be. The numbers are ``timeuse``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import SAMPLE_RULE, SPAN_RULE

WORTH_NAMING = Fraction(5, 100)
NAMES = {
    "computing": "computing",
    "waiting_data": "waiting for data",
    "waiting_cpu": "waiting for a core",
    "waiting_storage": "waiting for storage",
    "waiting_network": "waiting for the network",
    "waiting_memory": "waiting for memory",
    "throttled": "throttled by the CPU limit",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The largest wait of the steady phase: its key, share, grade, and what speaks for it.

    ``key`` is None when no wait is worth naming; ``evidence`` then says what is known instead.
    """

    key: str | None
    share: Fraction
    grade: Grade | None
    evidence: str
    rule: str


def cause_of(view: RunView, reckoning: Reckoning) -> Cause:
    """What held the steady phase up most."""
    use = reckoning.steady
    key = use.largest_wait()
    share = Fraction(use.us[key], use.total_us) if key and use.total_us else Fraction(0)
    rule = SPAN_RULE if use.emitter else SAMPLE_RULE
    if key is None or share < WORTH_NAMING:
        return Cause(
            key=None, share=share, grade=None, evidence=_nothing_waited(reckoning), rule=rule
        )
    measured = use.measured[key] * 2 >= use.us[key]
    return Cause(
        key=key,
        share=share,
        grade=view.grade
        if use.measured[key] == use.us[key]
        else weakest((Grade.ASSUMED, view.grade)),
        evidence=_evidence(view, reckoning, key),
        rule=SPAN_RULE if measured else SAMPLE_RULE,
    )


def _nothing_waited(reckoning: Reckoning) -> str:
    use = reckoning.steady
    if use.us["unknown"] * 2 > use.total_us:
        return "samples do not say what it did; ouvrage.watch(loader) measures waits for data"
    if use.emitter is None:
        return "no wait shows in the samples; ouvrage.watch(loader) measures waits for data"
    return "no wait takes 5 % of the time"


def _evidence(view: RunView, reckoning: Reckoning, key: str) -> str:
    use = reckoning.steady
    seconds = f"{use.us[key] / 1e6:.3g} of {use.total_us / 1e6:.3g} s"
    said = {
        "waiting_data": "its spans say so",
        "waiting_cpu": "it was ready to run and had no core (kernel run delay)",
        "waiting_storage": "its tasks were blocked while bytes were read or written",
        "waiting_network": "its spans say so",
        "waiting_memory": "memory was under pressure while pages were faulted in",
        "throttled": "the cgroup's CPU quota stopped it (cgroup counter)",
    }[key]
    if key == "waiting_data" and use.counts[key]:
        each = use.us[key] / use.counts[key] / 1000
        said = f"each of {use.counts[key]} waits for a batch took {each:.3g} ms"
    shared = _cores(view)
    return f"{said}: {seconds}" + (f"; {shared}" if shared else "")


def _cores(view: RunView) -> str | None:
    """Whether everything in the run had to share little CPU; told only where it explains a wait."""
    host = view.started.host
    many = max((window.processes_max or 0 for window in view.windows), default=0)
    if host.cpus_allowed == 1:
        return f"{many} processes share one core" if many > 1 else "it may use one core only"
    if host.cpu_quota_ppm is not None and host.cpu_quota_ppm < 1_000_000 * host.cpus_allowed:
        return f"the cgroup allows {host.cpu_quota_ppm / 1e6:.3g} cores"
    return None
