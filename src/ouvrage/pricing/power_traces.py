"""What an epoch, and a reached target, cost at each power limit, from published traces.

Decides which batch size and power limit is cheapest for somebody who pays for energy, for time, or
for both. Reads two tables in the form of the Zeus traces (NSDI '23, Apache-2.0): a power trace (one
row a configuration: seconds and mean watts per epoch at a limit) and a train trace (one row a run
and a target: the epoch that reached it, or ``nan``). They join on dataset, network, batch size and
optimizer.

A run that never reached its target cost something too. It is taken to have cost at least the epochs
up to the last target it did reach: an assumption, and a low one. The cost of a target is what all
runs cost together, divided by the runs that reached it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import Price

J_PER_KWH = 3_600_000
US_PER_S = 1_000_000
_LEAST, _GREATEST, _LONGEST_NUMBER = Decimal("1e-12"), Decimal("1e15"), 60
POWER_COLUMNS = (
    "dataset",
    "network",
    "batch_size",
    "optimizer",
    "power_limit",
    "time_per_epoch",
    "average_power",
)
TRAIN_COLUMNS = (
    "dataset",
    "network",
    "batch_size",
    "optimizer",
    "learning_rate",
    "run",
    "target_metric",
    "target_epoch",
)
ASSUMPTION = (
    "a run that misses a target is charged the epochs to the last target it reached, "
    "which is the least it can have cost"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What both traces join on."""

    dataset: str
    network: str
    batch_size: int
    optimizer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One recipe at one power limit: measured seconds and mean watts per epoch."""

    recipe: Recipe
    power_limit_w: int
    seconds_per_epoch: Fraction
    average_power_w: Fraction

    @property
    def kwh_per_epoch(self) -> Fraction:
        """Energy of one epoch: seconds x watts / 3,600,000."""
        return self.seconds_per_epoch * self.average_power_w / J_PER_KWH

    def cost_per_epoch(self, electricity_per_kwh: Fraction, rate: Price) -> Fraction:
        """Energy at the electricity price plus time at the rate."""
        time = rate.cost_of(self.seconds_per_epoch * US_PER_S)
        return self.kwh_per_epoch * electricity_per_kwh + time


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run and one target: the epoch that reached it, None where it never did."""

    recipe: Recipe
    learning_rate: str
    run: str
    target: Fraction
    epochs: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cheapest configuration of a dataset and network: per epoch (``target`` None) or target.

    ``cost`` includes the failed runs; ``cost_if_failures_were_free`` does not. ``reached`` and
    ``missed`` count the runs behind it (0 and 0 for an epoch).
    """

    configuration: Configuration
    target: Fraction | None
    cost: Fraction
    cost_if_failures_were_free: Fraction
    reached: int
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """Epochs spent on one target with one recipe: by runs that reached it, and by those that missed."""

    reached: int
    missed: int
    spent_reached: Fraction
    spent_missed: Fraction


def read_power_trace(lines: Iterable[str], name: str) -> list[Configuration]:
    """Configurations of a power trace; ``OuvrageError`` ``trace/row`` names a bad line."""
    found: dict[tuple[Recipe, int], Configuration] = {}
    for line, row in _rows(lines, name, POWER_COLUMNS):
        configuration = Configuration(
            recipe=_recipe(row, name, line),
            power_limit_w=_whole(row, "power_limit", name, line),
            seconds_per_epoch=_positive(row, "time_per_epoch", name, line),
            average_power_w=_positive(row, "average_power", name, line),
        )
        key = (configuration.recipe, configuration.power_limit_w)
        if found.setdefault(key, configuration) is not configuration:
            raise _bad_row(name, line, "this configuration was given before in the same trace")
    return list(found.values())


def read_train_trace(lines: Iterable[str], name: str) -> list[Trial]:
    """Trials of a train trace; ``OuvrageError`` ``trace/row`` names a bad line."""
    return [
        Trial(
            recipe=_recipe(row, name, line),
            learning_rate=row["learning_rate"],
            run=row["run"],
            target=_number(row, "target_metric", name, line),
            epochs=_epochs(row, name, line),
        )
        for line, row in _rows(lines, name, TRAIN_COLUMNS)
    ]


def cheapest_epochs(
    configurations: Iterable[Configuration], electricity_per_kwh: Fraction, rate: Price
) -> list[Choice]:
    """For each dataset and network, the configuration whose epoch costs least."""
    choices = []
    for configuration in configurations:
        cost = configuration.cost_per_epoch(electricity_per_kwh, rate)
        choices.append(
            Choice(
                configuration=configuration,
                target=None,
                cost=cost,
                cost_if_failures_were_free=cost,
                reached=0,
                missed=0,
            )
        )
    return _least(choices)


def cheapest_targets(
    configurations: Iterable[Configuration],
    trials: Iterable[Trial],
    electricity_per_kwh: Fraction,
    rate: Price,
) -> list[Choice]:
    """For each dataset, network and target that a joined run reached, the cheapest way to it."""
    spent = epochs_spent(trials)
    choices = []
    for configuration in configurations:
        per_epoch = configuration.cost_per_epoch(electricity_per_kwh, rate)
        for target, epochs in spent.get(configuration.recipe, {}).items():
            if epochs.reached:
                choices.append(_choice(configuration, target, epochs, per_epoch))
    return _least(choices)


def epochs_spent(trials: Iterable[Trial]) -> dict[Recipe, dict[Fraction, Epochs]]:
    """Epochs spent per recipe and target, failures at their least."""
    runs: dict[tuple[Recipe, str, str], dict[Fraction, Fraction | None]] = {}
    for trial in trials:
        key = (trial.recipe, trial.learning_rate, trial.run)
        runs.setdefault(key, {})[trial.target] = trial.epochs
    spent: dict[Recipe, dict[Fraction, Epochs]] = {}
    for (recipe, _, _), targets in runs.items():
        last = max(
            (epochs for epochs in targets.values() if epochs is not None), default=Fraction(0)
        )
        by_target = spent.setdefault(recipe, {})
        for target, epochs in targets.items():
            by_target[target] = _add(by_target.get(target), epochs, last)
    return spent


def train_rows(trials: Iterable[Trial], configurations: Iterable[Configuration]) -> dict[str, int]:
    """How many rows there are, how many never reached their target, and the same for joined ones."""
    recipes = {configuration.recipe for configuration in configurations}
    rows = [(trial.recipe in recipes, trial.epochs is None) for trial in trials]
    return {
        "total": len(rows),
        "never_reached": sum(missed for _, missed in rows),
        "joined": sum(joined for joined, _ in rows),
        "joined_never_reached": sum(joined and missed for joined, missed in rows),
    }


def _add(held: Epochs | None, epochs: Fraction | None, last: Fraction) -> Epochs:
    before = held or Epochs(
        reached=0, missed=0, spent_reached=Fraction(0), spent_missed=Fraction(0)
    )
    missed = epochs is None
    return Epochs(
        reached=before.reached + (not missed),
        missed=before.missed + missed,
        spent_reached=before.spent_reached + (epochs or 0),
        spent_missed=before.spent_missed + (last if missed else 0),
    )


def _choice(
    configuration: Configuration, target: Fraction, epochs: Epochs, per_epoch: Fraction
) -> Choice:
    return Choice(
        configuration=configuration,
        target=target,
        cost=per_epoch * (epochs.spent_reached + epochs.spent_missed) / epochs.reached,
        cost_if_failures_were_free=per_epoch * epochs.spent_reached / epochs.reached,
        reached=epochs.reached,
        missed=epochs.missed,
    )


def _least(choices: Iterable[Choice]) -> list[Choice]:
    """The cheapest per dataset, network and target; a tie goes to the smaller batch and limit."""
    best: dict[tuple[str, str, Fraction | None], Choice] = {}
    for choice in sorted(choices, key=_rank):
        recipe = choice.configuration.recipe
        best.setdefault((recipe.dataset, recipe.network, choice.target), choice)
    return sorted(best.values(), key=_place)


def _rank(choice: Choice) -> tuple[Fraction, int, int, str]:
    configuration = choice.configuration
    recipe = configuration.recipe
    return (choice.cost, recipe.batch_size, configuration.power_limit_w, recipe.optimizer)


def _place(choice: Choice) -> tuple[str, str, bool, Fraction]:
    recipe = choice.configuration.recipe
    return (recipe.dataset, recipe.network, choice.target is not None, choice.target or Fraction(0))


def _rows(
    lines: Iterable[str], name: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(lines, strict=True)
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise OuvrageError(
            "trace/columns",
            f"{name} has no column {', '.join(missing)}",
            hint=f"the first line must name: {', '.join(columns)}",
        )
    try:
        for row in reader:
            if None in row or None in row.values():
                raise _bad_row(name, reader.line_num, "the row has not as many cells as the header")
            yield reader.line_num, row
    except csv.Error as error:
        # The outer reader's own number still is that of the row before.
        raise _bad_row(name, reader.reader.line_num, str(error)) from error


def _recipe(row: Mapping[str, str], name: str, line: int) -> Recipe:
    return Recipe(
        dataset=row["dataset"],
        network=row["network"],
        batch_size=_whole(row, "batch_size", name, line),
        optimizer=row["optimizer"],
    )


def _epochs(row: Mapping[str, str], name: str, line: int) -> Fraction | None:
    if row["target_epoch"].strip().lower() == "nan":
        return None
    return _positive(row, "target_epoch", name, line)


def _number(row: Mapping[str, str], column: str, name: str, line: int) -> Fraction:
    text = row[column].strip()
    try:
        value = Decimal(text)
        # Compared before it becomes a fraction: 1e999999999 as one fills the memory.
        if len(text) > _LONGEST_NUMBER or not text.isascii() or not _may_be(value):
            raise ValueError(text)
        return Fraction(value)
    except (ValueError, InvalidOperation):
        raise _bad_row(name, line, f"{column} is {text[:40]!r}, not a number") from None


def _may_be(value: Decimal) -> bool:
    return value.is_finite() and (value == 0 or _LEAST <= value.copy_abs() <= _GREATEST)


def _positive(row: Mapping[str, str], column: str, name: str, line: int) -> Fraction:
    value = _number(row, column, name, line)
    if value <= 0:
        raise _bad_row(name, line, f"{column} is {row[column]}; it must be above zero")
    return value


def _whole(row: Mapping[str, str], column: str, name: str, line: int) -> int:
    value = _positive(row, column, name, line)
    if value.denominator != 1:
        raise _bad_row(name, line, f"{column} is {row[column]}; it must be a whole number")
    return int(value)


def _bad_row(name: str, line: int, what: str) -> OuvrageError:
    return OuvrageError(
        "trace/row",
        what,
        where=(f"{name}:{line}",),
        hint="mend or remove the line; nothing was read",
    )
