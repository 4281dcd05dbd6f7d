"""What a node's record comes to: its time, its credit, its blame and how it compares; and what its owner turned on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from ouvrage.adapters.audit_tables import need_table
from ouvrage.adapters.health_owner import OwnerFile, owner_in
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.care_words import between, first_line, health_words, percent
from ouvrage.health.account import account_of, account_plain, marks_of, share_text
from ouvrage.health.availability import Tier
from ouvrage.health.glance import standings_of
from ouvrage.health.ladder import AUTOMATIC
from ouvrage.health.owner import Owner
from ouvrage.health.record import BROKEN, record_of
from ouvrage.model.health import JobBlamed
from ouvrage.model.machines import FenceSet
from tests.health.fleets import HOUR, MINUTE, NOON, Fleet
from tests.health.rules import BOUNDS
from tests.support.proofs import certificate, proof

DAY = 24 * HOUR
PROMISE = Owner(
    promise=Fraction(995, 1000),
    tiers=(
        Tier(below=Fraction(995, 1000), percent=Fraction(10)),
        Tier(below=Fraction(95, 100), percent=Fraction(30)),
    ),
)


def repaired(fleet: Fleet, down_us: int) -> None:
    """One GPU broken now, found well after so long."""
    fleet.verdict()
    fleet.look()
    fleet.climb()
    fleet.look(down_us - MINUTE)
    fleet.ok()
    fleet.look(MINUTE)
    assert fleet.state() == "healthy"


@pytest.fixture
def fleet() -> Fleet:
    made = Fleet(turned_on=frozenset(AUTOMATIC))
    made.node()
    made.ok(device=None)
    made.look()
    return made


def told(fleet: Fleet, to_us: int, owner: Owner = PROMISE, from_us: int = NOON):
    return account_plain(account_of(fleet.record, "n1", from_us, to_us, owner, BOUNDS))


def test_a_sick_gpu_is_down_its_neighbour_is_not(fleet: Fleet) -> None:
    fleet.now = NOON + DAY
    repaired(fleet, 10 * MINUTE)
    whole = 25 * HOUR
    account = told(fleet, NOON + whole)
    sick, well = account["parts"]
    assert (sick["down_us"], well["down_us"]) == (10 * MINUTE, 0)
    assert sick["up_us"] + sick["down_us"] == whole
    assert (sick["faults"], sick["to_repair_us"]) == (1, 10 * MINUTE)
    assert sick["between_faults_us"] == whole - 10 * MINUTE
    assert sick["least"] == share_text(Fraction(1490, 1500)) == "0.993333"
    assert sick["runpod"] == "1", "ten minutes are forgiven"
    assert (sick["credit"]["percent"], well["credit"]["percent"]) == ("10", "0")
    assert len(sick["credit"]["evidence"]) == 2, "the moves in which time passed"
    assert account["epoch"] == len(account["moves"])


def test_what_was_before_it_was_known_is_no_time_of_its_own(fleet: Fleet) -> None:
    account = told(fleet, NOON + DAY, from_us=NOON - 30 * DAY)
    assert account["from_us"] == NOON
    assert account["parts"][0]["unknown_us"] == 0


def test_silence_lies_between(fleet: Fleet) -> None:
    fleet.silent = {"n1": 100_000_000}
    fleet.look(12 * HOUR)
    fleet.silent = {}
    fleet.look(4 * MINUTE)
    part = told(fleet, NOON + DAY)["parts"][0]
    assert part["unknown_us"] == 4 * MINUTE
    assert (part["least"], part["most"]) == ("0.997222", "1")
    assert (part["credit"]["percent"], part["credit"]["at_most"]) == ("0", "0")


def test_a_node_that_fails_much_more_often_than_the_others_is_a_lemon() -> None:
    fleet = Fleet(turned_on=frozenset(AUTOMATIC))
    for n in range(1, 11):
        fleet.node(f"n{n}", gpus=1)
    for _ in range(6):
        fleet.now += 8 * DAY
        repaired(fleet, 10 * MINUTE)
    account = told(fleet, fleet.now + DAY)
    assert account["score"]["lemon"]
    assert account["parts"][0]["score"]["lemon"]
    other = account_plain(account_of(fleet.record, "n2", NOON, fleet.now, Owner(), BOUNDS))
    assert not other["score"]["lemon"]
    assert (account["spares"]["assumed"], account["spares"]["gpus"]) == (False, 10)


def marked(fleet: Fleet, sort: str, after_us: int = 0) -> list[tuple[str, ...]]:
    """The GPUs that something of a sort speaks against, once for each time."""
    return [each[1] for each in marks_of(fleet.record, fleet.now + after_us) if each[3] == sort]


def test_a_place_that_could_not_be_cleaned_speaks_against_it_once_for_each_attempt(
    fleet: Fleet,
) -> None:
    fences = [
        FenceSet(node="n1", device=device, holder="scrub", held=True, why="memory is held", by="a" * 32)
        for device in ("n1-g0", "n1-g1")
    ]  # fmt: skip
    for fence in fences:
        fleet.put(fence)
    assert marked(fleet, "scrub") == [("n1-g0", "n1-g1")]
    fleet.put(replace(fences[0], held=False))
    fleet.put(replace(fences[0], by="b" * 32))
    fleet.put(FenceSet(node="n1", device=None, holder="operator", held=True, why="fans", by="sam"))
    assert marked(fleet, "scrub") == [("n1-g0", "n1-g1"), ("n1-g0",)]
    fleet.now += DAY
    account = told(fleet, fleet.now)
    assert float(account["score"]["per_1000_days"]) == pytest.approx(500, rel=0.02)
    rates = [float(part["score"]["per_1000_days"]) for part in account["parts"]]
    assert rates == [pytest.approx(500, rel=0.02), pytest.approx(250, rel=0.02)]


def test_a_qualification_speaks_against_it_where_something_is_broken_alone(fleet: Fleet) -> None:
    small, untried = proof(False, code="memory_low"), proof(None, code="disk_wrong")
    fleet.put(certificate("n1", passed=False, proofs=(small, untried)))
    assert marked(fleet, "qualification") == []
    wrong = proof(False, code="memory_wrong")
    fleet.put(certificate("n1", passed=False, certificate="2" * 32, proofs=(small, wrong)))
    assert marked(fleet, "qualification") == [()]
    assert {test.code for test in need_table().tests.values()} >= BROKEN


def test_a_repair_speaks_against_it_by_its_whole_days_and_waiting_for_hands_does_not(
    fleet: Fleet,
) -> None:
    fleet.verdict()
    fleet.look()
    counts = [len(marked(fleet, "down_day", hours * HOUR)) for hours in (23, 24, 47, 48, 72)]
    assert counts == [0, 1, 1, 2, 3]
    fleet.now += 30 * HOUR
    fleet.ok()
    fleet.climb()
    fleet.look(MINUTE)
    fleet.ok()
    fleet.look(MINUTE)
    assert fleet.state() == "healthy"
    assert len(marked(fleet, "down_day", 30 * DAY)) == 1, "it is over"
    hands = Fleet()
    hands.node()
    hands.verdict()
    hands.look()
    assert hands.state() == "awaiting_hands"
    assert marked(hands, "down_day", 30 * DAY) == []


def test_the_record_is_the_same_from_the_facts_alone(fleet: Fleet) -> None:
    repaired(fleet, 10 * MINUTE)
    fleet.put(
        JobBlamed(
            job="j" * 32, attempt="a" * 32, node="n1", cause="hardware", percent=90,
            evidence=("x",), why="a fault of the machine", billed=True,
        )
    )  # fmt: skip
    again = record_of(reversed(fleet.facts))
    plain = account_plain(account_of(again, "n1", NOON, NOON + DAY, PROMISE, BOUNDS))
    assert plain == told(fleet, NOON + DAY)
    assert standings_of(again, "n1").worst == "healthy"


def test_its_words_answer_first_and_end_with_the_way_to_more() -> None:
    fleet = Fleet()
    fleet.node()
    fleet.verdict()
    fleet.look(MINUTE)
    plain = told(fleet, NOON + HOUR)
    words = health_words(plain, plain=True).splitlines()
    assert words[0] == first_line(plain)
    assert words[0].startswith("n1 n1-g0 is awaiting hands since 2026-11-11T12:01:00Z")
    assert words[0].endswith("; held back by automation")
    assert "next: gpu reset, by a person (gpu_reset is not turned on)" in words[2]
    assert words[-1].startswith("Walk through it: ouvrage node repair n1")
    assert any("promised: 99.500 %" in line for line in words)
    assert any("would have been climbed" in line for line in words)


def test_a_share_is_cut_and_never_rounded_up() -> None:
    assert percent(share_text(Fraction(999_999, 1_000_000))) == "99.999 %"
    assert percent("1") == "100.000 %"
    assert percent(None) == "–"
    assert between("0.99", "1") == "99.000 % to 100.000 %"


def put(where: Path, text: str) -> Path:
    (where / "health.toml").write_text(text)
    return where


def test_without_a_file_nothing_is_turned_on(tmp_path: Path) -> None:
    assert owner_in(tmp_path) == Owner()
    assert Owner().turned_on == frozenset()


def test_what_the_owner_turned_on_and_promised(tmp_path: Path) -> None:
    text = (
        'turned_on = ["reboot", "restart_job"]\nobserved = ["vast-1"]\npromise_percent = 99.5\n'
        "days_away = 3\nhardware_share_percent = 20\n"
        "[[credit]]\nbelow_percent = 99.5\npercent = 10\n"
    )
    found = owner_in(put(tmp_path, text))
    assert found.turned_on == {"reboot", "restart_job"}
    assert found.observed == {"vast-1"}
    assert found.tiers == (Tier(below=Fraction(995, 1000), percent=Fraction(10)),)
    assert (found.promise, found.days_away, found.hardware_share) == (
        Fraction(995, 1000), 3, Fraction(1, 5)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('turned_on = ["replace"]', "'replace' cannot be turned on"),
        ('turned_on = "reboot"', "turned_on is a list of texts"),
        ('turn_on = ["reboot"]', "turn_on is not known"),
        ("promise_percent = 101", "out of bounds"),
        ("promise_percent = true", "is a number"),
        ("days_away = -1", "out of bounds"),
        ("credit = 3", "credit is a list of tables"),
        ("[[credit]]\npercent = 3", "a credit has below_percent and percent"),
        ("turned_on = [", "health.toml"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(OuvrageError) as found:
        owner_in(put(tmp_path, text))
    assert found.value.code == "health/owner"
    assert words in f"{found.value.message} {found.value.where}"


def test_a_file_that_became_no_good_turns_everything_off_and_says_why(tmp_path: Path) -> None:
    file = OwnerFile(put(tmp_path, 'turned_on = ["reboot"]'))
    assert file.read().turned_on == {"reboot"}
    put(tmp_path, 'turned_on = ["rebot"]')
    assert file.read().turned_on == frozenset()
    assert "rebot" in (file.fault or "")
    put(tmp_path, 'turned_on = ["gpu_reset"]')
    assert file.read().turned_on == {"gpu_reset"}
    (tmp_path / "health.toml").unlink()
    assert file.read() == Owner()
