"""From an empty home to what usage costs, as a person does it: list, show, write a plan, apply it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.conftest import Home

USAGE = """\
resource,event,at,quantity,unit
train,requested,2026-11-30T10:57:10Z,,
train,active,2026-11-30T10:58:00Z,,
train,stopped,2026-11-30T11:04:45Z,,
"""
PLAN = """\
format = "ouvrage-rate-plan/1"
name = "mine"
title = "what my provider charges"

[source.contract]
at = "our contract"
dated = 2026-10-01
read = 2026-11-30
confidence = "verified"

[[version]]
valid_until = 2026-11-01
currency = "EUR"
evidence = { all = "contract" }
[[version.rule]]
name = "machine"
part = "compute"
price = "2.60/h"
meter = { starts = ["active"], stops = ["stopped"] }
evidence = { all = "contract" }

[[version]]
valid_from = 2026-11-01
currency = "EUR"
tax = { status = "excluded", rate = "0.20", name = "VAT" }
evidence = { all = "contract" }
[[version.rule]]
name = "machine"
part = "compute"
price = "2.52/h"
meter = { starts = ["active"], stops = ["stopped"] }
increment = "60 s"
evidence = { all = "contract" }
[[version.rule]]
name = "results"
part = "traffic"
direction = "out"
price = "0.05/GB"
"""


@pytest.fixture
def usage(ouvrage: Home) -> str:
    path = ouvrage.path.parent / "usage.csv"
    path.write_text(USAGE)
    return str(path)


def test_the_bill_of_seven_minutes(ouvrage: Home, usage: str):
    said = ouvrage("rates", "apply", "per-minute-up", "--rate", "2.52/h", "--usage", usage)
    assert said.code == 0, said
    assert said.out == (
        "0.2940 EUR ? under per-minute-up\n"
        "  whether tax is included is not known\n"
        "\n"
        "  resource  rule  from (UTC)           quantity       price    amount\n"
        "  train     time  2026-11-30 10:58:00     420 s  2.52 EUR/h  0.2940 ?\n"
        "      405 s rounded up by 60 s: 420 s, at 2.52 EUR/h\n"
        "\n"
        "The rules and their sources: ouvrage rates show per-minute-up\n"
    )
    assert said.err == ""
    assert not ouvrage.path.exists()
    plain = ouvrage(
        "rates", "apply", "per-minute-up", "--rate", "2.52/h", "--usage", usage, "--plain"
    )
    assert plain.first == "0.2940 EUR (assumed) under per-minute-up"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("per-second", "0.2835"),
        ("per-second-60s-minimum", "0.2835"),
        ("per-minute-up", "0.2940"),
        ("per-minute-down", "0.2520"),
        ("per-hour-up", "2.5200"),
        ("clock-hour", "5.0400"),
    ],
)
def test_the_generic_plans_as_json(ouvrage: Home, usage: str, plan: str, expected: str):
    said = ouvrage("rates", "apply", plan, "--rate", "2.52/h", "--usage", usage, "--json").json
    assert (said["total"], said["currency"]) == (expected, "EUR")
    assert [charge["amount"] for charge in said["charges"]] == [expected]
    assert said["charges"][0]["because"]
    asked = ["--currency", "USD", "--json"]
    dollars = ouvrage("rates", "apply", plan, "--rate", "2.52/h", "--usage", usage, *asked).json
    assert (dollars["total"], dollars["currency"]) == (expected, "USD")


def test_a_plan_of_ones_own(ouvrage: Home, usage: str, tmp_path: Path):
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN)
    checked = ouvrage("rates", "check", str(plan))
    assert checked.code == 0
    assert checked.first == f"{plan} can be used: mine, versions: 2, rules: 3"
    assert "unverified: results: price (no source)" in checked.out
    Path(usage).write_text(USAGE + "train,egress,2026-11-30T11:05:00Z,2,GB\n")
    said = ouvrage("rates", "apply", str(plan), "--usage", usage, "--json").json
    # 420 s at 2.52, 2 GB at 0.05, and a fifth on top
    assert said["total"] == "0.4728"
    assert [(c["rule"], c["amount"]) for c in said["charges"]] == [
        ("machine", "0.2940"),
        ("results", "0.1000"),
        ("VAT", "0.0788"),
    ]
    shown = ouvrage("rates", "show", str(plan))
    assert "2.60 EUR/h" in shown.out
    assert "our contract" in shown.out


def test_versions_that_do_not_meet(ouvrage: Home, usage: str, tmp_path: Path):
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN.replace("valid_from = 2026-11-01", "valid_from = 2026-11-04"))
    for verb in (["check", str(plan)], ["apply", str(plan), "--usage", usage]):
        said = ouvrage("rates", *verb)
        assert (said.code, said.out) == (2, "")
        assert said.err.splitlines() == [
            "error[rate-plan/gap]: mine has no rule from 2026-11-01 to 2026-11-04",
            f"  {plan}:12   valid_until = 2026-11-01",
            f"  {plan}:23   valid_from = 2026-11-04",
            "  hint: the two versions must meet; set valid_from to 2026-11-01, or add a plan for the days between",
            "nothing was written",
        ]


def test_list_and_show_say_what_is_not_verified(ouvrage: Home):
    listed = ouvrage("rates", "list")
    assert listed.code == 0
    for name in ("ec2-linux", "azure-per-second", "ovh-from-active", "clock-hour"):
        assert name in listed.out
    plans = {plan["name"]: plan for plan in ouvrage("rates", "list", "--json").json["plans"]}
    assert plans["azure-per-second"]["conflicts_with"] == ["azure-minute-down"]
    assert plans["ovh-from-active"]["not_verified"]
    shown = ouvrage("rates", "show", "azure-minute-down")
    assert "contradicts: azure-per-second (your own invoice decides)" in shown.out
    assert "conflict: increment, rounding" in shown.out
    value = ouvrage("rates", "show", "azure-minute-down", "--json").json
    assert value["versions"][0]["rules"][0]["evidence"]["increment"] == "this-text"


REFUSED = [
    (["apply", "per-second", "--usage", "USAGE"], "rate/missing"),
    (["apply", "per-second", "--usage", "USAGE", "--rate", "cheap"], "rate/unreadable"),
    (["apply", "per-second", "--usage", "USAGE", "--rate", "-1/h"], "rate/unreadable"),
    (["apply", "per-second", "--usage", "USAGE", "--rate", "1/h", "--rate", "2/h"], "rate/twice"),
    (["apply", "per-second", "--usage", "USAGE", "--rate", "1/GB"], "rate/unit"),
    (
        ["apply", "per-second", "--usage", "USAGE", "--rate", "1 USD/h", "--currency", "EUR"],
        "rate/two-currencies",
    ),
    (
        ["apply", "per-second", "--usage", "USAGE", "--rate", "1/h", "--currency", "euro"],
        "price/currency",
    ),
    (
        ["apply", "per-second", "--usage", "USAGE", "--rate", "1/h", "--until", "later"],
        "as-of/unreadable",
    ),
    (["apply", "per-second", "--rate", "1/h", "--usage", "missing.csv"], "usage/file"),
    (["apply", "per-secnd", "--rate", "1/h", "--usage", "USAGE"], "rate-plan/unknown"),
    (["apply", "./missing.toml", "--usage", "USAGE"], "rate-plan/file"),
    (["apply", "per-second"], "command/usage"),
    (["show", "nothing"], "rate-plan/unknown"),
    (["check", "missing.toml"], "rate-plan/file"),
    (["nothing"], "command/usage"),
]


@pytest.mark.parametrize(
    ("arguments", "code"), REFUSED, ids=lambda v: " ".join(v) if isinstance(v, list) else v
)
def test_what_cannot_be_rated_is_refused_with_a_hint(
    ouvrage: Home, usage: str, arguments: list[str], code: str
):
    words = [usage if word == "USAGE" else word for word in arguments]
    said = ouvrage("rates", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]: "), said.err
    assert "hint: " in said.err
    assert not ouvrage.path.exists()
    assert ouvrage("rates", *words, "--json").json["error"]["code"] == code


def test_bad_rows_are_told_with_line_and_field(ouvrage: Home, usage: str):
    Path(usage).write_text(USAGE + "train,egress,2026-11-30 11:05,2 GB,\n")
    said = ouvrage("rates", "apply", "per-second", "--rate", "1/h", "--usage", usage)
    assert said.code == 2
    assert said.err.splitlines()[1:4] == [
        f"  {usage}:5   quantity: found '2 GB', expected a decimal number such as 12.5",
        f"  {usage}:5   at: found '2026-11-30 11:05', expected a moment with its zone (RFC 3339), such as 2026-11-30T14:05:09Z",
        "  hint: events: requested, created, active, healthy, stopped, deallocated, offline, started, terminated, cancelled; quantities have a number and a unit",
    ]


def test_names_from_a_file_cannot_steer_a_terminal(ouvrage: Home, usage: str):
    Path(usage).write_text(USAGE.replace("train", "\x1b[2Jtrain"))
    said = ouvrage("rates", "apply", "per-second", "--rate", "1/h", "--usage", usage)
    assert said.code == 0
    assert "\x1b" not in said.out


def test_a_bill_is_kept_once_and_added_up_again(ouvrage: Home, usage: str):
    words = ["rates", "apply", "per-hour-up", "--rate", "1/h", "--usage", usage, "--record"]
    first, second = ouvrage(*words, "--json").json, ouvrage(*words, "--json").json
    assert first["kept"] == second["kept"]
    checked = ouvrage("verify", "--json").json
    assert (checked["holds"], checked["facts"]) == (True, 1)
    assert "pricing/bills-add-up" in {law["law"] for law in checked["laws"]}


def test_when_a_prepaid_balance_ends_and_what_did_not_run(ouvrage: Home, tmp_path: Path):
    file = tmp_path / "prepaid.csv"
    file.write_text(
        "resource,event,at,quantity,unit\n"
        "account,deposit,2026-11-01T00:00:00Z,1,USD\n"
        "pod,active,2026-11-01T00:00:00Z,,\n"
        "pod,stopped,2026-11-01T00:10:00Z,,\n"
        "pod,active,2026-11-01T01:00:00Z,,\n"
        "late,active,2026-11-01T02:00:00Z,,\n"
        "pod,terminated,2026-11-01T03:00:00Z,,\n"
        "late,terminated,2026-11-01T03:00:00Z,,\n"
    )
    said = ouvrage("rates", "apply", "runpod", "--rate", "3.60/h", "--usage", str(file))
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "0.9900 USD ? under runpod"
    assert lines[-6:-3] == [
        "prepaid: 1.0000 less these charges leaves 0.0100 (what runs is stopped before zero)",
        "balance: 2026-11-01T01:06:30.000000Z: pod: stopped; "
        "the balance covered 10 s more (prepaid: stops below 10 s of balance)",
        "late active at 2026-11-01T02:00:00.000000Z: "
        "not run: balance exhausted at 2026-11-01T01:06:30.000000Z",
    ]
    value = ouvrage("rates", "apply", "runpod", "--rate=3.6/h", "--usage", str(file), "--json").json
    assert [each["what"] for each in value["stops"]] == ["stopped"]
    assert [each["event"] for each in value["not_run"]] == ["active"]
