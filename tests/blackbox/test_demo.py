"""From nothing to a simulated owner's year, its statement, its bridge, its decision, and nothing else touched."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.blackbox.home import Home, home_in


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The demonstration's home, made from a person's own, which stays empty."""
    place = tmp_path_factory.mktemp("demo")
    own = home_in(place, "own")
    done = own.inside("demo", "--state", str(place / "made"))
    assert done.code == 0, done.err
    assert re.fullmatch(
        r"A simulated year of an owner with 4 GPUs is ready in \S+: \d{4} new\.", done.first
    )
    assert not own.path.exists()
    assert f"export OUVRAGE_HOME={place / 'made'}" in done.out
    return home_in(place, "made")


def test_the_same_again_changes_nothing_and_nobodys_ledger_is_overwritten(made: Home):
    facts = len(made.facts())
    own = home_in(made.path.parent, "own")
    again = own.inside("demo", "--state", str(made.path), "--json").json
    assert (again["new"], again["same"], again["grade"]) == (0, facts, "simulated")
    assert len(made.facts()) == facts
    other = own.inside("demo", "--state", str(made.path), "--seed", "7")
    assert (other.code, "demo/seed" in other.err) == (2, True)
    refused = made.inside("demo", "--state", str(made.path))
    assert (refused.code, "demo/own-home" in refused.err) == (2, True)
    real = home_in(made.path.parent, "real")
    assert real.inside("init", "--electricity", "0.3/kWh").code == 0
    held = real.facts()
    refused = own.inside("demo", "--state", str(real.path))
    assert (refused.code, "demo/not-empty" in refused.err) == (2, True)
    assert real.facts() == held


def test_the_statement_is_marked_adds_up_and_holds_its_laws(made: Home):
    done = made.inside("books", "pnl", "--year", "2025")
    assert re.fullmatch(
        r"demo-1 earned \d+\.\d\d EUR ◌ in 2025, 0\.\d+ per hour owned; it breaks even at \d+ % and was sold \d+ %\.",
        done.first,
    ), done.first
    assert re.search(r"35040\.000 owned = .* 576\.0 down   \(adds up\)", done.out)
    statement = made.inside("books", "pnl", "--by", "gpu", "--year", "2025", "--json").json
    grades = {
        figure["grade"]
        for row in statement["rows"]
        for path, figure in row["figures"].items()
        if path.startswith(("revenue.gpu", "margin")) and figure["value"] not in (None, "0")
    }
    assert grades == {"simulated"}
    broken = {row["name"]: row["figures"]["hours.down"]["value"] for row in statement["rows"]}
    assert {name: hours for name, hours in broken.items() if hours != "0"} == {"demo-1-gpu2": "576"}
    assert "nothing broken" in made.inside("verify").first


def test_the_summer_is_dear_and_the_tenant_leaves(made: Home):
    def month(name: str) -> dict[str, float]:
        figures = made.inside("books", "pnl", "--month", name, "--json").json["total"]["figures"]
        return {path: float(figure["value"] or 0) for path, figure in figures.items()}

    may, july, november = (month(f"2025-{number}") for number in ("05", "07", "11"))
    per_kwh = [each["cost.electricity"] / each["energy"] for each in (may, july, november)]
    assert per_kwh == pytest.approx([0.21, 0.34, 0.21], rel=0.02)
    assert november["utilisation"] < may["utilisation"] - 0.15
    tenants = [
        {row["name"] for row in made.inside("books", "pnl", "--by", "tenant", "--month", name, "--json").json["rows"]}
        for name in ("2025-05", "2025-11")
    ]  # fmt: skip
    assert ["studio-m" in each for each in tenants] == [True, False]


def test_decisions_through_the_year(made: Home):
    early = made.inside("plan", "decide", "--node", "demo-1", "--until", "2025-01-19")
    assert re.match(
        r"Not yet: 19 days of record, 30 needed\. So far it points to [A-Z]+\.", early.first
    )
    assert "Ask again on 30 January 2025" in early.out
    none = made.inside("plan", "decide", "--until", "2025-01-08")
    assert none.first == "Not yet: 8 days of record, 30 needed."
    end = made.inside("plan", "decide", "--node", "demo-1")
    assert re.match(r"Hold: demo-1 leaves \d\S* EUR ◌ \(\S+–\S+\) a day after tax", end.first), (
        end.first
    )
    for line in (
        r"over +90 days of record from 2025-10-03 up to 2026-01-01",
        r"sold \d+ % \(\d+–\d+\) against a break-even of \d+ %",
        r"would change it +price below 0\.\d+ EUR/h \(\w+\)",
        r"channels +own 0\.\d+ EUR per hour taken .*paid after 34 days",
        r"simulated: these days are made up, and decide nothing about a real machine",
        r"Ask again on 30 January 2026",
    ):
        assert re.search(line, end.out), (line, end.out)
    (model,) = {
        each["name"]
        for each in made.inside(
            "books", "pnl", "--by", "class", "--month", "2025-11", "--json"
        ).json["rows"]
    }
    of_class = made.inside("plan", "decide", "--class", model.lower())
    assert of_class.first == end.first.replace("demo-1", model)
    assert of_class.out.splitlines()[-1] == (
        f"Ask again on 30 January 2026      Every figure: ouvrage plan decide --class {model} --json"
    )
    plain = made.inside("plan", "decide", "--node", "demo-1", "--plain")
    assert not set(plain.out) & set("●◐○◌█▓▒–−"), plain.out
    told = made.inside("plan", "decide", "--node", "demo-1", "--json").json
    assert (told["action"], told["settled"], told["grade"]) == ("hold", True, "simulated")
    use = told["figures"]["utilisation"]
    assert use["low"] < use["value"] < use["high"]


def test_an_owners_rules_count_before_the_shipped_ones(made: Home, tmp_path: Path):
    rules = tmp_path / "decide.toml"
    rules.write_text(
        "[decide]\ngrow_payback_months = 60\nleast_gain = 0.01\ngrow_above_even = 0.02\n"
    )
    told = made.inside("plan", "decide", "--node", "demo-1", "--rules", str(rules), "--json").json
    assert told["action"] == "grow"
    assert told["rules"]["grow_payback_months"] == 60
    listed = made.inside("plan", "rules", "--rules", str(rules))
    assert listed.first == "16 rules, 3 of them your own."
    rules.write_text("[decide]\ngrow_payback = 60\n")
    refused = made.inside("plan", "decide", "--rules", str(rules))
    assert (refused.code, "decide/rule" in refused.err) == (2, True)
    rules.write_text("grow = 60\n")
    assert "decide/form" in made.inside("plan", "decide", "--rules", str(rules)).err
    assert "decide/node" in made.inside("plan", "decide", "--node", "nobody").err
    assert "decide/class" in made.inside("plan", "decide", "--class", "none such").err


def test_an_empty_home_says_what_to_do(ouvrage: Home):
    done = ouvrage.inside("plan", "decide")
    assert (done.code, "books/none" in done.err) == (2, True)
    ouvrage.inside("init", "--node", "n1", "--gpus", "1", "--since", "2026-01-01")
    done = ouvrage.inside("plan", "decide")
    assert (done.code, "decide/none" in done.err) == (2, True)


PAGE = '<html><meta name="generator" content="Ouvrage"><main>\n<footer>end</footer></main></html>'


def test_the_year_on_one_screen_and_its_bridge_in_a_page(made: Home, tmp_path: Path):
    own = home_in(tmp_path, "own")
    page = tmp_path / "report.html"
    page.write_text(PAGE)
    done = own.inside("demo", "--state", str(made.path), "--show", "--into", str(page))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("The owner's half, on a simulated year (◌ marks what is made up)")
    bars = {line.split()[0]: line for line in lines if "█" in line or "▒" in line}
    amounts = [
        float(match[1])
        for line in lines
        if (match := re.search(r"[█▒]+ +(-?\d+\.\d\d) EUR ◌$", line))
    ]
    assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=0.06)
    assert bars["revenue"].count("█") == 40
    assert sum(line.startswith("Hold: demo-1") for line in lines) == 1
    written = page.read_text()
    (drawn,) = re.findall(r"<svg .*?</svg>", written, re.S)
    svg = ET.fromstring(drawn)
    words = {each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"revenue", "margin", "power", "depreciation"} <= words
    assert "<script" not in written
    assert "simulated" in written
    page.write_text("<html></html>")
    refused = own.inside("demo", "--state", str(made.path), "--show", "--into", str(page))
    assert (refused.code, "page/not-ours" in refused.err) == (2, True)


def test_its_figures_lead_back_to_simulated_facts(made: Home):
    told = made.inside("explain", "demo-1/2025-11:margin.net")
    assert told.code == 0, told.err
    assert "◌" in told.out.splitlines()[1]
    assert {fact[9] for fact in made.facts()} == {"simulated"}
