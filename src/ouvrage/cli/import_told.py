"""What every ``ouvrage import`` shares: whose machine it is, recording, and what is told of it.

Decides that a statement about a part of a period never takes the place of one about the whole, that
days between the first and the last known one that no statement covers are told, and the exit code: 1
where something was flagged though the rest came in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.feeds.told import Told, day_text, key_part, name_part
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.base.text import safe
from ouvrage.base.time import DAY
from ouvrage.books.period import day_of
from ouvrage.cli.booking import Booked, book
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.options import moment
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.stated import Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.earnings import ChannelMachine, Earning
from ouvrage.model.offers import ExchangeRate
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import OBJECTS, Node, Site

_MOST_FAULTS = 20
_MOST_DAYS = 12
_RATE_DAYS = 7


@dataclass(slots=True, kw_only=True)
class Imported:
    """What one call brought in: what each file told, and what was recorded of it."""

    told: list[Told]
    booked: Booked = field(default_factory=Booked)
    older: int = 0
    first: str = ""
    missing: list[str] = field(default_factory=list)
    more: str = ""

    @property
    def flagged(self) -> int:
        """How many faults there are; each cost a row, or a step between two."""
        return sum(len(each.faults) for each in self.told)


def holding(ledger: Ledger, kind: str) -> list[Stated]:
    """The statements of a kind that hold, as this home made them."""
    own = source_id(ledger.home)
    return [
        Stated(
            natural=entry.fact.id.rpartition("/")[0],
            value=read(entry.fact),
            subject=entry.fact.subject,
            valid_from=entry.fact.valid_from,
            valid_to=entry.fact.valid_to,
            grade=entry.fact.grade,
        )
        for entry in _standing(ledger, kind)
        if entry.fact.source == own
    ]


def values(ledger: Ledger, kind: str) -> list[Any]:
    """Everything of a kind that holds, whoever states it."""
    return [read(entry.fact) for entry in _standing(ledger, kind)]


def _standing(ledger: Ledger, kind: str) -> list[Recorded]:
    """The records of a kind that nothing corrected or withdrew."""
    kinds = (kind, Withdrawal.KIND)
    return in_force(entry for each in kinds for entry in ledger.store.records(kind=each))


def fresh(known: Iterable[Stated], offered: Iterable[Stated]) -> tuple[list[Stated], int]:
    """Less those about a part of a period whose whole is known; and how many those are."""
    holds = {each.natural: each for each in known}
    kept = [each for each in offered if not _part_of(each, holds.get(each.natural))]
    return kept, len(list(offered)) - len(kept)


def _part_of(each: Stated, held: Stated | None) -> bool:
    if held is None or held.valid_to is None or each.valid_to is None:
        return False
    span, other = (each.valid_from, each.valid_to), (held.valid_from, held.valid_to)
    return other[0] <= span[0] and span[1] <= other[1] and span != other


def nodes_of(
    ledger: Ledger, channel: str, machines: Sequence[str], given: Mapping[str, str], told: Told
) -> dict[str, str]:
    """Which node of the owner's each of a channel's machines is, recorded for the next time.

    As ``given``, else as recorded before, else the only node for the only machine, else a node named
    after the machine where none is stated at all. Refused where it would be a guess.
    """
    recorded = {
        each.machine: each.node
        for each in values(ledger, ChannelMachine.KIND)
        if each.channel == channel
    }
    nodes = sorted({each.node for each in values(ledger, Node.KIND)})
    _known_nodes(given, nodes)
    for machine in sorted(given.keys() - set(machines)):
        told.note(f"machine {machine} of --machine is not in this; it names {', '.join(machines)}")
    found = {m: given.get(m) or recorded.get(m) for m in machines}
    unknown = [machine for machine, node in found.items() if node is None]
    if len(nodes) == 1 and len(unknown) == 1 and not recorded and len(machines) == 1:
        found[unknown[0]] = nodes[0]
        told.note(f"machine {unknown[0]} is taken for the only node, {nodes[0]}")
    elif unknown and nodes:
        raise OuvrageError(
            "import/machine",
            f"{channel} calls a machine {unknown[0]}; which of your nodes is it?",
            where=tuple(f"node {name}" for name in nodes),
            hint=f"say it once: --machine {unknown[0]}={nodes[0]}",
        )
    else:
        for machine in unknown:
            found[machine] = name_part(f"{channel}-{machine}")
            told.note(
                f"machine {machine} is recorded as node {found[machine]}; --machine names yours"
            )
    chosen = {machine: node for machine, node in found.items() if node is not None}
    said = [_mapping(channel, machine, node) for machine, node in chosen.items()]
    book(ledger, said, typed=True)
    return chosen


def _known_nodes(given: Mapping[str, str], nodes: Sequence[str]) -> None:
    """Refuse a node that is none of the owner's, where there are any: it would earn for nobody."""
    for machine, node in given.items():
        if nodes and node not in nodes:
            raise OuvrageError(
                "import/machine",
                f"--machine {machine}={node}: there is no node {node}",
                where=tuple(f"node {name}" for name in nodes),
                hint=f"--machine {machine}={nodes[0]}, or state it first: "
                f"ouvrage own node {node} --since DAY",
            )


def _mapping(channel: str, machine: str, node: str) -> Stated:
    return Stated(
        natural=f"machine/{channel}/{key_part(machine)}",
        value=ChannelMachine(channel=channel, machine=machine, node=node),
        subject=f"node:{node}",
        valid_from=0,
        valid_to=None,
        grade=Grade.ASSUMED,
    )


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``35798=n1`` as a machine and a node."""
    found: dict[str, str] = {}
    for text in texts:
        machine, equals, node = text.rpartition("=")
        if not equals or not machine or not is_campaign(node):
            raise OuvrageError(
                "import/machine",
                f"{text!r} does not say which node a machine is",
                hint="write the channel's id of the machine and your name of it: --machine 35798=n1",
            )
        found[machine] = node
    return found


def about_of(ledger: Ledger, given: str | None) -> str:
    """What something is about: as given, else the only node that is known."""
    if given is not None:
        sort, colon, name = given.partition(":")
        if colon and sort in OBJECTS and is_campaign(name):
            return given
        raise OuvrageError(
            "import/about",
            f"{given!r} names nothing of yours",
            hint="--about node:n1 or site:garage",
        )
    nodes = sorted({each.node for each in values(ledger, Node.KIND)})
    if len(nodes) == 1:
        return f"node:{nodes[0]}"
    raise OuvrageError(
        "import/about",
        f"{len(nodes)} nodes are known; which one is it about?",
        where=tuple(f"node:{name}" for name in nodes),
        hint=f"--about node:{nodes[0] if nodes else 'n1'}",
    )


def site_zone(ledger: Ledger, given: str | None) -> str:
    """The zone whose days a file means: as given, else of the only site, else UTC."""
    zones = {each.zone for each in values(ledger, Site.KIND)}
    return given or (zones.pop() if len(zones) == 1 else "UTC")


def read_bytes(path: Path) -> bytes:
    """A file's bytes, or a refusal."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise OuvrageError(
            "import/file",
            f"{path} could not be read: {error.strerror}",
            hint="name a file that exists",
        ) from error


def saved_at(path: Path, given: str | None) -> int:
    """When a file was saved: as a person says, else as the file system has it, never in the future."""
    now = now_us()
    if given is not None:
        return min(moment(given), now)
    return min(path.stat().st_mtime_ns // 1000, now)


def missing_days(stated: Iterable[Stated]) -> list[str]:
    """The days between the first and the last known that nothing covers, in words, by subject."""
    known: dict[str, set[int]] = {}
    for each in stated:
        end = max(each.valid_from + 1, each.valid_to or each.valid_from)
        days = range(each.valid_from // DAY, (end - 1) // DAY + 1)
        known.setdefault(each.subject, set()).update(days)
    lines: list[str] = []
    for subject, days in sorted(known.items()):
        absent = [day for day in range(min(days), max(days)) if day not in days]
        if absent:
            lines.append(f"{subject}: {_run_text(absent)}")
    return lines


def _run_text(days: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for day in days:
        if runs and runs[-1][1] == day - 1:
            runs[-1][1] = day
        else:
            runs.append([day, day])
    words = [
        day_text(a) if a == b else f"{day_text(a)} to {day_text(b)}" for a, b in runs[:_MOST_DAYS]
    ]
    more = f" and {len(runs) - _MOST_DAYS} more" if len(runs) > _MOST_DAYS else ""
    return f"{len(days)} ({', '.join(words)}{more})"


def counted(count: int, word: str) -> str:
    """``1 machine``, ``2 machines``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def covered(stated: Iterable[Stated], zone: str = "UTC") -> str:
    """The days that statements are about, in words, by the clock of a zone."""
    spans = [(each.valid_from, each.valid_to or each.valid_from + 1) for each in stated]
    if not spans:
        return "no period"
    begins, ends = min(a for a, _ in spans), max(b for _, b in spans)
    first, last = day_of(begins, zone), day_of(max(begins, ends - 1), zone)
    return f"{first}" if first == last else f"{first} to {last}"


def rates_needed(ledger: Ledger, told: Told, stated: Sequence[Stated]) -> None:
    """Tell which days have amounts in another currency than the books' and no rate of that week."""
    own = {each.currency for each in values(ledger, Site.KIND)}
    if len(own) != 1:
        return
    home = own.pop()
    known: dict[str, set[str]] = {}
    for rate in values(ledger, ExchangeRate.KIND):
        if home in (rate.base, rate.quote):
            known.setdefault(rate.quote if rate.base == home else rate.base, set()).add(rate.day)
    absent: dict[str, set[int]] = {}
    for each in stated:
        code, day = each.value.currency, each.valid_from // DAY
        near = {day_text(day - back) for back in range(_RATE_DAYS + 1)}
        if code != home and not near & known.get(code, set()):
            absent.setdefault(code, set()).add(day)
    for code, days in sorted(absent.items()):
        first = day_text(min(days))
        told.note(
            f"{counted(len(days), 'day')} with {code} without a rate to {home}: "
            f"ouvrage fx set {code}/{home} RATE --day {first} --by WHO "
            f"(one holds until the next; after {_RATE_DAYS} days the books say how old it is)"
        )


def joined(one: Booked, other: Booked) -> Booked:
    """What two calls of ``book`` recorded."""
    return Booked(
        new=one.new + other.new,
        same=one.same + other.same,
        corrected=one.corrected + other.corrected,
    )


def tell(done: Imported, as_json: bool, plain: bool) -> int:
    """Print what came in and what did not; the exit code."""
    done.first = in_words(done.first) if plain or as_json else done.first
    if as_json:
        say_json(imported_json(done))
    else:
        say_text("\n".join(imported_lines(done)))
    return 1 if done.flagged else 0


def in_words(line: str) -> str:
    """A line whose grades are words in brackets, not marks."""
    for grade in (Grade.MEASURED, Grade.METERED, Grade.ASSUMED):
        line = line.replace(f" {grade.mark}", f" ({grade.word})")
    return line


def imported_json(done: Imported) -> dict[str, Any]:
    """What ``--json`` prints of every import."""
    return {
        "summary": done.first,
        "rows": sum(each.rows for each in done.told),
        "new": done.booked.new,
        "same": done.booked.same,
        "corrected": done.booked.corrected,
        "older": done.older,
        "flagged": done.flagged,
        "missing_days": done.missing,
        "files": [
            {
                "file": each.file,
                "form": each.form,
                "rows": each.rows,
                "statements": len(each.stated),
                "faults": [fault.as_json() for fault in each.faults],
                "notes": _notes(each),
            }
            for each in done.told
        ],
    }


def _notes(told: Told) -> list[str]:
    return [words if count == 1 else f"{words} ({count})" for words, count in told.notes.items()]


def imported_lines(done: Imported, more: Sequence[str] = ()) -> list[str]:
    """What a person is told of every import, with lines of its own before the last, safe to print."""
    rows = sum(each.rows for each in done.told)
    lines = [done.first, f"  {counted(rows, 'row')} read; statements: {done.booked.words}"]
    if done.older:
        lines.append(f"  {done.older} say less than is known already and changed nothing")
    notes: dict[str, int] = {}
    for each in done.told:
        for words, count in each.notes.items():
            notes[words] = notes.get(words, 0) + count
    shown = [words if count == 1 else f"{words} ({count})" for words, count in notes.items()]
    lines += [f"  note: {words}" for words in shown[:_MOST_FAULTS]]
    if len(shown) > _MOST_FAULTS:
        lines.append(f"  and {len(shown) - _MOST_FAULTS} more notes: --json lists them all")
    lines += [f"  days missing: {words}" for words in done.missing]
    faults = [fault.line for each in done.told for fault in each.faults]
    if faults:
        lines.append(f"  {len(faults)} flagged, all others came in:")
        lines += [f"    {line}" for line in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            lines.append(f"    and {len(faults) - _MOST_FAULTS} more; --json lists them all")
    return [safe(line) for line in (*lines, *more, *([done.more] if done.more else ()))]


def recorded(
    ledger: Ledger,
    told: list[Told],
    kind: str,
    *,
    settled: Callable[[list[Stated], list[Stated]], list[Stated]] | None = None,
) -> Imported:
    """Record what files told of one kind of fact, less what is known better.

    ``settled`` gets what holds and what is offered, and says what to record.
    """
    known = holding(ledger, kind)
    gone = {entry.fact.corrects for entry in ledger.store.records(kind=Withdrawal.KIND)}
    ids = {e.fact.id for e in ledger.store.records(kind=kind) if e.fact.key not in gone}
    said = [each for one in told for each in one.stated if kind == each.value.KIND]
    new = [each for each in said if each.id not in ids]
    offered, older = fresh(known, new)
    _less_than_before(known, offered, told[0])
    if settled is not None:
        offered = settled(known, offered)
    booked = joined(Booked(same=len(said) - len(new)), book(ledger, offered))
    return Imported(told=told, booked=booked, older=older)


def _less_than_before(known: Iterable[Stated], offered: Iterable[Stated], told: Told) -> None:
    """Tell amounts that shrank: a feed adds up over time, and an export that was cut says less."""
    holds = {each.natural: each for each in known}
    shrunk = [
        each
        for each in offered
        if (held := holds.get(each.natural)) is not None
        and isinstance(each.value, Earning)
        and Decimal(each.value.amount) < Decimal(held.value.amount)
    ]
    if shrunk:
        told.note(
            f"{counted(len(shrunk), 'statement')} now less than before, the first of "
            f"{covered(shrunk[:1])}: right if it was corrected, wrong if the export was cut"
        )
