"""What a power limit saves a unit of work: the two settings that are compared, and the words."""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.pricing.limit_saving import Saving, saving_of, saving_words
from ouvrage.pricing.tuning import Block, Setting, Terms, Tuning


def setting(limit: int, seconds: str, joules: str | None, count: int = 6) -> Setting:
    # Six observations a side that lie close together: enough for 95 % (Mann-Whitney needs four).
    blocks = tuple(
        Block(
            units=1, seconds=Fraction(seconds) * (1000 + n) / 1000,
            joules=None if joules is None else Fraction(joules) * (1000 + n) / 1000, covered=Fraction(1),
        )
        for n in range(count)
    )  # fmt: skip
    times = tuple(block.seconds for block in blocks)
    return Setting(
        limit_w=Fraction(limit),
        runs=(),
        blocks=blocks,
        times=times,
        grade=Grade.MEASURED,
        method=None,
    )


def tuning(*settings: Setting) -> Tuning:
    terms = Terms(electricity=None, rate=None, price=None)
    return Tuning(unit="epoch", settings=settings, left_out=(), terms=terms)


def found(tried: Tuning, limit: int, before: int) -> Saving | None:
    return saving_of(tried, Fraction(limit), Fraction(before))


def test_both_limits_were_tried() -> None:
    saving = found(tuning(setting(300, "1.4", "420"), setting(600, "1", "600")), 300, 600)
    assert saving is not None
    assert (saving.joules, saving.seconds) == (Fraction(7, 10), Fraction(14, 10))
    assert saving_words(saving) == (
        "a unit (epoch) took 30.0 % less energy (29.8 to 30.2 % at 95 %) and 40.0 % more time (39.6 to 40.4 % at 95 %)"
        " under 300 W than under 600 W ●"
    )


def test_the_highest_that_was_tried_stands_in_for_a_limit_that_was_not() -> None:
    tried = tuning(setting(200, "2", "400"), setting(300, "1.4", "420"), setting(600, "1", "600"))
    saving = found(tried, 200, 650)
    assert saving is not None
    assert saving.before_w == 600
    assert found(tried, 250, 650) is None  # the limit itself was never tried
    assert found(tried, 600, 650) is None  # nothing to compare it with
    assert found(tuning(), 300, 600) is None


def test_energy_that_is_not_known_and_units_that_are_too_few_are_said() -> None:
    saving = found(tuning(setting(300, "1.4", None), setting(600, "1", "600")), 300, 600)
    assert saving is not None
    assert saving_words(saving).endswith(
        "under 300 W than under 600 W ●; of its energy nothing is known"
    )
    saving = found(tuning(setting(300, "1", "420", 1), setting(600, "1", "600", 1)), 300, 600)
    assert saving is not None
    assert "30.0 % less energy (too few units to say how surely)" in saving_words(saving)
    same = found(tuning(setting(300, "1", "599"), setting(600, "1", "600")), 300, 600)
    assert same is not None
    assert "(not told apart at 95 %)" in saving_words(same)
