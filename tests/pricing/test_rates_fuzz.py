"""A hundred thousand spoilt files: each is read whole or refused, and no row gets lost."""

from __future__ import annotations

import csv
import io
import random

import pytest

from ouvrage.adapters.rate_files import plan_from, usage_from
from ouvrage.base.errors import OuvrageError
from ouvrage.pricing.rates.bill import bill_faults
from ouvrage.pricing.rates.quantity import parse_rate
from ouvrage.pricing.rates.rating import apply_plan
from tests.pricing.rating import PLAN, rows, runs, shipped
from tests.support.spoilt import spoilt

INPUTS = 100_000
PIECES = [
    "",
    ",",
    '"',
    "\n",
    "\x00",
    "Z",
    "-",
    "1e400",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    "é",
    "\ud7ff",
    "2026-02-30",
    "GB",
    ".",
]
USAGE = rows(
    *runs(5, 20), "vm,egress,2026-11-30T00:00:00Z,5.5,GB", "vm,os,2026-11-30T00:00:00Z,,suse"
)
RULE = (
    'price = "1/h"\nmeter = { starts = ["active"], stops = ["stopped"] }\nincrement = "60 s"\n'
    'zone = "UTC"\nmonth = "730 h"\noverride = [{ when = { os = "suse" }, increment = "1 h" }]'
)
TOML = PLAN.format(rule=RULE, version='valid_from = 2026-01-01\ncurrency = "EUR"', top="")


def usage_is_whole_or_refused(text: str) -> None:
    try:
        usage = usage_from("u.csv", text)
    except OuvrageError as error:
        assert error.exit_code == 2  # noqa: PT017 - one of two allowed ends, not the only one
        return
    wanted = sum(bool(cells) for cells in csv.reader(io.StringIO(text, newline=""))) - 1
    assert len([row for row in usage.rows if row.line]) - len(usage.notes) == wanted


def plan_is_whole_or_refused(text: str) -> None:
    try:
        assert plan_from("p.toml", text).versions
    except OuvrageError as error:
        assert error.lines()  # noqa: PT017 - one of two allowed ends, not the only one


PREPAID = rows(
    "account,deposit,2026-11-30T00:00:00Z,0.01,USD",
    "vm,storage,2026-11-30T00:00:00Z,50,GB",
    *runs(5, 20),
)


def usage_is_rated_or_refused(text: str) -> None:
    try:
        usage = usage_from("u.csv", text)
        bill = apply_plan(shipped("runpod"), usage, {"rate": parse_rate("3.60/h")}, until=None)
    except OuvrageError as error:
        assert error.lines()  # noqa: PT017 - one of two allowed ends, not the only one
        return
    assert not list(bill_faults(bill))
    bill.as_json()


@pytest.mark.parametrize(
    ("text", "check"),
    [
        (USAGE, usage_is_whole_or_refused),
        (TOML, plan_is_whole_or_refused),
        (PREPAID, usage_is_rated_or_refused),
    ],
    ids=["usage", "plan", "prepaid"],
)
@pytest.mark.parametrize("inputs", [1000, pytest.param(INPUTS, marks=pytest.mark.soak)])
def test_spoilt_files(text: str, check, inputs: int):  # type: ignore[no-untyped-def] # either of two functions
    chance = random.Random(20261130)
    for _ in range(inputs):
        check(spoilt(text, chance, PIECES))
