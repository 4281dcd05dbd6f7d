"""What ``ouvrage run`` refuses: told clearly, exit code 2, nothing written."""

from __future__ import annotations

import pytest

from tests.support.meter import Meter

REFUSED = [
    (["run"], "run/no-separator"),
    (["run", "python", "train.py"], "run/no-separator"),
    (["run", "--"], "run/no-command"),
    (["run", "--price", "0.30", "--", "true"], "price/no-unit"),
    (["run", "--price", "-1/h", "--", "true"], "price/negative"),
    (["run", "--price=-1/h", "--", "true"], "price/negative"),
    (["run", "--price", "cheap", "--", "true"], "price/unreadable"),
    (["run", "--price", "1/parsec", "--", "true"], "price/unknown-unit"),
    (["run", "--price", "$1/h", "--currency", "EUR", "--", "true"], "price/two-currencies"),
    (["run", "--price", "1/h", "--currency", "euro", "--", "true"], "price/currency"),
    (["run", "--currency", "EUR", "--", "true"], "run/currency-alone"),
    (["run", "--unit-regex", "(", "--", "true"], "unit/regex"),
    (["run", "--unit", " ", "--", "true"], "run/unit"),
    (["run", "--label", "a\nb", "--", "true"], "run/label"),
    (["run", "--report", "", "--", "true"], "run/report"),
    (["run", "--lab", "x", "--", "true"], "run/usage"),
    (["run", "--label", "--", "true"], "run/usage"),
    (["run", "stray", "--", "true"], "run/usage"),
]


@pytest.mark.parametrize(("arguments", "code"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_refusals(meter: Meter, arguments: list[str], code: str) -> None:
    done = meter.ouvrage(*arguments)
    assert done.returncode == 2
    assert f"error[{code}]: " in done.stderr.decode()
    assert "hint: " in done.stderr.decode()
    assert done.stdout == b""
    assert not meter.home.exists()


def test_help_explains_and_ends_well(meter: Meter) -> None:
    done = meter.ouvrage("run", "--help")
    assert done.returncode == 0
    assert b"--unit-regex" in done.stdout
    assert not meter.home.exists()


def test_what_stands_after_the_separator_is_the_commands_own(meter: Meter) -> None:
    assert meter.run("echo", "--price", "--", "--help").stdout == b"--price -- --help\n"
