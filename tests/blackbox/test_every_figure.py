"""Every number that a command prints can be given to ``ouvrage explain``, which finds it again."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.blackbox.home import Home, home_in
from tests.blackbox.spools import price, run_id, spool

NOT_FIGURES = re.compile(
    r"exit_code|signal|units_timed|why\.|host\.|grade_shares\.|command\.|published\.offers"
)
"""What a report copies from a fact as it stands: the host, the exit code, counts of the sample."""

RUNS = [
    ("plain", [1.0, 1.1, 0.9, 1.0, 1.05], "0.30", {}),
    ("fast", [0.7, 0.72, 0.71, 0.7, 0.69], "0.36", {"waiting": 0.1}),
    ("lost", [0.5, 0.5, 0.6], "0.36", {"ended": False}),
    ("failed", [0.5, 0.5], "1.50", {"exit_code": 3}),
    ("unpriced", [2.0, 2.1, 1.9, 2.0], None, {"waiting": 0.9}),
    ("nothing", [], "0.10", {}),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = home_in(tmp_path_factory.mktemp("figures"), "home")
    for number, (label, units, amount, changes) in enumerate(RUNS, 1):
        rate = price(amount) if amount else None
        run = run_id(number)
        home.holds(spool(run, units, label=label, rate=rate, **changes), run)
    return home


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float | str]]:
    """Every number in a report, with its path; money is decimal text."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, f"{path}.{key}" if path else key)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)) or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(value)):
        yield path, value


def printed(home: Home) -> list[tuple[str, float | str]]:
    """(name, value) of every figure of every report and comparison."""
    found = []
    for label, *_ in RUNS:
        report = home.inside("report", label, "--json").json
        head = {key: part for key, part in report.items() if key not in ("run", "code", "label")}
        names = [(f"{report['code']}:{path}", value) for path, value in numbers(head)]
        found += [(f"{name}@{report['as_of']}", value) for name, value in names]
    compared = home.inside("compare", "plain", "fast", "--claim", "clearml-2023", "--json").json[
        "comparison"
    ]
    when = compared["as_of"]
    for path, value in numbers(compared):
        name = f"{compared['figure']}:{path}"
        if path.startswith("published."):
            name = f"clearml-2023:{path.removeprefix('published.')}"
        found.append((f"{name}@{when}", value))
    return [pair for pair in found if not NOT_FIGURES.search(pair[0])]


def test_two_hundred_printed_figures_are_found_again(filled: Home):
    figures = printed(filled)
    assert len(figures) >= 150
    chosen = random.Random(20261130).choices(figures, k=200)
    for name, value in chosen:
        explained = filled.inside("explain", name, "--json").json
        assert explained["figure"] == name
        assert float(explained["value"]) == pytest.approx(float(value), abs=5.1e-7), name
        assert explained["method"]
        assert explained["missing"] == []
        assert _rooted(explained), f"{name} stands on no fact"


def _rooted(explained: dict[str, Any]) -> bool:
    return bool(explained["facts"]) or any(_rooted(part) for part in explained["inputs"])


def test_the_command_finds_them_as_well(filled: Home):
    for name, value in random.Random(7).sample(printed(filled), k=4):
        said = filled("explain", name, "--json")
        assert said.code == 0
        assert float(said.json["value"]) == pytest.approx(float(value), abs=5.1e-7)


def test_a_run_alone_lists_names_that_explain_takes(filled: Home):
    listed = filled.inside("explain", "plain", "--json").json["figures"]
    assert len(listed) > 30
    for figure in listed:
        explained = filled.inside("explain", figure["name"], "--json").json
        assert (explained["value"], explained["grade"]) == (figure["value"], figure["grade"])


def test_figures_of_pages_are_named_so_that_explain_finds_them(filled: Home):
    for verb in (["report", "plain"], ["compare", "plain", "fast"]):
        filled.inside(*verb, "--html", "page.html")
        page = (filled.path.parent / "page.html").read_text()
        names = set(re.findall(r'title="ouvrage explain ([^"]+)"', page))
        assert len(names) >= 5
        for name in names:
            assert filled.inside("explain", name, "--json").code == 0
