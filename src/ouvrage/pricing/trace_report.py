"""What power traces say, as JSON and as text: who should set which power limit.

Decides how the owner, who pays for energy, and the renter, who pays for time, are set side by side,
and that what failed runs cost is shown next to every reached target. The figures are those of
``power_traces``; JSON holds them exactly, text with three digits. The traces were measured by
somebody else, so what is made from them is ``reported``, and a cost, made with typed prices,
``assumed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import Price
from ouvrage.base.text import safe
from ouvrage.pricing import power_traces as traces
from ouvrage.pricing.power_traces import Choice, Configuration, Trial
from ouvrage.pricing.words import mark, rounded

_ONE = Fraction(1)
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """Configurations of a power trace, trials of a train trace (None: none given), two prices."""

    configurations: tuple[Configuration, ...]
    trials: tuple[Trial, ...] | None
    per_kwh: Fraction
    rate: Price

    def json(self) -> dict[str, Any]:
        """All figures, exact: fractions where a number ends nowhere."""
        counts = None
        if self.trials is not None:
            counts = traces.train_rows(self.trials, self.configurations)
        return {
            "configurations": [self._configuration(each) for each in self.configurations],
            "cheapest": [_choice_json(each) for each in self.choices(self.per_kwh, self.rate)],
            "train_rows": counts,
        }

    def choices(self, per_kwh: Fraction, rate: Price) -> list[Choice]:
        """The cheapest epoch, then the cheapest reached targets, of each training."""
        epochs = traces.cheapest_epochs(self.configurations, per_kwh, rate)
        reached = traces.cheapest_targets(self.configurations, self.trials or (), per_kwh, rate)
        return sorted([*epochs, *reached], key=_place)

    def owner(self) -> list[Choice]:
        """For whoever pays for energy alone; at a price of 0 the least energy."""
        free = Price(amount="0", currency=self.rate.currency, per="h")
        return self.choices(self.per_kwh or _ONE, free)

    def renter(self) -> list[Choice]:
        """For whoever pays for time, energy included; at a rate of 0 the least time."""
        if Fraction(self.rate.amount):
            return self.choices(self.per_kwh, self.rate)
        return self.choices(_NOTHING, Price(amount="1", currency=self.rate.currency, per="h"))

    def lines(self, *, every_target: bool, plain: bool) -> list[str]:
        """The answer, both choices side by side, the failures' cost, the assumption, the rows."""
        pairs = list(zip(self.owner(), self.renter(), strict=True))
        epochs = [pair for pair in pairs if pair[0].target is None]
        reached = [pair for pair in pairs if pair[0].target is not None]
        shown = reached if every_target else _hardest(reached)
        rows = [("an epoch", *self._heads())]
        rows += [self._row(owner, renter, plain) for owner, renter in epochs]
        if shown:
            rows += [("", "", ""), ("a reached target", "", "")]
            rows += [self._row(owner, renter, plain) for owner, renter in shown]
        lines = [self._answer(epochs), "", *_laid_out(rows)]
        return lines + self._closing(len(reached) - len(shown), plain)

    def _answer(self, epochs: Sequence[tuple[Choice, Choice]]) -> str:
        apart = sum(_setting(owner) != _setting(renter) for owner, renter in epochs)
        if len(epochs) == 1:
            owner, renter = epochs[0]
            return (
                f"An epoch of {_training(owner)} is cheapest at {_setting(owner)} for the owner "
                f"(energy), at {_setting(renter)} for the renter (time)."
            )
        if not apart:
            return (
                f"Owner and renter agree: in all {len(epochs)} trainings one setting is cheapest."
            )
        return (
            f"Owner and renter should not set the same: in {apart} of {len(epochs)} trainings the "
            "cheapest epoch for energy is not the cheapest for time."
        )

    def _heads(self) -> tuple[str, str]:
        owner = f"owner: energy at {decimal_text(self.per_kwh)}/kWh"
        if not self.per_kwh:
            owner = "owner: least energy"
        if not Fraction(self.rate.amount):
            return owner, "renter: least time"
        return owner, f"renter: time at {self.rate.amount}/{self.rate.per}, energy included"

    def _row(self, owner: Choice, renter: Choice, plain: bool) -> tuple[str, str, str]:
        target = "" if owner.target is None else f" {decimal_text(owner.target)}"
        owned = self._amount(owner, self.rate.currency if self.per_kwh else "kWh", plain)
        paid = self.rate.currency if Fraction(self.rate.amount) else "h"
        return (
            f"{_training(owner)}{target}",
            f"{_setting(owner)}: {owned}",
            f"{_setting(renter)}: {self._amount(renter, paid, plain)}",
        )

    def _amount(self, choice: Choice, unit: str, plain: bool) -> str:
        grade = Grade.REPORTED if unit in ("kWh", "h") else Grade.ASSUMED
        words = f"{rounded(choice.cost)} {unit}{mark(grade, plain)}"
        lost = choice.cost - choice.cost_if_failures_were_free
        if lost:
            runs = choice.reached + choice.missed
            words += f", failures {rounded(lost)} of it ({choice.missed} of {runs} runs)"
        return words

    def _closing(self, hidden: int, plain: bool) -> list[str]:
        if self.trials is None:
            return ["", "With --train-trace FILE: what a reached target costs, failures included."]
        counts = traces.train_rows(self.trials, self.configurations)
        lines = [
            "",
            f"  assumption{mark(Grade.ASSUMED, plain)}: {traces.ASSUMPTION}",
            f"  train rows: {counts['total']:,}, {counts['never_reached']:,} of them never reached "
            f"their target; {counts['joined']:,} join a measured configuration "
            f"({counts['joined_never_reached']:,} never reached)",
        ]
        if hidden:
            lines += ["", f"{hidden} easier targets: --all      Every configuration: --json"]
        return lines

    def _configuration(self, each: Configuration) -> dict[str, Any]:
        return {
            "dataset": each.recipe.dataset,
            "network": each.recipe.network,
            "batch_size": each.recipe.batch_size,
            "optimizer": each.recipe.optimizer,
            "power_limit_w": each.power_limit_w,
            "seconds_per_epoch": each.seconds_per_epoch,
            "kwh_per_epoch": each.kwh_per_epoch,
            "cost_per_epoch": each.cost_per_epoch(self.per_kwh, self.rate),
        }


def _choice_json(choice: Choice) -> dict[str, Any]:
    return {
        "dataset": choice.configuration.recipe.dataset,
        "network": choice.configuration.recipe.network,
        "target": choice.target,
        "batch_size": choice.configuration.recipe.batch_size,
        "power_limit_w": choice.configuration.power_limit_w,
        "cost": choice.cost,
    }


def _place(choice: Choice) -> tuple[str, str, bool, Fraction]:
    recipe = choice.configuration.recipe
    return (recipe.dataset, recipe.network, choice.target is not None, choice.target or _NOTHING)


def _hardest(pairs: Sequence[tuple[Choice, Choice]]) -> list[tuple[Choice, Choice]]:
    """Of each training the highest target that any joined run reached."""
    return list({_training(pair[0]): pair for pair in pairs}.values())


def _training(choice: Choice) -> str:
    recipe = choice.configuration.recipe
    return f"{safe(recipe.dataset)}/{safe(recipe.network)}"


def _setting(choice: Choice) -> str:
    return f"batch {choice.configuration.recipe.batch_size}, {choice.configuration.power_limit_w} W"


def _laid_out(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    first, second = (max(len(row[i]) for row in rows) + 3 for i in (0, 1))
    return [f"  {name:<{first}}{owner:<{second}}{renter}".rstrip() for name, owner, renter in rows]
