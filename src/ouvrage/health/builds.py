"""A machine held to a standard build: each thing in which it is another one, and what may differ.

Decides which deviations weigh how much. Parts are held by what they are, not by their serial numbers, which always
differ; a part that is missing or another one is CRITICAL, for work that was promised on the build may not run; a
version, a package, a setting or a place is a WARN; what could not be read is UNKNOWN, never taken as held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ouvrage.health.findings import Belief, Finding, result_of, worst
from ouvrage.health.parts import SOFT, described, differs
from ouvrage.model.builds import NodeBuild
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, WARN, CheckResult, NodeInventory, Part, Way
from ouvrage.model.work import Named

PART, PLACE, FIRMWARE, SOFTWARE, PACKAGE, SET, WAY, NOT_TOLD = SORTS = (
    "part",
    "place",
    "firmware",
    "software",
    "package",
    "setting",
    "way",
    "not told",
)
"""What a deviation is about, the weightiest first; ``SORT:NAME`` is the form of what is allowed to differ."""

_WEIGHT = {PART: CRITICAL, NOT_TOLD: UNKNOWN}
ALWAYS = "serial numbers, network addresses, host names"
CHECK = "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """``name`` (a place, a package, a setting) is ``found`` where the build has ``wanted``; None where there is none."""

    sort: str
    name: str
    wanted: str | None
    found: str | None

    @property
    def verdict(self) -> str:
        """How much it weighs: CRITICAL, UNKNOWN or WARN."""
        return _WEIGHT.get(self.sort, WARN)

    @property
    def words(self) -> str:
        """One line for a person."""
        about = f"{self.sort} {self.name}"
        if self.sort == NOT_TOLD:
            return f"{self.name} cannot be compared: {self.found}"
        if self.found is None:
            return f"{about} is missing: {self.wanted}"
        if self.wanted is None:
            return f"{about} is not in the build: {self.found}"
        return f"{about} is {self.found}, the build has {self.wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A machine held to a build: deviations, and those that the build lets pass."""

    deviations: tuple[Deviation, ...]
    allowed: tuple[Deviation, ...]

    @property
    def verdict(self) -> str:
        """The worst of the deviations; OK where there is none."""
        return worst(each.verdict for each in self.deviations) if self.deviations else OK


def build_of(inventory: NodeInventory, build: NodeBuild) -> NodeBuild:
    """``build`` with the parts and versions of a machine, what is its alone left out."""
    return replace(
        build,
        parts=tuple(replace(part, serial=None) for part in inventory.parts),
        packages=inventory.packages,
        settings=inventory.settings,
        ways=inventory.ways,
        untold=inventory.untold,
    )


def held_to_build(build: NodeBuild, now: NodeInventory, allowed: Sequence[str] = ()) -> Held:
    """Every deviation of a machine from a build. ``allowed`` are patterns beside those of the build."""
    silent = {each.name: each.value for each in (*build.untold, *now.untold)}
    found = [
        *_parts(build.parts, now.parts, set(silent)),
        *_named(PACKAGE, build.packages, now.packages, "packages" in silent),
        *_settings(build.settings, now.settings),
        *_ways(build, now),
        *(
            Deviation(sort=NOT_TOLD, name=kind, wanted=None, found=why)
            for kind, why in silent.items()
        ),
    ]
    found.sort(key=lambda each: (SORTS.index(each.sort), each.name))
    patterns = (*build.allowed, *allowed)
    passed = [each for each in found if _may(each, patterns)]
    return Held(
        deviations=tuple(each for each in found if each not in passed), allowed=tuple(passed)
    )


def _may(deviation: Deviation, patterns: Iterable[str]) -> bool:
    name = f"{deviation.sort}:{deviation.name}"
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _parts(wanted: Sequence[Part], there: Sequence[Part], silent: set[str]) -> Iterator[Deviation]:
    """Kind by kind: the same part in its place, the same elsewhere, another in its place, none, one too many."""
    kinds = dict.fromkeys(part.kind for part in (*wanted, *there))
    for kind in kinds:
        if kind not in silent:
            yield from _kind(
                [part for part in wanted if part.kind == kind],
                [part for part in there if part.kind == kind],
            )


def _kind(wanted: list[Part], there: list[Part]) -> Iterator[Deviation]:
    matched: list[tuple[Part, Part]] = []
    for alike in (
        lambda one, other: one.slot == other.slot and _same(one, other),
        _same_hardware,
        lambda one, other: one.slot == other.slot,
    ):
        for part in list(wanted):
            other = next((each for each in there if alike(part, each)), None)
            if other is not None:
                matched.append((part, other))
                wanted.remove(part)
                there.remove(other)
    for one, other in matched:
        yield from _compared(one, other)
    for part in wanted:
        yield Deviation(sort=_sort(part), name=_name(part), wanted=_text(part), found=None)
    for part in there:
        yield Deviation(sort=_sort(part), name=_name(part), wanted=None, found=_text(part))


def _same(one: Part, other: Part) -> bool:
    return not any(differs(getattr(one, n), getattr(other, n)) for n in ("maker", "model", "size"))


def _same_hardware(one: Part, other: Part) -> bool:
    """Two of one make, wherever they sit. Software is known by its name alone."""
    return one.kind not in SOFT and _same(one, other)


def _compared(one: Part, other: Part) -> Iterator[Deviation]:
    if not _same(one, other):
        yield Deviation(sort=PART, name=_name(other), wanted=_text(one), found=_text(other))
        return
    if one.slot != other.slot:
        yield Deviation(sort=PLACE, name=_name(one), wanted=one.slot, found=other.slot)
    if differs(one.version, other.version):
        sort = SOFTWARE if one.kind == "software" else FIRMWARE
        yield Deviation(sort=sort, name=_name(other), wanted=one.version, found=other.version)


def _sort(part: Part) -> str:
    return part.kind if part.kind in SOFT else PART


def _name(part: Part) -> str:
    return part.slot if part.kind in SOFT else f"{part.kind} {part.slot}"


def _text(part: Part) -> str:
    return described(replace(part, serial=None))


def _named(
    sort: str, wanted: Sequence[Named], there: Sequence[Named], silent: bool
) -> Iterator[Deviation]:
    if silent:
        return
    before = {each.name: each.value for each in wanted}
    now = {each.name: each.value for each in there}
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            yield Deviation(sort=sort, name=name, wanted=before.get(name), found=now.get(name))


def _settings(wanted: Sequence[Named], there: Sequence[Named]) -> Iterator[Deviation]:
    """Settings that both tell; one that a machine does not tell is none of its settings."""
    now = {each.name: each.value for each in there}
    for each in wanted:
        if each.name in now and now[each.name] != each.value:
            yield Deviation(sort=SET, name=each.name, wanted=each.value, found=now[each.name])


def _ways(build: NodeBuild, now: NodeInventory) -> Iterator[Deviation]:
    """How many pairs are joined by which link; addresses may differ from machine to machine."""
    if not build.ways or not now.ways:
        return  # a machine without GPUs; their absence is a deviation of its own
    wanted, there = _joined(build.ways, build.parts), _joined(now.ways, now.parts)
    for between in dict.fromkeys([*wanted, *there]):
        one, other = wanted.get(between), there.get(between)
        if one != other:
            yield Deviation(sort=WAY, name=between, wanted=_links(one), found=_links(other))


def _joined(ways: Sequence[Way], parts: Sequence[Part]) -> dict[str, Counter[str]]:
    kinds = {part.slot: part.kind for part in parts}
    found: dict[str, Counter[str]] = {}
    for each in ways:
        ends = "–".join(sorted((kinds.get(each.one, "?"), kinds.get(each.other, "?"))))
        found.setdefault(ends, Counter())[each.link] += 1
    return found


def _links(counts: Counter[str] | None) -> str | None:
    if counts is None:
        return None
    return ", ".join(f"{many} by {link}" for link, many in sorted(counts.items()))


def build_result(name: str, held: Held) -> CheckResult:
    """The comparison as a check's result: its verdict, each deviation a reason and evidence."""
    findings = [
        Finding(
            belief=Belief.COUNTER, verdict=each.verdict, rule=f"{CHECK}-{each.sort.replace(' ', '-')}",
            reason=each.words, action="look",
            evidence=(Named(name=f"{each.sort} {each.name}", value=f"{each.wanted or 'none'} → {each.found or 'none'}"),),
        )
        for each in held.deviations
    ]  # fmt: skip
    return result_of(CHECK, None, findings, good=f"as build {name}, nothing deviates")
