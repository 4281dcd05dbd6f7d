"""Changes of a machine, deviations from a build, plans and what was patched: pure, from made-up parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.health.builds import SORTS, Held, build_of, build_result, held_to_build
from ouvrage.health.laws import LAWS
from ouvrage.health.parts import changes, check_inventory, completed, counted, part_id
from ouvrage.health.patching import (
    accepted_software,
    covering,
    drain_of,
    group_of,
    guards,
    patched,
    pending,
    will_change,
)
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.builds import NodeBuild, PatchPlan, Standing
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, WARN, NodeInventory, Part, Way
from ouvrage.model.work import Named


def part(kind: str = "gpu", slot: str = "01", serial: str | None = "S1", model: str | None = "H100", version: str | None = "96.00") -> Part:  # fmt: skip
    return Part(
        kind=kind, slot=slot, maker="M", model=model, serial=serial, version=version, size=None
    )


def machine(*parts: Part, untold: tuple[str, ...] = (), packages: dict[str, str] | None = None, settings: dict[str, str] | None = None) -> NodeInventory:  # fmt: skip
    return NodeInventory(
        node="n", boot="b", parts=parts, packages=named(packages), settings=named(settings),
        untold=tuple(Named(name=name, value="no rights") for name in untold),
    )  # fmt: skip


def named(values: dict[str, str] | None) -> tuple[Named, ...]:
    return tuple(Named(name=name, value=value) for name, value in sorted((values or {}).items()))


def told(before: NodeInventory, now: NodeInventory) -> list[tuple[str, str]]:
    return [(each.what, each.slot) for each in changes(before, now)]


def test_a_part_is_known_by_its_serial_number_wherever_it_sits() -> None:
    one, two = part(slot="01", serial="A"), part(slot="02", serial="B")
    swapped = machine(replace(one, slot="02"), replace(two, slot="01"))
    assert told(machine(one, two), swapped) == [("moved", "01"), ("moved", "02")]
    assert told(machine(one, two), machine(two, one)) == []


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (part(serial="B"), "replaced"),
        (part(model="H200"), "replaced"),
        (part(version="96.01"), "version"),
        (part(serial=None), None),
        (part(model=None), None),
        (part(slot="02"), "moved"),
        (part(slot="02", serial="B"), "added"),
    ],
)
def test_what_one_part_became(after: Part, what: str | None) -> None:
    found = told(machine(part()), machine(after))
    assert [each for each, _ in found][-1 if what == "added" else 0 :] == (
        [what] if what else []
    ) or (what == "added" and sorted(each for each, _ in found) == ["added", "removed"])


def test_what_was_not_told_is_no_change() -> None:
    dimm = part("dimm", "A1", "D")
    assert told(machine(part(), dimm), machine(part(), untold=("dimm",))) == []
    assert told(machine(part(), untold=("dimm",)), machine(part(), dimm)) == []
    assert told(machine(part(), dimm), machine(part())) == [("removed", "A1")], "told, and gone"
    assert told(machine(settings={"a": "1"}), machine()) == []
    assert told(machine(settings={"a": "1"}), machine(settings={"a": "2", "b": "1"})) == [
        ("setting", "a")
    ]


def test_a_change_is_a_warning_until_it_is_accepted() -> None:
    before, now = machine(part(), part("dimm", "A1", "D")), machine(part(serial="B"))
    result = check_inventory(before, now)
    assert (result.verdict, result.action, len(result.reasons)) == (WARN, "look", 2)
    assert result.reasons[0] == "dimm A1 is gone: M H100, serial D"
    assert check_inventory(now, now).verdict == OK
    assert check_inventory(now, machine()).verdict == UNKNOWN, "nothing read is nothing known"


KINDS = ("gpu", "dimm", "nic", "software")
Row = tuple[str, str, str | None, str | None, str | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.sampled_from(("01", "02", "03")), st.sampled_from((None, "A", "B", "C")),
        st.sampled_from((None, "X", "Y")), st.sampled_from((None, "1", "2")),
    ),
    max_size=6,
)  # fmt: skip
FEW = st.dictionaries(st.sampled_from(("p", "q")), st.sampled_from(("0", "1")))


def made(rows: list[Row], silent: str | None, settings: dict[str, str], packages: dict[str, str]) -> NodeInventory:  # fmt: skip
    """A machine with one part in a place and no serial number twice, one kind not told perhaps."""
    parts: dict[tuple[str, str], Part] = {}
    serials: set[tuple[str, str | None]] = set()
    for kind, slot, serial, model, version in rows:
        if kind != silent and (kind, slot) not in parts:
            known = serial if (kind, serial) not in serials else None
            serials.add((kind, serial))
            parts[kind, slot] = part(kind, slot, known, model, version)
    untold = () if silent is None else (silent,)
    return machine(*parts.values(), untold=untold, settings=settings, packages=packages)


def inventories() -> st.SearchStrategy[NodeInventory]:
    return st.builds(made, ROWS, st.none() | st.sampled_from(KINDS), FEW, FEW)


def keys(before: NodeInventory, now: NodeInventory) -> set[tuple[str, str, str]]:
    return {(each.what, each.kind, each.slot) for each in changes(before, now)}


@pytest.mark.property
@given(inventories())
def test_a_machine_has_not_changed_from_itself(one: NodeInventory) -> None:
    assert changes(one, one) == ()
    assert completed(one, one) == one
    held = held_to_build(build_of(one, build()), one)
    assert {each.sort for each in held.deviations} <= {"not told"}


@pytest.mark.property
@given(inventories(), inventories())
def test_what_is_gone_one_way_is_new_the_other(one: NodeInventory, other: NodeInventory) -> None:
    there, back = changes(one, other), changes(other, one)
    for what, reverse in (("added", "removed"), ("removed", "added")):
        assert sum(c.what == what for c in there) == sum(c.what == reverse for c in back)
    assert sum(c.what == "replaced" for c in there) == sum(c.what == "replaced" for c in back)


@pytest.mark.property
@given(inventories(), inventories())
def test_knowing_more_changes_no_finding(known: NodeInventory, now: NodeInventory) -> None:
    fuller = completed(known, now)
    assert completed(fuller, now) == fuller
    assert keys(fuller, now) == keys(known, now)
    assert {each.name for each in fuller.untold} <= {each.name for each in known.untold}


def build(**given: object) -> NodeBuild:
    empty = NodeBuild(
        build="h100", node="n", inventory="k", proven_by=None, parts=(), packages=(), settings=(),
        ways=(), untold=(), allowed=(), removed=False, why="",
    )  # fmt: skip
    return replace(empty, **given)


def held(wanted: NodeInventory, now: NodeInventory, *allowed: str) -> Held:
    return held_to_build(build_of(wanted, build()), now, allowed)


def test_serial_numbers_and_places_of_equal_parts() -> None:
    wanted = machine(part(slot="01", serial="A"), part(slot="02", serial="B"))
    other = machine(part(slot="02", serial="C"), part(slot="01", serial="D"))
    assert held(wanted, other).deviations == ()
    elsewhere = machine(part(slot="01", serial="C"), part(slot="09", serial="D"))
    found = held(wanted, elsewhere)
    assert [(d.sort, d.name, d.wanted, d.found, d.verdict) for d in found.deviations] == [
        ("place", "gpu 02", "02", "09", WARN)
    ]


@pytest.mark.parametrize(
    ("now", "sort", "verdict"),
    [
        (machine(), "part", CRITICAL),
        (machine(part(model="A100")), "part", CRITICAL),
        (machine(part(), part(slot="02")), "part", CRITICAL),
        (machine(part(version="97")), "firmware", WARN),
        (machine(untold=("gpu",)), "not told", UNKNOWN),
    ],
)
def test_each_deviation_and_its_weight(now: NodeInventory, sort: str, verdict: str) -> None:
    found = held(machine(part()), now)
    assert [each.sort for each in found.deviations] == [sort]
    assert found.verdict == verdict == build_result("h100", found).verdict


def test_versions_packages_settings_and_ways() -> None:
    driver, kernel = (
        part("software", "nvidia driver", None, None, "550"),
        part("software", "kernel", None, None, "6.1"),
    )
    wanted = replace(
        machine(part(), driver, kernel, packages={"runc": "1.1", "tzdata": "1"}, settings={"iommu": "on"}),
        ways=(Way(one="01", other="01", link="NV18"),),
    )  # fmt: skip
    now = replace(
        machine(part(), replace(driver, version="535"), packages={"runc": "1.2", "vim": "9"}, settings={"iommu": "off"}),
        ways=(Way(one="01", other="01", link="SYS"),),
    )  # fmt: skip
    found = held(wanted, now)
    assert [(each.sort, each.name, each.wanted, each.found) for each in found.deviations] == [
        ("software", "kernel", "6.1", None),
        ("software", "nvidia driver", "550", "535"),
        ("package", "runc", "1.1", "1.2"),
        ("package", "tzdata", "1", None),
        ("package", "vim", None, "9"),
        ("setting", "iommu", "on", "off"),
        ("way", "gpu–gpu", "1 by NV18", "1 by SYS"),
    ]
    assert found.verdict == WARN
    fewer = held(wanted, now, "package:*", "software:kernel")
    assert [each.name for each in fewer.deviations] == ["nvidia driver", "iommu", "gpu–gpu"]
    assert len(fewer.allowed) == 4


@pytest.mark.property
@given(inventories(), inventories())
def test_all_that_deviates_is_listed_or_allowed(wanted: NodeInventory, now: NodeInventory) -> None:
    found = held(wanted, now)
    everything = held(wanted, now, *(f"{sort}:*" for sort in SORTS))
    assert everything.verdict == OK
    assert set(everything.allowed) == set(found.deviations)
    silent = {each.name for each in (*wanted.untold, *now.untold)}
    for kind in {"gpu", "dimm", "nic"} - silent:
        ours = [p for p in wanted.parts if p.kind == kind]
        theirs = [p for p in now.parts if p.kind == kind]
        sides = [
            each for each in found.deviations if each.sort == "part" and each.name.startswith(kind)
        ]
        missing = sum(each.found is None for each in sides)
        more = sum(each.wanted is None for each in sides)
        assert len(ours) - missing == len(theirs) - more, (
            "each part is paired, missing or one too many"
        )


APT = """\
NOTE: This is only a simulation!
Inst base-files [12.4+deb12u11] (12.4+deb12u15 Debian:12.15/oldstable [amd64])
Inst libgcrypt20 [1.10.1-3] (1.10.1-3+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64]) []
Inst linux-image-6.8.0-51-generic (6.8.0-51.52 Ubuntu:24.04/noble-updates, Ubuntu:24.04/noble-security [amd64])
Inst nvidia-driver [550.90.07-1] (550.144.03-1 NVIDIA:cuda [amd64])
Conf base-files (12.4+deb12u15 Debian:12.15/oldstable [amd64])
"""


def test_apt_s_simulation_is_read() -> None:
    found = pending(APT, ("nvidia-driver",))
    assert [(u.package, u.from_version, u.to_version, u.security, u.held) for u in found] == [
        ("libgcrypt20", "1.10.1-3", "1.10.1-3+deb12u1", True, False),
        ("linux-image-6.8.0-51-generic", None, "6.8.0-51.52", True, False),
        ("base-files", "12.4+deb12u11", "12.4+deb12u15", False, False),
        ("nvidia-driver", "550.90.07-1", "550.144.03-1", False, True),
    ]


@pytest.mark.property
@given(st.text(max_size=200))
def test_any_text_is_read_or_left_out(text: str) -> None:
    for update in pending(f"{text}\n{APT}", ()):
        assert update.package
        assert update.to_version


def test_what_running_work_hangs_on() -> None:
    groups = {
        "nvidia-driver-550": "driver", "libnvidia-compute-550": "driver", "nvidia-container-toolkit": "runtime",
        "libnvidia-container1": "runtime", "linux-image-amd64": "kernel", "containerd.io": "runtime", "bash": None,
    }  # fmt: skip
    assert {name: group_of(name) for name in groups} == groups
    found = guards(named({"runc": "1", "bash": "1", "nvidia-driver": "2"}), ["runc"])
    assert [(each.package, each.held) for each in found] == [
        ("nvidia-driver", False),
        ("runc", True),
    ]


HOUR = 3_600_000_000


def plan(*ends: int | None, lift: tuple[str, ...] = ()) -> PatchPlan:
    standing = tuple(
        Standing(sort="lease", name=f"L{n}", whose="acme", ends_us=end)
        for n, end in enumerate(ends)
    )
    return PatchPlan(
        plan="p", node="n", begins_us=10 * HOUR, ends_us=12 * HOUR, updates=pending(APT, ("nvidia-driver",)),
        lift=lift, standing=standing, why="kernel", by="ann",
    )  # fmt: skip


def test_who_stands_in_the_way_of_a_window() -> None:
    drain = drain_of(plan(9 * HOUR, 10 * HOUR, 11 * HOUR, None), 0)
    assert [each.name for each in drain.in_the_way] == ["L2", "L3"]
    assert (drain.clear, drain.empty_us) == (False, None)
    free = drain_of(plan(9 * HOUR), 0)
    assert (free.clear, free.empty_us) == (True, 9 * HOUR)
    assert drain_of(plan(), 5).empty_us == 5


@pytest.mark.property
@given(st.lists(st.none() | st.integers(0, 20 * HOUR), max_size=6), st.integers(0, 20 * HOUR))
def test_every_lease_ends_in_time_or_is_in_the_way(ends: list[int | None], now: int) -> None:
    whole = plan(*ends)
    drain = drain_of(whole, now)
    assert sorted([*drain.in_the_way, *drain.ends_in_time], key=lambda s: s.name) == list(
        whole.standing
    )
    if drain.empty_us is not None:
        assert drain.clear == all(end <= whole.begins_us for end in ends if end is not None)


def test_a_hold_is_lifted_by_name_alone() -> None:
    assert "nvidia-driver" not in {each.package for each in will_change(plan())}
    assert "nvidia-driver" in {each.package for each in will_change(plan(lift=("nvidia-driver",)))}


def test_what_was_patched_and_whether_it_was_planned() -> None:
    kernel, bios = (
        part("software", "kernel", None, None, "6.1"),
        part("firmware", "bios", None, None, "1"),
    )
    before = machine(part(), kernel, bios, packages={"base-files": "12.4+deb12u11", "vim": "9"})
    now = machine(
        part(version="96.01", serial="S1"), replace(kernel, version="6.8"), bios,
        packages={"base-files": "12.4+deb12u15", "vim": "10"},
    )  # fmt: skip
    whole = covering([plan()], "n", 11 * HOUR)
    found = patched(before, now, changes(before, now), whole, "ann")
    assert [(p.what, p.from_version, p.to_version, p.planned) for p in found] == [
        ("base-files", "12.4+deb12u11", "12.4+deb12u15", True),
        ("gpu 01 firmware", "96.00", "96.01", True),
        ("kernel", "6.1", "6.8", True),
        ("vim", "9", "10", False),
    ]
    assert covering([plan()], "n", 12 * HOUR) is None, "a window is half-open"
    assert covering([plan()], "other", 11 * HOUR) is None
    outside = patched(before, now, changes(before, now), None, "ann")
    assert not any(each.planned for each in outside)


@pytest.mark.property
@given(inventories(), inventories())
def test_after_patching_no_software_is_left_to_accept(
    before: NodeInventory, now: NodeInventory
) -> None:
    accepted = accepted_software(before, now)
    left = [each for each in changes(accepted, now) if each.kind == "software"]
    assert not left
    if now.packages:
        assert patched(accepted, now, left, None, "ann") == ()


def test_laws_name_what_cannot_be() -> None:
    law = {each.name: each for each in LAWS}
    twice = recorded(machine(part(), part(), part("wheel")))
    told_of = [words for _, words in law["health/inventories"].check([twice])]
    assert told_of == [
        "has 2 parts of kind gpu in one place, 01",
        "has a part of no known kind: wheel",
    ]
    late = recorded(replace(plan(), ends_us=1))
    assert [words for _, words in law["health/plans"].check([late])] == [
        "has a window that ends before it begins"
    ]
    assert not list(law["health/plans"].check([recorded(plan())]))


def recorded(value: NodeInventory | PatchPlan) -> Recorded:
    fact = fact_of(
        value, source="0" * 32, id="x", subject="node:n", valid_from=0, valid_to=None, grade=Grade.MEASURED
    )  # fmt: skip
    return Recorded(seq=1, recorded_at=0, fact=fact)


def test_ids_and_counts() -> None:
    assert part_id(part()) == "gpu:01:S1"
    assert part_id(part(serial=None)) == "gpu:01:96.00"
    assert (
        counted([part(), part("psu"), part("psu"), part("software")]) == "1 GPU, 2 power supplies"
    )
    assert counted([]) == "no part"
