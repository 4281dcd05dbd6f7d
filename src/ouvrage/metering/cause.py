"""What held a run up most, in words, with the rule and the evidence.

Decides which wait is worth naming and how sure the words may be. The numbers are ``timeuse``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.metering.gpu_use import device_uses
from ouvrage.metering.gpus import FAULTS
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import SPAN_RULE, TimeUse

WORTH_NAMING = Fraction(5, 100)
NAMES = {
    "computing": "computing",
    "waiting_data": "waiting for data",
    "waiting_cpu": "waiting for a core",
    "waiting_storage": "waiting for storage",
    "waiting_network": "waiting for the network",
    "waiting_memory": "waiting for memory",
    "throttled": "throttled",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The largest wait of the steady phase: its key, share, grade, and what speaks for it.

    ``key`` is None when no wait is worth naming; ``evidence`` then says what is known instead.
    ``by_gpu`` is whether it is the GPUs that speak for it. ``verdict`` is the answer in one word:
    the key, else ``computing`` where it computed most of the time, else ``unknown``.
    """

    key: str | None
    share: Fraction
    grade: Grade | None
    evidence: str
    rule: str
    verdict: str
    by_gpu: bool = False


def cause_of(view: RunView, reckoning: Reckoning) -> Cause:
    """What held the steady phase up most."""
    use = reckoning.steady
    key = use.largest_wait()
    share = Fraction(use.us[key], use.total_us) if key and use.total_us else Fraction(0)
    rule = SPAN_RULE if use.emitter else use.sample_rule
    if key is None or share < WORTH_NAMING or use.us["unknown"] > use.us[key]:
        return Cause(
            key=None,
            share=share,
            grade=None,
            evidence=_nothing_waited(reckoning),
            rule=rule,
            verdict="computing" if use.us["computing"] * 2 > use.total_us else "unknown",
        )
    measured = use.measured[key] * 2 >= use.us[key]
    return Cause(
        key=key,
        share=share,
        grade=view.grade
        if use.measured[key] == use.us[key]
        else weakest((Grade.ASSUMED, view.grade)),
        evidence=_evidence(view, reckoning, key),
        rule=SPAN_RULE if measured else use.sample_rule,
        verdict=key,
        by_gpu=_gpus_say(use, key),
    )


def _nothing_waited(reckoning: Reckoning) -> str:
    use = reckoning.steady
    key = use.largest_wait()
    if key is not None and use.us["unknown"] > use.us[key] >= WORTH_NAMING * use.total_us:
        return f"more of its time is unexplained than was spent {NAMES[key]}"
    if use.us["unknown"] * 2 > use.total_us:
        return "samples do not say what it did; ouvrage.watch(loader) measures waits for data"
    if use.emitter is None:
        return "no wait shows in the samples; ouvrage.watch(loader) measures waits for data"
    return "no wait takes 5 % of the time"


def _evidence(view: RunView, reckoning: Reckoning, key: str) -> str:
    use = reckoning.steady
    seconds = f"{use.us[key] / 1e6:.3g} of {use.total_us / 1e6:.3g} s"
    said = {
        "waiting_data": lambda: "its spans say so",
        "waiting_cpu": lambda: "it was ready to run and had no core (kernel run delay)",
        "waiting_storage": lambda: _storage(view),
        "waiting_network": lambda: _network(view, told=use.measured[key] > 0),
        "waiting_memory": lambda: _memory(view),
        "throttled": lambda: _quota(view),
    }[key]()
    if key == "waiting_data" and use.counts[key]:
        each = use.us[key] / use.counts[key] / 1000
        said = f"each of {use.counts[key]} waits for a batch took {each:.3g} ms"
    elif _gpus_say(use, key):
        said = _gpu_evidence(view, reckoning, key, said)
    shared = _cores(view)
    return f"{said}: {seconds}" + (f"; {shared}" if shared else "")


def _storage(view: RunView) -> str:
    moved = sum((w.read_bytes or 0) + (w.write_bytes or 0) for w in view.windows)
    return f"its tasks were blocked while {_mb(moved)} were read or written"


def _network(view: RunView, *, told: bool) -> str:
    if told:
        return "its spans say so"
    flowed = sum((w.net_rx_bytes or 0) + (w.net_tx_bytes or 0) for w in view.windows)
    return f"threads slept at connections to other machines while {_mb(flowed)} flowed"


def _memory(view: RunView) -> str:
    back = sum(waits.refaulted_bytes or 0 for waits in view.waits)
    again = f" and {_mb(back)} that had been thrown out were read back" if back else ""
    return f"memory was short: pages were faulted in{again}"


def _quota(view: RunView) -> str:
    periods = sum(waits.quota_periods or 0 for waits in view.waits)
    stopped = sum(waits.quota_stopped or 0 for waits in view.waits)
    if not periods:
        return "the cgroup's CPU quota stopped it (cgroup counter)"
    share = float(Fraction(100 * stopped, periods))
    return f"the cgroup's CPU quota ran out in {share:.0f} % of its periods"


def _mb(size: int) -> str:
    return f"{size / 1e6:.3g} MB"


def _gpus_say(use: TimeUse, key: str) -> bool:
    return use.by_gpu.get(key, 0) * 2 > use.us[key]


def _gpu_evidence(view: RunView, reckoning: Reckoning, key: str, said: str) -> str:
    """What the GPUs say for it; ``said`` where they say nothing of their own."""
    start, end = reckoning.phases.steady_period
    uses = device_uses(view, start, end)
    if key == "waiting_data":
        load = max((use.busy for use in uses if use.busy is not None), default=None)
        busy = "" if load is None else f" (its load was {float(100 * load):.0f} %)"
        return f"the GPU was idle while the processes worked{busy}"
    if key == "throttled":
        held: dict[str, Fraction] = {}
        for use in uses:
            for name, share in use.reasons:
                if name in FAULTS:
                    held[name] = max(held.get(name, Fraction(0)), share)
        if held:
            name = max(held, key=lambda one: held[one])
            words = name.replace("_", " ")
            return f"the GPU's clocks were held down {float(100 * held[name]):.0f} % of the time by {words}"
    return said


def _cores(view: RunView) -> str | None:
    """Whether everything in the run had to share little CPU; told only where it explains a wait."""
    host = view.started.host
    many = max((window.processes_max or 0 for window in view.windows), default=0)
    if host.cpus_allowed == 1:
        return f"{many} processes share one core" if many > 1 else "it may use one core only"
    if host.cpu_quota_ppm is not None and host.cpu_quota_ppm < 1_000_000 * host.cpus_allowed:
        return f"the cgroup allows {host.cpu_quota_ppm / 1e6:.3g} cores"
    return None
