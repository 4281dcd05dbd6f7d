"""A function fits on a screen: hard limits, and a ratchet that only tightens.

The limits are for every Python file of the repository. The ratchet holds the product's own code
(``src/``) to what it has reached: ``ratchet.json`` is the worst that is allowed, and a change that
does better may lower it, never raise it.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from tests.house.source import functions, modules

FUNCTION_LINES = 70
MODULE_LINES = 600
LONG = 30
RATCHET = json.loads(Path(__file__).with_name("ratchet.json").read_text("utf-8"))


def test_no_function_is_longer_than_a_screen() -> None:
    long = [f"{f.where}: {f.lines} lines" for f in functions() if f.lines > FUNCTION_LINES]
    assert not long


def test_no_module_is_longer_than_can_be_held_in_mind() -> None:
    sizes = [(module.name, module.text.count("\n")) for module in modules()]
    assert not [f"{name}: {lines} lines" for name, lines in sizes if lines > MODULE_LINES]


def test_the_ratchet_is_drawn_tight() -> None:
    lengths = [f.lines for f in functions("src")]
    share = sum(1 for n in lengths if n > LONG) / len(lengths)
    assert RATCHET["median_lines_max"] <= 10
    slack = RATCHET["share_over_30_lines_max"] - share
    assert slack < 0.01, f"lower share_over_30_lines_max in ratchet.json to {share + 0.005:.3f}"


def test_functions_of_the_product_stay_as_short_as_they_have_become() -> None:
    lengths = [f.lines for f in functions("src")]
    assert statistics.median(lengths) <= RATCHET["median_lines_max"]
    share = sum(1 for n in lengths if n > LONG) / len(lengths)
    worst = sorted((f for f in functions("src")), key=lambda f: -f.lines)[:5]
    assert share <= RATCHET["share_over_30_lines_max"], (
        f"{share:.4f} of all functions are longer than {LONG} lines; split the newest of: "
        + ", ".join(f"{f.where} ({f.lines})" for f in worst)
    )
