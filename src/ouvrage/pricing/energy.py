"""Figures of energy and GPUs: each with its method, what it covers, and the way back.

Decides what is added to what. ``energy_j`` is the GPUs' alone; the processor's meter and the one
at the wall are figures of their own, since the wall's contains both. The cost of energy stands
beside the rental price and never in it: whoever rents has usually paid for it already. A figure
without a total stays unknown: seven of eight cards are not the run's energy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.metering.gpu_use import DeviceUse, Energy, device_uses, metered_energy
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView

J_PER_KWH = 3_600_000
UJ = 1_000_000
WHOLE_CARD = "the whole card's, since it is divided (MIG): other parts' work is in it"
METERS = {"host": "rapl", "wall": "wall"}
COVERS = {
    "host": "the processors' packages (and memory, where they tell it)",
    "wall": "everything behind the plug",
}
NO_GPU = "this host has no energy meter that the run could read"
NO_ELECTRICITY = "no price of electricity was given; add --electricity, for example 0.25/kWh"


def energy_figures(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    """Everything about GPUs and energy in the sheet of a run."""
    uses = device_uses(view, 0, view.wall_us)
    for use in uses:
        yield from _device_figures(view, use)
    yield from _total(view, uses)
    found = {name: metered_energy(view, kind, 0, view.wall_us) for name, kind in METERS.items()}
    for name, energy in found.items():
        yield from _metered(view, name, energy)
    yield from _per_unit(view, reckoning, uses)
    yield from _cost(view, reckoning, uses, found)


def fact_keys(view: RunView, gpu: int) -> tuple[str, ...]:
    """The keys of the facts about one GPU: who it is, and its windows."""
    held = (("run.device", view.devices), ("run.gpu_window", view.gpu_windows))
    return tuple(
        key
        for kind, values in held
        for key, value in zip(view.facts(kind), values, strict=True)
        if value.gpu == gpu
    )


def _device_figures(view: RunView, use: DeviceUse) -> Iterable[Figure]:
    facts = fact_keys(view, use.device.gpu)
    root = f"devices.{use.device.gpu}"
    why = "it cannot be told of a divided card (MIG)" if use.device.mig else "the card did not say"
    energy = use.energy
    rows: tuple[tuple[str, Fraction | int | None, str, str], ...] = (
        ("busy", use.busy, "1", "share of the sampled time in which a kernel ran, by the driver"),
        ("memory_max_bytes", use.memory_max_bytes, "B", "most memory in use at any reading"),
        ("throttled", use.throttled, "1", "share of the time with clocks held by a fault"),
        ("power_w", use.power_w, "W", "energy / the time that it covers"),
        ("pcie_tx_bytes", use.pcie_tx_bytes, "B", "sent over PCIe in the time it was read"),
        ("pcie_rx_bytes", use.pcie_rx_bytes, "B", "received over PCIe in the time it was read"),
    )
    for name, value, unit, method in rows:
        path = f"{root}.{name}"
        if value is None:
            yield unknown(path, unit, method, why)
        else:
            yield known(path, value, unit, view.grade, method, facts=facts)
    path = f"{root}.energy_j"
    if energy is None:
        yield unknown(path, "J", "energy of the card", "neither a counter nor power was told")
        return
    method = _energy_words(view, energy) + (f"; {WHOLE_CARD}" if use.device.mig else "")
    yield known(path, energy.uj / UJ, "J", view.grade, method, facts=facts)


def _energy_words(view: RunView, energy: Energy) -> str:
    covered = 100 * energy.covered_us / view.wall_us if view.wall_us else 0
    words = f"{energy.method}, over {float(covered):.1f} % of the run"
    return words + (f", {energy.resets} steps with a reset left out" if energy.resets else "")


def _total(view: RunView, uses: Sequence[DeviceUse]) -> Iterable[Figure]:
    method, share = "energy of the run's GPUs together", "share of the run that the energy covers"
    silent = [use.device.gpu for use in uses if use.energy is None]
    if not uses or silent or not view.wall_us:
        why = f"GPU {silent[0]} told neither energy nor power" if silent else NO_GPU
        yield unknown("energy_j", "J", method, why)
        yield unknown("energy.coverage", "1", share, why)
        return
    paths = tuple(f"devices.{use.device.gpu}.energy_j" for use in uses)
    energies = [use.energy for use in uses if use.energy]
    total = sum((energy.uj for energy in energies), Fraction(0)) / UJ
    yield known("energy_j", total, "J", view.grade, method, inputs=paths)
    covered = sum((energy.covered_us for energy in energies), Fraction(0))
    mean = covered / (len(energies) * view.wall_us)
    facts = view.facts("run.gpu_window")
    yield known("energy.coverage", min(mean, Fraction(1)), "1", view.grade, share, facts=facts)


def _metered(view: RunView, name: str, energy: Energy | None) -> Iterable[Figure]:
    path, method = f"energy.{name}_j", f"energy of {COVERS[name]}"
    share = f"energy.{name}_coverage"
    if energy is None or not view.wall_us:
        why = "this host has no such meter that the run could read"
        yield unknown(path, "J", method, why)
        yield unknown(share, "1", "share of the run that it covers", why)
        return
    facts = (*view.facts("run.energy_meter"), *view.facts("run.energy_window"))
    words = f"{method}, by {_energy_words(view, energy)}"
    yield known(path, energy.uj / UJ, "J", view.grade, words, facts=facts)
    covered = min(energy.covered_us / view.wall_us, Fraction(1))
    yield known(share, covered, "1", view.grade, "share of the run that it covers", facts=facts)


def _per_unit(view: RunView, reckoning: Reckoning, uses: Sequence[DeviceUse]) -> Iterable[Figure]:
    """Energy of a unit: of the steady phase's units, and of everything shared among all."""
    start, end = reckoning.phases.steady_period
    steady = [use.energy for use in device_uses(view, start, end)]
    many = sum(lap.count for lap in reckoning.phases.steady)
    method = "mean power in the steady phase x its length / its units"
    path = "energy_per_unit.marginal_j"
    found = [energy for energy in steady if energy is not None]
    if not found or len(found) < len(steady) or not many or end <= start:
        why = "no unit could be timed" if not many else NO_GPU
        yield unknown(path, "J", method, why)
    else:
        watts = sum((energy.uj / energy.covered_us for energy in found), Fraction(0))
        covered = min(e.covered_us for e in found) / (end - start)
        yield known(
            path,
            watts * (end - start) / UJ / many,
            "J",
            *_partly(view, min(covered, Fraction(1)), method),
            inputs=("phases.steady_s", *(f"devices.{use.device.gpu}.power_w" for use in uses)),
        )
    yield _all_in(view, reckoning, uses)


def _partly(view: RunView, covered: Fraction, method: str) -> tuple[Grade, str]:
    """The grade of a figure that takes the rest of the time to be like the part that was seen."""
    if covered >= Fraction(98, 100):
        return view.grade, method
    words = (
        f"{method}; the {float(100 - 100 * covered):.0f} % not seen are taken to be like the rest"
    )
    return weakest((Grade.ASSUMED, view.grade)), words


def _all_in(view: RunView, reckoning: Reckoning, uses: Sequence[DeviceUse]) -> Figure:
    path, method = "energy_per_unit.all_in_j", "energy of the run / finished units"
    finished = reckoning.units.finished
    if not finished or not uses or any(use.energy is None for use in uses):
        return unknown(path, "J", method, NO_GPU if finished else "no unit finished")
    total = sum((use.energy.uj for use in uses if use.energy), Fraction(0)) / UJ
    inputs = ("energy_j", "units")
    return known(path, total / finished, "J", view.grade, method, inputs=inputs)


def _cost(
    view: RunView,
    reckoning: Reckoning,
    uses: Sequence[DeviceUse],
    found: dict[str, Energy | None],
) -> Iterable[Figure]:
    """What the energy cost, at the widest meter there is; a figure of its own."""
    price = view.electricity
    method, each = "price of electricity x energy", "cost of energy / finished units"
    if price is None:
        yield unknown("electricity.amount", "1", "what a kilowatt-hour costs", NO_ELECTRICITY)
        yield unknown("cost_of_energy.total", "1", method, NO_ELECTRICITY)
        yield unknown("cost_of_energy.per_unit", "1", each, NO_ELECTRICITY)
        return
    amount, grade = Fraction(Decimal(price.amount)), weakest((Grade.ASSUMED, view.grade))
    yield known(
        "electricity.amount",
        amount,
        f"{price.currency}/kWh",
        grade,
        "as typed on the command line",
        facts=view.facts("run.electricity"),
    )
    paths, joules, words = _basis(uses, found)
    if joules is None:
        for path, how in (("total", method), ("per_unit", each)):
            yield unknown(f"cost_of_energy.{path}", price.currency, how, NO_GPU)
        return
    paid = amount * joules / J_PER_KWH
    inputs = ("electricity.amount", *paths)
    said = f"{method}: {words}"
    yield known("cost_of_energy.total", paid, price.currency, grade, said, inputs=inputs)
    path, finished = "cost_of_energy.per_unit", reckoning.units.finished
    if finished:
        inputs = ("cost_of_energy.total", "units")
        yield known(path, paid / finished, price.currency, grade, each, inputs=inputs)
    else:
        yield unknown(path, price.currency, each, "no unit finished")


def _basis(
    uses: Sequence[DeviceUse], found: dict[str, Energy | None]
) -> tuple[tuple[str, ...], Fraction | None, str]:
    """Which energies are paid for: the wall's alone, else what the parts told, never both."""
    wall, host = found["wall"], found["host"]
    if wall:
        return ("energy.wall_j",), wall.uj / UJ, "the whole machine, at the wall"
    paths: list[str] = []
    joules = Fraction(0)
    if uses and all(use.energy for use in uses):
        paths.append("energy_j")
        joules += sum((use.energy.uj for use in uses if use.energy), Fraction(0)) / UJ
    if host:
        paths.append("energy.host_j")
        joules += host.uj / UJ
    if not paths:
        return (), None, ""
    return tuple(paths), joules, "only what was metered; fans, disks, losses are not in it"


def devices_json(view: RunView, sheet: Sheet) -> list[dict[str, Any]]:
    """The GPUs of a report: who each is, and its figures."""
    found: list[dict[str, Any]] = []
    for use in device_uses(view, 0, view.wall_us):
        device, root = use.device, f"devices.{use.device.gpu}"
        figures = {name: _number(sheet[f"{root}.{name}"]) for name in DEVICE_FIGURES}
        found.append(
            {
                "gpu": device.gpu,
                "name": device.name,
                "uuid": device.uuid,
                "serial": device.serial,
                "pci": device.pci,
                "driver": device.driver,
                "memory_bytes": device.memory_bytes,
                "power_limit_w": None
                if device.power_limit_mw is None
                else device.power_limit_mw / 1000,
                "mig": None if device.mig is None else bool(device.mig),
                **figures,
                "energy_method": sheet[f"{root}.energy_j"].method if use.energy else None,
                "clock_reasons": {name: float(round(share, 6)) for name, share in use.reasons},
                "temperature_max_c": use.temperature_max_c,
                "ecc_uncorrected": use.ecc_uncorrected,
                "coverage": float(round(min(use.covered_us / view.wall_us, Fraction(1)), 6))
                if view.wall_us
                else None,
            }
        )
    return found


DEVICE_FIGURES = (
    *("busy", "memory_max_bytes", "energy_j", "power_w", "throttled"),
    *("pcie_tx_bytes", "pcie_rx_bytes"),
)


def _number(figure: Figure) -> float | int | None:
    value = figure.value
    if not isinstance(value, Fraction):
        return None
    return round(value) if figure.unit == "B" else float(round(value, 6))
