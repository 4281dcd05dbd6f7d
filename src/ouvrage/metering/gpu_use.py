"""What the GPUs and energy meters of a run add up to, over the whole run or a part of it.

Decides which of two roads to a card's energy is believed: its own counter where that covers as much
time as the power readings do and moves when they say it should, else the integral of the readings.
Both are never added. A window cut by the edge of a period counts in proportion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.metering.run_view import RunView
from ouvrage.model.gpus import RunDevice, RunEnergyWindow, RunGpuWindow

STILL_UJ = 1_000_000
"""A counter that never moves while this much was drawn is not a counter."""
POWER_WORDS = {
    "average": "its average-power readings",
    "instant": "its instant-power readings",
    "usage": "its power readings (an average over a second on most cards since Ampere)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Microjoules over ``covered_us``, and how they are known."""

    uj: Fraction
    covered_us: Fraction
    method: str
    resets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """One GPU over a period; shares are of the time that each figure covers, None if it covers none.

    ``reasons`` are shares of the time by reason; ``throttled`` is the share under a fault.
    """

    device: RunDevice
    covered_us: Fraction
    busy: Fraction | None
    memory_max_bytes: int | None
    energy: Energy | None
    throttled: Fraction | None
    reasons: tuple[tuple[str, Fraction], ...]
    pcie_tx_bytes: Fraction | None
    pcie_rx_bytes: Fraction | None
    temperature_max_c: int | None
    ecc_uncorrected: int | None
    width_min: int | None

    @property
    def power_w(self) -> Fraction | None:
        """Mean power over the time that the energy covers."""
        energy = self.energy
        return None if energy is None else energy.uj / energy.covered_us


def share_of(amount: int, window: RunGpuWindow | RunEnergyWindow, start: int, end: int) -> Fraction:
    """The part of a window's amount that falls into a period."""
    if start <= window.from_us and window.to_us <= end:
        return Fraction(amount)
    overlap = min(window.to_us, end) - max(window.from_us, start)
    return Fraction(amount * max(0, overlap), window.to_us - window.from_us)


def device_uses(view: RunView, start: int, end: int) -> list[DeviceUse]:
    """The GPUs that were left to the command, each over a period."""
    return [
        _use(device, windows_of_gpu(view, device.gpu, start, end), start, end)
        for device in view.devices
        if device.chosen
    ]


def windows_of_gpu(view: RunView, gpu: int, start: int, end: int) -> list[RunGpuWindow]:
    """The windows of one GPU that reach into a period."""
    return [
        window
        for window in view.gpu_windows
        if window.gpu == gpu and window.from_us < end and window.to_us > start
    ]


def _use(device: RunDevice, windows: Sequence[RunGpuWindow], start: int, end: int) -> DeviceUse:
    def total(name: str) -> Fraction:
        return sum((share_of(getattr(w, name) or 0, w, start, end) for w in windows), Fraction(0))

    def ratio(amount: Fraction, covered: Fraction) -> Fraction | None:
        return amount / covered if covered else None

    explained = total("reasons_covered_us")
    linked = total("pcie_covered_us")
    return DeviceUse(
        device=device,
        covered_us=total("covered_us"),
        busy=ratio(total("busy_us"), total("busy_covered_us")),
        memory_max_bytes=_greatest(w.memory_used_max_bytes for w in windows),
        energy=_believed(windows, total),
        throttled=ratio(total("fault_us"), explained),
        reasons=_reasons(windows, explained, start, end),
        pcie_tx_bytes=total("pcie_tx_bytes") if linked else None,
        pcie_rx_bytes=total("pcie_rx_bytes") if linked else None,
        temperature_max_c=_greatest(w.temperature_max_c for w in windows),
        ecc_uncorrected=_sum(w.ecc_uncorrected for w in windows),
        width_min=min((w.pcie_width_min for w in windows if w.pcie_width_min), default=None),
    )


def _greatest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _believed(windows: Sequence[RunGpuWindow], total: Callable[[str], Fraction]) -> Energy | None:
    counter, counted = total("counter_uj"), total("counter_covered_us")
    drawn, metered = total("power_uj"), total("power_covered_us")
    stands_still = not counter and drawn > STILL_UJ
    if counted and counted >= metered and not stands_still:
        resets = sum(window.counter_resets for window in windows)
        return Energy(uj=counter, covered_us=counted, method="energy counter", resets=resets)
    if not metered:
        return None
    methods = {w.power_method for w in windows if w.power_method}
    words = " and ".join(POWER_WORDS[method] for method in sorted(methods))
    return Energy(uj=drawn, covered_us=metered, method=f"integrated from {words}")


def _reasons(
    windows: Sequence[RunGpuWindow], explained: Fraction, start: int, end: int
) -> tuple[tuple[str, Fraction], ...]:
    times: dict[str, Fraction] = {}
    for window in windows:
        for reason in window.reasons:
            share = share_of(reason.us, window, start, end)
            times[reason.name] = times.get(reason.name, Fraction(0)) + share
    shares = [(name, us / explained) for name, us in times.items() if explained and us]
    return tuple(sorted(shares, key=lambda pair: (-pair[1], pair[0])))


def metered_energy(view: RunView, kind: str, start: int, end: int) -> Energy | None:
    """What the meters of one sort (``rapl``, ``wall``) counted together; None where none did.

    Covered is the mean of theirs, so that a sum over two processors has the coverage of one.
    """
    meters = [meter.meter for meter in view.meters if meter.kind == kind]
    held = [w for w in view.energy_windows if w.meter in meters and w.energy_uj is not None]
    uj = sum((share_of(w.energy_uj or 0, w, start, end) for w in held), Fraction(0))
    covered = sum((share_of(w.covered_us, w, start, end) for w in held), Fraction(0))
    if not covered or {w.meter for w in held} != set(meters):
        return None
    methods = {w.method for w in held if w.covered_us}
    return Energy(
        uj=uj,
        covered_us=covered / len(meters),
        method=" and ".join(sorted(methods)),
        resets=sum(w.resets for w in held),
    )
