"""Digits stop where the data stop, and nothing foreign reaches a terminal."""

from __future__ import annotations

import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.pricing.words import (
    bar,
    counted,
    duration,
    give_or_take,
    mark,
    percent,
    ranged,
    rounded,
    shortened,
)  # fmt: skip

F = Fraction


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        ("4.41327", "4.35111", "4.47222", ("4.41", "4.35–4.47")),
        ("0.000367772", "0.000361", "0.000375", ("0.000368", "0.000361–0.000375")),
        ("0.0096", "0.0094", "0.0099", ("0.0096", "0.0094–0.0099")),
        ("127.2", "126.6", "127.8", ("127.2", "126.6–127.8")),
        ("12345", "12000", "13000", ("12345", "12000–13000")),
        # a wide range still leaves two digits, a narrow one no more than six
        ("4.4", "1", "9", ("4.4", "1.0–9.0")),
        ("4.413271234", "4.413271233", "4.413271235", ("4.41327", "4.41327–4.41327")),
        ("4.41327", None, None, ("4.41", "")),
        ("4", "4", "4", ("4.00", "4.00–4.00")),
        ("0", None, None, ("0.00", "")),
    ],
)
def test_ranges(value: str, low: str | None, high: str | None, shown: tuple[str, str]) -> None:
    edges = (None if low is None else F(low), None if high is None else F(high))
    assert ranged(F(value), *edges, plain=False) == shown


def test_plain_words() -> None:
    assert ranged(F("4.4"), F("4.3"), F("4.6"), plain=True) == ("4.4", "4.3 to 4.6")
    assert give_or_take(F("4.4"), F("4.3"), F("4.6"), plain=True) == ("4.4", " +- 0.2")
    assert give_or_take(F("4.4"), F("4.3"), F("4.6"), plain=False) == ("4.4", " ± 0.2")
    assert mark(Grade.MEASURED, plain=True) == " (measured)"
    assert mark(Grade.ASSUMED, plain=False) == " ?"
    assert mark(None, plain=True) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.0035", "0.00350"), ("4.4", "4.40"), ("999.6", "1000"), ("12345", "12345"), ("0", "0.00")],
)
def test_three_digits(value: str, text: str) -> None:
    assert rounded(F(value)) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0.00 s"),
        (27_123_456, "27.1 s"),
        (303_000_000, "5 min 03 s"),
        (21_000_000_000, "5 h 50 min"),
    ],
)
def test_durations(us: int, text: str) -> None:
    assert duration(us) == text


def test_shares_and_counts() -> None:
    assert [percent(F(share)) for share in ("0", "0.001", "0.384", "1")] == [
        "0 %", "<1 %", "38 %", "100 %",
    ]  # fmt: skip
    assert counted(1, "epoch") == "1 epoch"
    assert counted(6, "epoch") == "6 epochs"
    assert counted(2, "batch") == "2 batches"


def test_bars_fill_their_width() -> None:
    assert bar([("#", F("0.61")), ("-", F("0.38")), ("?", F("0.01"))]) == "######----"
    assert bar([("#", F(0))]) == ""


@given(st.lists(st.fractions(0, 1), min_size=1, max_size=8))
def test_any_bar_fills_its_width(shares: list[Fraction]) -> None:
    assert len(bar([("#", share) for share in shares])) == (10 if any(shares) else 0)


@given(st.text())
def test_no_control_character_is_sent(text: str) -> None:
    shown = safe(text)
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in shown)
    assert len(shortened(text, 12)) <= 12


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202eevil", "\\u202eevil"),
        ("é 終", "é 終"),
        ("\x9b", "\\u009b"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_is_shown_instead(text: str, shown: str) -> None:
    assert safe(text) == shown
