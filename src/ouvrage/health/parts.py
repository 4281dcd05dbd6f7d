"""Two bills of materials of one machine held against one another: what is new, gone, replaced, moved, of another version.

Decides which part is which: by its serial number wherever it sits, else by its place. What was not told on one side is
no change, since a reader without the rights sees less; what is known grows by what another look tells more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ouvrage.health.findings import Belief, Finding, result_of, unknown
from ouvrage.model.health import WARN, CheckResult, NodeInventory, Part
from ouvrage.model.work import Named

ADDED, REMOVED, REPLACED, MOVED, VERSION, SETTING = (
    "added",
    "removed",
    "replaced",
    "moved",
    "version",
    "setting",
)
_Key = tuple[str, str]

SOFT = ("software", "firmware")
CHECK = "inventory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One part, version or setting that differs. ``before`` is None for what is new, ``after`` for what is gone."""

    what: str
    kind: str
    slot: str
    before: str | None
    after: str | None

    @property
    def words(self) -> str:
        """``gpu 0000:9b:00.0 was replaced: NVIDIA H100 1650… → NVIDIA H100 1651…``."""
        name = f"{self.kind} {self.slot}"
        match self.what:
            case "added":
                return f"{name} is new: {self.after}"
            case "removed":
                return f"{name} is gone: {self.before}"
            case "moved":
                return f"{self.kind} {self.before} now sits in {self.after}"
            case "replaced":
                return f"{name} was replaced: {self.before} → {self.after}"
            case _:
                return f"{name} is {self.after or 'not set'}, it was {self.before or 'not set'}"


def part_id(part: Part) -> str:
    """A part as certificates name it: kind, place, and the first that is told of serial number, version, model, size."""
    told = part.serial or part.version or part.model or part.size or "?"
    return f"{part.kind}:{part.slot}:{told}"


def make_of(part: Part) -> str:
    """Maker, model and size, the maker once where the model begins with it; empty where none is told."""
    maker = None if part.maker and (part.model or "").startswith(part.maker) else part.maker
    return " ".join(word for word in (maker, part.model, part.size) if word)


def described(part: Part) -> str:
    """``Samsung M321R8GA0BB0 64 GiB, serial 0012``: what is told of it, and not where it sits."""
    if part.kind in SOFT and part.version:
        return part.version
    words = make_of(part)
    serial = f"serial {part.serial}" if part.serial else ""
    return ", ".join(word for word in (words or part.version, serial) if word) or "nothing told"


def differs(one: object, other: object) -> bool:
    """Whether both are told and are not the same."""
    return one is not None and other is not None and one != other


def pairs(
    before: Sequence[Part], now: Sequence[Part]
) -> tuple[list[tuple[Part, Part]], list[Part], list[Part]]:
    """Parts that are the same or stand in the same place, then those only in ``before``, then only in ``now``."""
    found: list[tuple[Part, Part]] = []
    left, right = list(before), list(now)
    for key in (_serial, _place):
        places = _by_key(right, key)
        for part in list(left):
            other = places.get(key(part) or ("", ""), [])
            if other:
                found.append((part, other.pop(0)))
                left.remove(part)
                right.remove(found[-1][1])
    return found, left, right


def _serial(part: Part) -> _Key | None:
    return None if part.serial is None else (part.kind, part.serial)


def _place(part: Part) -> _Key | None:
    return (part.kind, part.slot)


def _by_key(parts: Iterable[Part], key: Callable[[Part], _Key | None]) -> dict[_Key, list[Part]]:
    found: dict[_Key, list[Part]] = {}
    for part in parts:
        name = key(part)
        if name is not None:
            found.setdefault(name, []).append(part)
    return found


def changes(before: NodeInventory, now: NodeInventory) -> tuple[Change, ...]:
    """What differs, by kind and place; kinds that either did not tell are left out."""
    silent = {each.name for each in (*before.untold, *now.untold)}
    found, gone, new = pairs(
        [part for part in before.parts if part.kind not in silent],
        [part for part in now.parts if part.kind not in silent],
    )
    listed = [
        *(_change(REMOVED, part, described(part), None) for part in gone),
        *(_change(ADDED, part, None, described(part)) for part in new),
        *(each for one, other in found for each in _between(one, other)),
        *settings_changed(before.settings, now.settings),
    ]
    return tuple(sorted(listed, key=lambda c: (c.kind in SOFT, c.kind, c.slot, c.what)))


def _change(what: str, part: Part, before: str | None, after: str | None) -> Change:
    return Change(what=what, kind=part.kind, slot=part.slot, before=before, after=after)


def _between(one: Part, other: Part) -> Iterator[Change]:
    """What differs between two parts that were taken for the same."""
    if _replaced(one, other):
        yield _change(REPLACED, other, described(one), described(other))
        return
    if one.slot != other.slot:
        yield _change(MOVED, other, one.slot, other.slot)
    if differs(one.version, other.version):
        yield _change(VERSION, other, one.version, other.version)


_IDENTITY = ("serial", "maker", "model", "size")


def settings_changed(before: Sequence[Named], now: Sequence[Named]) -> Iterator[Change]:
    """Settings that both tell and that differ: one that only one side tells could not be read on the other."""
    told = {each.name: each.value for each in before}
    for each in now:
        if each.name in told and told[each.name] != each.value:
            yield Change(
                what=SETTING, kind=SETTING, slot=each.name, before=told[each.name], after=each.value
            )


def completed(known: NodeInventory, now: NodeInventory) -> NodeInventory:
    """``known`` with what ``now`` tells more of the same parts. What it tells otherwise is left as it was.

    Changes against the result are those against ``known``; a second time it adds nothing.
    """
    was_silent = {each.name for each in known.untold}
    silent = {each.name for each in now.untold}
    compared = [part for part in now.parts if part.kind not in silent | was_silent]
    found = pairs([p for p in known.parts if p.kind not in silent | was_silent], compared)[0]
    fuller = {id(one): _fuller(one, other) for one, other in found if not _replaced(one, other)}
    kept = [fuller.get(id(part), part) for part in known.parts]
    new = [part for part in now.parts if part.kind in was_silent - silent]
    names = {each.name for each in known.settings}
    return replace(
        known,
        parts=(*(part for part in kept if part.kind not in was_silent - silent), *new),
        settings=(*known.settings, *(each for each in now.settings if each.name not in names)),
        untold=tuple(each for each in known.untold if each.name in silent),
    )


def _replaced(one: Part, other: Part) -> bool:
    return any(differs(getattr(one, name), getattr(other, name)) for name in _IDENTITY)


def _fuller(one: Part, other: Part) -> Part:
    names = ("maker", "model", "serial", "version", "size")
    return replace(
        one,
        **{name: getattr(other, name) for name in names if getattr(one, name) is None},
    )


def check_inventory(accepted: NodeInventory, now: NodeInventory) -> CheckResult:
    """Whether the machine is made of what its owner last accepted. A change is a WARN until it is accepted."""
    if not now.parts:
        return unknown(CHECK, "no part of this machine could be read", rule=f"{CHECK}/not-told")
    differing = changes(accepted, now)
    findings = [
        Finding(
            belief=Belief.COUNTER, verdict=WARN, rule=f"{CHECK}-{each.what}", reason=each.words,
            action="look", evidence=(_evidence(each),),
        )
        for each in differing
    ]  # fmt: skip
    silent = ", ".join(each.name for each in now.untold)
    good = f"{counted(now.parts)}, as accepted" + (f"; not told: {silent}" if silent else "")
    return result_of(CHECK, None, findings, good=good)


def _evidence(change: Change) -> Named:
    value = f"{change.before or 'nothing'} → {change.after or 'nothing'}"
    return Named(name=f"{change.kind} {change.slot}", value=value)


_WORDS = {
    "cpu": "CPU",
    "dimm": "DIMM",
    "board": "board",
    "disk": "disk",
    "nic": "network card",
    "gpu": "GPU",
    "psu": "power supply",
    "firmware": "firmware version",
    "software": "software version",
}
KINDS = tuple(_WORDS)


def counted(parts: Sequence[Part]) -> str:
    """``2 CPUs, 16 DIMMs, 8 GPUs``, without software and firmware."""
    told: list[str] = []
    for kind, word in _WORDS.items():
        many = sum(part.kind == kind for part in parts)
        if many and kind not in SOFT:
            plural = "power supplies" if kind == "psu" else f"{word}s"
            told.append(f"{many} {word if many == 1 else plural}")
    return ", ".join(told) or "no part"
