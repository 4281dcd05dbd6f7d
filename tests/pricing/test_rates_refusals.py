"""Bad plans, rates and usage: what was found, what was expected, and in which line of which file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.rate_files import load_plan, plan_from, shipped_names, usage_from
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_us
from ouvrage.pricing.rates.places import located
from ouvrage.pricing.rates.quantity import duration_us, parse_rate
from ouvrage.pricing.rates.show import cells, doubtful, plan_text
from ouvrage.pricing.rates.usage import moment_us
from tests.pricing.rating import HEAD, bill, own, rows, runs

GOOD = 'price = "1/h"\nmeter = { starts = ["active"], stops = ["terminated"] }\n'
PLANS = [
    ('price = "cheap"', "rate-plan/field", "own.toml:9   price = "),
    ('price = "1 EUR/h"', "rate-plan/field", "own.toml:9"),
    ("price = 1", "rate-plan/field", "own.toml:9"),
    ('price = "1/h"', "rate-plan/field", "own.toml:7   [[version.rule]]"),
    ("", "rate-plan/field", "own.toml:7   [[version.rule]]"),
    (GOOD + 'increment = "soon"', "rate-plan/field", "own.toml:11   increment"),
    (GOOD + 'increment = "0.0000001 s"', "rate-plan/field", "own.toml:11"),
    (GOOD + 'incremnet = "1 s"', "rate-plan/field", "own.toml:11"),
    (GOOD + 'rounding = "sideways"', "rate-plan/field", "own.toml:11"),
    (GOOD + 'align = "clock"', "rate-plan/field", "own.toml:7"),
    (GOOD + 'align = "clock"\nincrement = "7 min"', "rate-plan/field", "own.toml:12"),
    (GOOD + 'zone = "Mars/Olympus"', "rate-plan/field", "own.toml:11"),
    (GOOD + 'day_starts = "25:00"', "rate-plan/field", "own.toml:11"),
    ('price = "1/h"\n' + "meter = { stops = ['stopped'] }", "rate-plan/field", "own.toml:10"),
    ('price = "1/h"\n' + "meter = { starts = ['awake'] }", "rate-plan/field", "own.toml:10"),
    (GOOD + "states = { asleep = '0' }", "rate-plan/field", "own.toml:11"),
    (GOOD + "covered_by = 'nobody'", "rate-plan/field", "own.toml:11"),
    (GOOD + "evidence = { all = 'nobody' }", "rate-plan/field", "own.toml:11"),
    (GOOD + "override = [{ price = '2/h' }]", "rate-plan/field", "own.toml:11"),
    (GOOD + "override = [{ when = { os = 'x' }, name = 'y' }]", "rate-plan/field", "own.toml:11"),
    (GOOD + "direction = 'up'", "rate-plan/field", "own.toml:11"),
    (GOOD + "tiers = [{ price = '1/h' }]", "rate-plan/field", "own.toml:11"),
    ('of = ["x"]\ntiers = [{ up_to = "1", price = "1/GB" }]', "rate-plan/field", "own.toml:10"),
    (
        'of = ["x"]\ntiers = [{ up_to = "2", price = "1/GB" }, { up_to = "1", price = "1/GB" }, { price = "1/GB" }]',
        "rate-plan/field",
        "own.toml:10",
    ),
    (
        'of = ["x"]\ntiers = [{ up_to = "2", price = "1/GB" }, { price = "1/TB" }]',
        "rate-plan/field",
        "own.toml:10",
    ),
    ('of = ["x"]\nprice = "1/GB-month"', "rate-plan/field", "own.toml:7"),
    ('price = "1/GB"', "rate-plan/field", "own.toml:9"),
    ('price = "1"', "rate-plan/field", "own.toml:9"),
    ('kind = "reservation"\nprice = "1"', "rate-plan/field", "own.toml:10"),
    ('part = "storage"\nof = ["storage"]\nprice = "1/GB"', "rate-plan/field", "own.toml:11"),
    ('part = "traffic"\nof = ["egress"]\nprice = "1/GB-h"', "rate-plan/field", "own.toml:11"),
    (GOOD + 'discount = "0.2"', "rate-plan/field", "own.toml:11"),
    (GOOD + '[[version.rule]]\nname = "r"\n' + GOOD, "rate-plan/field", "own.toml:12"),
    ('price = "1/h', "rate-plan/toml", "own.toml:9"),
]


@pytest.mark.parametrize(("text", "code", "where"), PLANS, ids=range(len(PLANS)))
def test_a_plan_that_means_nothing_is_refused_with_its_line(text: str, code: str, where: str):
    with pytest.raises(OuvrageError) as refused:
        own(text)
    error = refused.value
    assert error.code == code
    assert error.where[0].startswith(where), error.lines()
    assert error.hint
    if code == "rate-plan/field":
        assert "expected" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "format = 'other'",
        "format = 'ouvrage-rate-plan/1'",
        "x = 1",
        "version = 3",
        "[[version]]",
    ],
)
def test_a_file_that_is_no_plan_is_refused(text: str):
    with pytest.raises(OuvrageError) as refused:
        plan_from("x.toml", text)
    assert refused.value.code == "rate-plan/field"


def test_versions_with_a_gap_are_told_as_promised():
    text = """\
format = "ouvrage-rate-plan/1"
name = "ec2-linux"
title = "two versions"

[[version]]
valid_until = 2026-03-01
[[version.rule]]
name = "r"
of = ["x"]
price = "1/h"

[[version]]
valid_from  = 2026-03-04
[[version.rule]]
name = "r"
of = ["x"]
price = "1/h"
"""
    with pytest.raises(OuvrageError) as refused:
        plan_from("plans/ec2-linux.toml", text)
    assert refused.value.lines() == [
        "error[rate-plan/gap]: ec2-linux has no rule from 2026-03-01 to 2026-03-04",
        "  plans/ec2-linux.toml:6   valid_until = 2026-03-01",
        "  plans/ec2-linux.toml:13   valid_from  = 2026-03-04",
        "  hint: the two versions must meet; set valid_from to 2026-03-01, or add a plan for the days between",
    ]


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("", "valid_from = 2026-03-01", "rate-plan/overlap"),
        ("valid_until = 2026-03-01", "", "rate-plan/overlap"),
        ("valid_until = 2026-03-01T00:00:00", "valid_from = 2026-03-01", "rate-plan/field"),
        ("valid_until = '2026-03-01'", "valid_from = 2026-03-01", "rate-plan/field"),
        (
            "valid_from = 2026-03-01\nvalid_until = 2026-03-01",
            "valid_from = 2026-03-01",
            "rate-plan/period",
        ),
    ],
)
def test_dates_that_leave_a_moment_with_two_rules_or_none(first: str, second: str, code: str):
    with pytest.raises(OuvrageError) as refused:
        own(GOOD + f'[[version]]\n{second}\n[[version.rule]]\nname = "r"\n{GOOD}', version=first)
    assert refused.value.code == code


def test_usage_that_no_version_covers_is_refused():
    for line in ("vm,active,2016-01-01T00:00:00Z,,", "v,storage,2016-01-01T00:00:00Z,1,GB"):
        with pytest.raises(OuvrageError) as refused:
            bill("ec2-linux", [line, "vm,terminated,2026-01-01T00:00:00Z,,"], rate="1/h")
        assert refused.value.code == "rate-plan/not-valid"
    ended = own('of = ["egress"]\nprice = "1/GB"', version="valid_until = 2026-03-01")
    with pytest.raises(OuvrageError):
        bill(ended, ["a,egress,2026-03-01T00:00:00Z,1,GB"])


ROWS = [
    (
        "vm,active,2026-11-30T00:00:00,,",
        "at: found '2026-11-30T00:00:00', expected a moment with its zone",
    ),
    ("vm,active,30.11.2026,,", "at: found '30.11.2026'"),
    ("vm,active,,,", "at: found nothing"),
    ("vm,active,2026-13-30T00:00:00Z,,", "at: found"),
    ("vm,active,2026-11-30T00:00:00.0000001Z,,", "at: found"),
    (",active,2026-11-30T00:00:00Z,,", "resource: found nothing, expected a name"),
    ("vm,actve,2026-11-30T00:00:00Z,,", "event: found 'actve', expected one of requested, created"),
    ("vm,,2026-11-30T00:00:00Z,,", "event: found nothing"),
    ("vm,active,2026-11-30T00:00:00Z,3,", "quantity and unit: found '3', expected nothing beside"),
    ("vm,egress,2026-11-30T00:00:00Z,many,GB", "quantity: found 'many', expected a decimal number"),
    ("vm,egress,2026-11-30T00:00:00Z,nan,GB", "quantity: found 'nan'"),
    ("vm,egress,2026-11-30T00:00:00Z,1e9,GB", "quantity: found '1e9'"),
    (
        "vm,egress,2026-11-30T00:00:00Z,-3,GB",
        "quantity: found '-3', expected a number that is not negative",
    ),
    ("vm,egress,2026-11-30T00:00:00Z,3,", "unit: found nothing, expected the unit of egress"),
    ("vm,active,2026-11-30T00:00:00Z", "row: found 3 fields, expected 5"),
    ("vm,active,2026-11-30T00:00:00Z,,,", "row: found 6 fields, expected 5"),
]


@pytest.mark.parametrize(("line", "told"), ROWS, ids=[line for line, _ in ROWS])
def test_a_bad_row_is_told_with_file_line_field_found_and_expected(line: str, told: str):
    with pytest.raises(OuvrageError) as refused:
        usage_from("usage.csv", rows("vm,active,2026-11-30T00:00:00Z,,", line))
    assert refused.value.code == "usage/row"
    assert refused.value.where[0].startswith(f"usage.csv:3   {told}"), refused.value.where


def test_every_bad_row_is_listed_and_counted():
    with pytest.raises(OuvrageError) as refused:
        usage_from("u.csv", rows(*["vm,active,soon,,"] * 30))
    assert len(refused.value.where) == 21
    assert refused.value.where[-1] == "and 10 more"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "usage/columns"),
        ("resource,event,at\n", "usage/columns"),
        (f"{HEAD}\n", "usage/empty"),
        (f'{HEAD}\n"vm,active', "usage/csv"),
        (
            f"{HEAD}\nv,egress,2026-11-30T00:00:00Z,1,GB\nv,egress,2026-11-30T00:00:00Z,1,GB\n",
            "usage/duplicate",
        ),
    ],
)
def test_a_file_that_is_no_usage(text: str, code: str):
    with pytest.raises(OuvrageError) as refused:
        usage_from("u.csv", text)
    assert refused.value.code == code


def test_columns_may_stand_in_another_order():
    usage = usage_from(
        "u.csv", "at,resource,unit,quantity,event\n2026-11-30T00:00:00Z,v,GB,1,egress\n"
    )
    assert usage.rows[0].event == "egress"


def test_what_still_runs_at_the_end_of_the_file_has_no_cost_until_somebody_says_how_far():
    lines = ["vm,active,2026-11-30T00:00:00Z,,"]
    with pytest.raises(OuvrageError) as refused:
        bill("per-second", lines, rate="1/h")
    assert refused.value.code == "usage/open"
    assert bill("per-second", lines, until="2026-11-30T02:00:00Z", rate="1/h").total == 2
    with pytest.raises(OuvrageError) as early:
        bill("per-second", lines, until="2026-11-29T02:00:00Z", rate="1/h")
    assert early.value.code == "usage/until"


@pytest.mark.parametrize(
    ("plan", "lines", "rates", "code"),
    [
        ("per-second", runs(5), {}, "rate/missing"),
        ("per-second", runs(5), {"rate": "1/GB"}, "rate/unit"),
        ("per-second", runs(5), {"rate": "1"}, "rate/unit"),
        ("per-second", runs(5), {"rate": "1/month"}, "rate/unit"),
        ("per-second", runs(5), {"rate": "1/h", "gpu": "1/h"}, "rate/unknown"),
        ("per-second", runs(5), {"rate": "1/GPU-h"}, "rate/unit"),
        ("vast", ["a,egress,2026-11-30T00:00:00Z,5,GB"], {"traffic": "5/TB-h"}, "rate/unit"),
        ("vast", ["a,storage,2026-11-30T00:00:00Z,0,GB"], {"storage": "5/GB"}, "rate/unit"),
        ("runpod", runs(5), {"rate": "1 EUR/h"}, "rate/two-currencies"),
        ("vast", ["a,deposit,2026-11-30T00:00:00Z,5,EUR"], {}, "usage/currency"),
        (
            "lambda",
            ["a,storage,2026-11-30T00:00:00Z,5,GPU", "a,terminated,2026-11-30T01:00:00Z,,"],
            {},
            "usage/unit",
        ),
        (
            "google-cloud",
            runs(5),
            {"gpu": "1/h", "vcpu": "1/h", "memory": "1/GiB-h"},
            "usage/missing-quantity",
        ),
        (
            "runpod",
            ["a,purchased,2026-11-30T00:00:00Z,1.5,month"],
            {"savings-plan": "1/h"},
            "usage/term",
        ),
        (
            "runpod",
            ["a,purchased,2026-11-30T00:00:00Z,1,GB"],
            {"savings-plan": "1/h"},
            "usage/unit",
        ),
    ],
)
def test_rates_and_usage_that_do_not_fit_the_plan(
    plan: str, lines: list[str], rates: dict[str, str], code: str
):
    with pytest.raises(OuvrageError) as refused:
        bill(plan, lines, **rates)
    assert refused.value.code == code
    assert refused.value.hint


def test_two_currencies_in_one_bill_are_refused_and_apart_they_are_not():
    follows = f'[[version]]\nvalid_from = 2026-03-01\ncurrency = "USD"\n[[version.rule]]\nname = "r"\n{GOOD}'
    plan = own(GOOD + follows, version='valid_until = 2026-03-01\ncurrency = "EUR"')
    for start, end in (("2026-02-01", "2026-02-02"), ("2026-03-01", "2026-03-02")):
        lines = [f"vm,active,{start}T00:00:00Z,,", f"vm,terminated,{end}T00:00:00Z,,"]
        assert bill(plan, lines).total == 24
    with pytest.raises(OuvrageError) as refused:
        bill(plan, ["vm,active,2026-02-01T00:00:00Z,,", "vm,terminated,2026-03-02T00:00:00Z,,"])
    assert refused.value.code == "rate/two-currencies"


def test_an_unknown_plan_suggests_its_neighbours():
    with pytest.raises(OuvrageError) as refused:
        load_plan("per-minute")
    assert "per-minute-up" in (refused.value.hint or "")


@pytest.mark.parametrize("name", shipped_names())
def test_every_field_of_a_shipped_plan_has_a_source_and_a_date(name: str):
    plan = load_plan(name)
    assert plan.name == name
    assert not [cell.words for cell in cells(plan) if cell.source is None]
    for source in plan.sources.values():
        assert source.dated
        assert source.read
    used = {cell.source for cell in cells(plan)}
    assert used == set(plan.sources)
    for other in plan.conflicts_with:
        assert name in load_plan(other).conflicts_with
        assert any(cell.confidence == "conflict" for cell in cells(plan))
    text = plan_text(plan)
    for cell in doubtful(plan):
        assert cell.confidence in text


def test_the_providers_that_were_promised_are_there():
    providers = {load_plan(name).provider for name in shipped_names()} - {None}
    assert providers == {
        *("Amazon Web Services", "Google Cloud", "Microsoft Azure", "Lambda", "RunPod", "Vast.ai"),
        *("CoreWeave", "Genesis Cloud", "OVHcloud", "Scaleway"),
    }
    assert sum(load_plan(name).provider is None for name in shipped_names()) == 6


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-30T14:05:09Z", "2026-11-30T14:05:09Z"),
        ("2026-11-30t14:05:09z", "2026-11-30T14:05:09Z"),
        ("2026-11-30 15:05:09+01:00", "2026-11-30T14:05:09Z"),
        ("2026-11-30T14:05:09.5Z", "2026-11-30T14:05:09.500000Z"),
        ("2026-11-30T14:05:09.500000000Z", "2026-11-30T14:05:09.500000Z"),
    ],
)
def test_moments_of_rfc_3339(text: str, same: str):
    assert moment_us(text) == utc_us(same)


def test_lines_are_found_inside_tables_arrays_and_long_texts():
    text = 'a = 1\nb = """\nc = 2\n"""\n[t]\nd = [\n  1,\n]\ne.f = 3\n[[x]]\ng = 1\n[[x.y]]\nh = 2\n[[x]]\ng = 2\n[[x.y]]\nh = 3\n'
    places = located("f.toml", text).places
    found = {path: place.number for path, place in places.items()}
    assert ("c",) not in found
    assert found[("t", "e", "f")] == 9
    assert found[("x", 0, "y", 0, "h")] == 13
    assert found[("x", 1, "y", 0, "h")] == 17


WORDS = st.sampled_from(
    [
        *HEAD.split(","),
        "vm",
        "active",
        "stopped",
        "egress",
        "2026-11-30T00:00:00Z",
        "1",
        "GB",
        "-1",
        "\x00",
        '"',
        "é",
    ]
)
CELLS = st.one_of(WORDS, st.text(max_size=12))
TABLES = st.lists(st.lists(CELLS, max_size=6).map(",".join), max_size=6).map("\n".join)


@settings(max_examples=250, deadline=None)
@given(text=st.one_of(st.text(max_size=200), TABLES, TABLES.map(lambda rest: f"{HEAD}\n{rest}")))
def test_no_usage_file_crashes_and_no_row_is_skipped(text: str):
    try:
        usage = usage_from("u.csv", text)
    except OuvrageError:
        return
    lines = {row.line for row in usage.rows}
    assert len(lines) >= 1


TOML = st.sampled_from(
    ["[[version]]", "[[version.rule]]", "[version.money]", 'name = "x"', 'price = "1/h"', "tiers = [{}]",
     'price = "rate"', 'format = "ouvrage-rate-plan/1"', 'title = "t"', "valid_from = 2026-01-01", "of = [1]",
     "meter = {}", "states = { stopped = 2.5 }", "states = 1", "month = 3", "evidence = 1", "[source]", "[source.a]",
     "override = [{}]", "increment = true", "rule = 1", "version = [1]", "free = -1", 'free = "x y"', "\x00", "a.b = 1"]
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(text=st.one_of(st.text(max_size=100), st.lists(TOML, max_size=12).map("\n".join)))
def test_no_plan_crashes(text: str):
    try:
        plan = plan_from("x.toml", text)
    except OuvrageError as error:
        told = error.lines()
    else:
        told = plan.versions
    assert told


@pytest.mark.parametrize("cut", range(60))
def test_a_good_plan_with_a_line_lost_is_read_or_refused(cut: int):
    good = plan_source()
    lines = good.splitlines()
    lost = "\n".join(line for n, line in enumerate(lines) if n % 60 != cut)
    code = "rate-plan/none"
    try:
        plan_from("x.toml", lost)
    except OuvrageError as error:
        code = error.code
    assert code.startswith("rate-plan/")


def plan_source() -> str:
    from importlib import resources

    return (resources.files("ouvrage") / "plans" / "runpod.toml").read_text("utf-8")


@pytest.mark.parametrize("year", ["0001", "1969", "9900", "9999"])
def test_moments_at_the_ends_of_the_calendar_are_refused(year: str):
    assert moment_us(f"{year}-06-01T00:00:00Z") is None


def test_no_number_is_longer_than_anybody_can_mean():
    for text in ("9" * 5000 + "/h", "9" * 40 + "/h"):
        with pytest.raises(ValueError, match=r"a rate such as 2\.52/h"):
            parse_rate(text)
    with pytest.raises(ValueError, match="an amount and a unit"):
        duration_us("9" * 50 + " h")
