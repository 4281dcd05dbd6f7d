"""Needs by class, proofs, certificates that expire or are voided, and the level of service that a record carries."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.adapters.audit_tables import need_table, need_table_in
from ouvrage.base.errors import OuvrageError
from ouvrage.health.certificates import part_ids, standing, valid_us
from ouvrage.health.needs import passed, proofs, required
from ouvrage.health.record import Moved
from ouvrage.health.service_level import HOUR_US, Promise, promise
from ouvrage.model.health import Part, StateMove
from ouvrage.model.hosts import HostReading, reading
from tests.support.proofs import AT_US, DAY_US, certificate, proof

TABLE = need_table()


def _gpus(count: int, gib: int) -> list[HostReading]:
    found = [reading("gpu.count", "", "said", count, count)]
    return [*found, *(reading("gpu.memory", "GiB", "said", gib, gib, part=f"GPU {n}") for n in range(count))]  # fmt: skip


@pytest.mark.parametrize(
    ("work_class", "check", "gpus", "wanted"),
    [
        ("fine-tuning", "net.down", (4, 24), "250"),  # Vast's self-test: 500 x 96 / 192
        ("fine-tuning", "net.down", (1, 24), "100"),
        ("fine-tuning", "net.down", (8, 80), "500"),
        ("fine-tuning", "memory.limit", (8, 24), "182.4"),  # 95 % of 192 GiB
        ("inference", "memory.limit", (8, 400), "1953"),  # no more than 2,000,000 MiB
        ("foundation-training", "memory.limit", (8, 80), "1280"),
        ("foundation-training", "cpu.allowed", (8, 80), "34"),  # RunPod: 4 for each GPU and 2
        ("inference", "cpu.allowed", (4, 24), "8"),  # Vast: 2 for each GPU
        ("image", "disk.size", (2, 12), "256"),
        ("foundation-training", "gpu.count", (8, 80), "8"),  # the later row counts
        ("fine-tuning", "gpu.count", (0, 0), "1"),
        ("batch", "cpu.allowed", (0, 0), "1"),
    ],
)
def test_what_a_class_needs_of_a_machine(
    work_class: str, check: str, gpus: tuple[int, int], wanted: str
):
    found = {each.id: each for each in proofs(TABLE, work_class, _gpus(*gpus))}
    assert round(Fraction(found[check].required), 3) == Fraction(wanted)


def test_the_table_holds_seven_classes_and_codes_that_stay():
    assert set(TABLE.classes) == {
        "foundation-training", "fine-tuning", "inference", "image", "video", "rendering", "batch",
    }  # fmt: skip
    codes = [each.code for each in TABLE.tests.values()]
    assert len(set(codes)) == len(codes) >= 22
    assert all(each.remedy for each in TABLE.tests.values())
    assert all(need.source for need in TABLE.needs)
    assert {"gpu_missing", "memory_wrong", "cpu_wrong_results", "disk_wrong", "load_died"} <= set(codes)  # fmt: skip


def test_several_parts_are_as_good_as_the_worst():
    read = [*_gpus(2, 24)[:1], *(reading("gpu.memory", "GiB", "said", n, n, part=f"GPU {n}") for n in (24, 8))]  # fmt: skip
    (found,) = (e for e in proofs(TABLE, "fine-tuning", read) if e.id == "gpu.memory")
    assert (found.actual, found.passed) == ("8", False)
    assert found.how.startswith("GPU 8: ")
    read = [reading("gpu.temperature", "°C", "most", t, t, part=f"GPU {t}") for t in (70, 90)]
    (found,) = (e for e in proofs(TABLE, "image", read) if e.id == "gpu.temperature")
    assert (found.actual, found.passed) == ("90", False)


@pytest.mark.parametrize(
    ("low", "high", "held"),
    [(1000, 1000, True), (999, 999, False), (900, None, None), (None, 900, False), (1000, None, True), (None, 1200, None), (None, None, None)],
)  # fmt: skip
def test_between_two_bounds_it_is_not_proved(low: int | None, high: int | None, held: bool | None):
    read = [reading("disk.read", "MB/s", "x", low, high)]
    (found,) = (e for e in proofs(TABLE, "image", read) if e.id == "disk.read")
    assert found.passed is held


def test_what_is_needed_and_was_not_tried_does_not_pass():
    assert passed([proof(), proof(None, needed=False)])
    assert not passed([proof(), proof(None)])
    assert not passed([proof(False, needed=False)])
    assert not passed(proofs(TABLE, "batch", []))


def test_a_class_that_is_none():
    with pytest.raises(OuvrageError) as refused:
        TABLE.of("mining")
    assert refused.value.code == "qualify/class"
    assert "batch" in (refused.value.hint or "")


def test_a_table_with_an_unknown_check_is_refused():
    with pytest.raises(OuvrageError):
        need_table_in("work_classes.toml", 'version = 1\nas_of = "x"\n')


def test_base_least_and_most():
    need = replace(TABLE.needs[0], value=Fraction(2), base=Fraction(1), least=Fraction(4), most=Fraction(6))  # fmt: skip
    sizes = [required(replace(need, per="gpu"), {"gpu": Fraction(n)}) for n in (1, 2, 9)]
    assert sizes == [4, 5, 6]


# Certificates

HELD = certificate()
PARTS = list(HELD.parts)


@pytest.mark.parametrize(
    ("parts", "at_us", "state", "reason"),
    [
        (PARTS, AT_US, "valid", None),
        (None, AT_US, "valid", None),
        (PARTS, HELD.expires_us - 1, "valid", None),
        (PARTS, HELD.expires_us, "expired", "it has expired"),
        (["disk:sda:S2", PARTS[1]], AT_US, "void", "disk sda was S1 and is S2"),
        (PARTS[:1], AT_US, "void", "gpu 0000:01:00.0 GPU-1 is gone"),
        ([*PARTS, "dimm:A2:77"], AT_US, "void", "dimm A2 77 is new"),
        (["disk:sda:S2", PARTS[1]], HELD.expires_us, "void", "disk sda was S1 and is S2"),
    ],
)
def test_a_changed_part_or_time_ends_a_certificate(
    parts: list[str] | None, at_us: int, state: str, reason: str | None
):
    found = standing(HELD, parts, at_us)
    assert (found.state, found.holds) == (state, state == "valid")
    assert (found.reasons[0] if found.reasons else None) == reason or found.reasons[0].startswith(str(reason))  # fmt: skip


def test_parts_that_cannot_be_read_now_are_no_change():
    assert standing(HELD, PARTS[:1], AT_US, untold=("gpu",)).holds
    assert standing(HELD, PARTS[:1], AT_US, untold=("disk",)).state == "void"


def test_one_that_ends_later_than_any_can_was_made_with_a_clock_that_was_ahead() -> None:
    most = HELD.expires_us - AT_US
    assert standing(HELD, PARTS, AT_US, longest_us=most).holds
    found = standing(HELD, PARTS, AT_US, longest_us=most - 86_400_000_000)
    assert (found.state, found.reasons[0][:17]) == ("void", "it ends later tha")


def test_one_that_was_not_passed_never_counts():
    found = standing(certificate(passed=False), PARTS, AT_US)
    assert (found.state, found.reasons) == (
        "failed",
        ("cpu_wrong_results: 1 results, <= 0 needed",),
    )
    open_ = replace(HELD, passed=False, proofs=(proof(None),))
    assert standing(open_, PARTS, AT_US).reasons == ("cpu_wrong_results: compared",)


def test_parts_are_named_by_what_tells_them_apart():
    def part(kind: str, slot: str, serial: str | None, version: str | None = None) -> Part:
        return Part(kind=kind, slot=slot, maker=None, model="M", serial=serial, version=version, size=None)  # fmt: skip

    made = part_ids([part("gpu", "0000:01:00.0", "S"), part("software", "kernel", None, "6.1"), part("software", "containerd", None, "1.7"), part("cpu", "0", None)])  # fmt: skip
    assert made == ("cpu:0:M", "gpu:0000:01:00.0:S", "software:kernel:6.1")


@pytest.mark.parametrize(("minutes", "days"), [(1, 1), (30, 90), (2879, 90), (2880, 180)])
def test_how_long_one_counts_depends_on_the_load(minutes: int, days: int):
    assert valid_us(minutes * 60_000_000, TABLE.bounds) == days * DAY_US


# The level of service


def _move(day: int, to: str, hour: int = 0, device: str | None = "GPU-1") -> Moved:
    move = StateMove(
        node="n", device=device, from_state="unknown", to_state=to, actor="automation", reason="", evidence=(), epoch=1
    )  # fmt: skip
    return Moved(at_us=AT_US + day * DAY_US + hour * HOUR_US, move=move, id=f"{day}/{hour}")


def _promise(*moves: Moved, day: int) -> Promise:
    return promise(
        moves, AT_US + day * DAY_US, levels=TABLE.levels, least_days=Fraction(30), repair_us=4 * HOUR_US
    )  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "day", "percent"),
    [
        ((), 60, None),
        ((_move(0, "healthy"),), 29, None),
        ((_move(0, "healthy"),), 30, "99"),  # 4 h of 30 days are 0.56 %
        ((_move(0, "healthy"),), 60, "99.5"),
        ((_move(0, "healthy"),), 365, "99.9"),
        ((_move(0, "healthy"), _move(10, "fenced"), _move(10, "healthy", 12)), 365, "99.5"),  # 12 h, and 12 h more
        ((_move(0, "healthy"), _move(10, "unknown"), _move(15, "healthy")), 60, None),  # silence counts as down
        ((_move(0, "healthy"), _move(10, "maintenance"), _move(15, "healthy")), 65, "99.5"),
        ((_move(0, "healthy"), _move(0, "fenced", device="GPU-2")), 60, None),  # the worst GPU
    ],
)  # fmt: skip
def test_what_a_record_can_promise(moves: tuple[Moved, ...], day: int, percent: str | None):
    found = _promise(*moves, day=day)
    assert found.percent == (None if percent is None else Fraction(percent)), found
    assert found.how
