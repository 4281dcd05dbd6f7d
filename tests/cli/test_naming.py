"""A run can be called by id, code, label or ``last``, and every refusal helps to name one."""

from __future__ import annotations

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of, uuid7
from ouvrage.cli.naming import RunName, run_called


def named(started_us: int, bits: int, label: str | None = None) -> RunName:
    return RunName(run=uuid7(started_us, bits), label=label, started_us=started_us)


OLD = named(1_000_000, 0xABCDE << 42, "standard")
NEW = named(2_000_000, 0x12345 << 42, "standard")
NAMES = [OLD, NEW]


@pytest.mark.parametrize("write", [str, str.upper, lambda run: f"{run[:8]}-{run[8:12]}-{run[12:]}"])
def test_full_id(write):
    assert run_called(write(OLD.run), NAMES) == OLD.run


@pytest.mark.parametrize("length", [4, 5, 8, 12])
def test_code_in_any_case_and_length(length: int):
    code = code_of(OLD.run, length)
    assert run_called(code, NAMES) == OLD.run
    assert run_called(code.lower(), NAMES) == OLD.run


def test_a_label_names_its_latest_run():
    assert run_called("standard", NAMES) == NEW.run
    assert run_called("standard", NAMES[::-1]) == NEW.run


def test_last_is_the_latest_whatever_the_order():
    assert run_called("last", NAMES) == run_called("last", NAMES[::-1]) == NEW.run


def test_an_ambiguous_code_is_answered_with_codes_that_settle_it():
    twin = named(3_000_000, (0xABCDE << 42) | 1 << 30)
    typed = next(
        code_of(OLD.run, n) for n in range(12, 3, -1) if code_of(twin.run, n) == code_of(OLD.run, n)
    )
    with pytest.raises(OuvrageError) as refused:
        run_called(typed, [OLD, twin])
    assert refused.value.code == "run/ambiguous"
    offered = [line.split()[0] for line in refused.value.where]
    assert [run_called(code, [OLD, twin]) for code in offered] == [twin.run, OLD.run]


@pytest.mark.parametrize("text", ["", "R7K", "nothing", "0" * 32, "last ", "\x1b[31m"])
def test_an_unknown_name_lists_the_latest(text: str):
    with pytest.raises(OuvrageError) as refused:
        run_called(text, NAMES)
    assert refused.value.code == "run/unknown"
    assert refused.value.where[0].startswith(code_of(NEW.run))
    assert refused.value.hint


def test_without_runs_the_refusal_teaches_the_first_one():
    with pytest.raises(OuvrageError) as refused:
        run_called("last", [])
    assert "ouvrage run --price" in (refused.value.hint or "")
