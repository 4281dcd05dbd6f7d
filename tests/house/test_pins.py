"""The pins: exact, hashed, without addresses, and one version of each package everywhere.

Two sets must not differ in a package that both hold, or `make run` and `make test` would run two
different products.
"""

from __future__ import annotations

import re

import pytest

from tests.house.source import ROOT

PINS = ROOT / "requirements"
SETS = ("run", "dev", "lock")
ENTRY = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)$", re.M
)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def _pins(name: str) -> dict[str, tuple[str, str]]:
    text = (PINS / f"{name}.txt").read_text("utf-8")
    return {m["name"]: (m["version"], m["rest"]) for m in ENTRY.finditer(text)}


@pytest.mark.parametrize("name", SETS)
def test_every_pin_is_exact_and_hashed(name: str) -> None:
    text = (PINS / f"{name}.txt").read_text("utf-8")
    starts = re.findall(r"^[A-Za-z0-9].*", text, re.M)
    pins = _pins(name)
    assert len(starts) == len(pins)
    assert not [package for package, (_, rest) in pins.items() if not HASH.search(rest)]


@pytest.mark.parametrize("name", SETS)
def test_no_pin_records_an_address(name: str) -> None:
    for suffix in ("in", "txt"):
        text = (PINS / f"{name}.{suffix}").read_text("utf-8")
        assert "://" not in text
        assert " @ " not in text
        assert "--index" not in text
        assert "--find-links" not in text


def test_the_tests_run_what_the_user_runs() -> None:
    run, dev = _pins("run"), _pins("dev")
    assert {name: run[name][0] for name in run} == {name: dev.get(name, ("",))[0] for name in run}


def test_what_the_package_asks_for_is_pinned() -> None:
    wanted = re.search(
        r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert wanted
    names = re.findall(r'"([A-Za-z0-9_-]+)', wanted[1])
    assert names
    assert not [name for name in names if name not in _pins("run")]
