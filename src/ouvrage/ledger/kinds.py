"""Which kinds of facts this version understands, and how a payload becomes one.

A kind is a frozen dataclass with ``KIND`` and ``VERSION``; what stands in it may have fields that came ``LATER``, with what
their absence means. Anything else in the ledger is kept as it
came and reported as ``Unread``: dropping what a newer program wrote would lose somebody's record.
New features add kinds here, where they tell of a run, or in ``other_kinds``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from json.encoder import encode_basestring
from json.scanner import make_scanner
from operator import attrgetter, itemgetter
from typing import Any, Union, get_args, get_origin, get_type_hints

from ouvrage.base.canonical import canonical
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.model import accepted, around, gpus, runs, serving

RUN_KINDS: tuple[type, ...] = (
    runs.RunStarted,
    runs.RunWindow,
    runs.RunWaits,
    runs.RunMarks,
    runs.RunSpans,
    runs.RunEnded,
    runs.RunSamples,
    gpus.RunDevice,
    gpus.RunGpuWindow,
    gpus.RunEnergyMeter,
    gpus.RunEnergyWindow,
    gpus.RunElectricity,
    *around.AROUND,
    serving.RunLoad,
    serving.RunRequests,
    serving.RunServer,
    serving.RunServerWindow,
    accepted.RunAccepted,
    accepted.RunCampaign,
)
"""What a meter states about a run; all and only these are named ``run.…``."""

Key = tuple[str, int]


class _Kinds(Mapping[Key, type]):
    """Every kind by name and version.

    The summary at the end of a run needs those of a run alone. To make the others takes as long as
    everything else that the summary does, so they are made when one is asked for.
    """

    def __init__(self) -> None:
        self._run = _by_name(RUN_KINDS)

    @cached_property
    def _all(self) -> dict[Key, type]:
        from ouvrage.ledger.other_kinds import OTHER_KINDS

        return {**self._run, **_by_name(OTHER_KINDS)}

    def __getitem__(self, key: Key) -> type:
        return (self._run if key[0].startswith("run.") else self._all)[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _by_name(kinds: Iterable[Any]) -> dict[Key, type]:
    return {(kind.KIND, kind.VERSION): kind for kind in kinds}


KINDS: Mapping[Key, type] = _Kinds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A fact whose kind, version or payload this program does not understand, and why."""

    fact: Fact
    reason: str


def payload_of(value: Any) -> str:
    """The canonical payload of a kind's instance. Floats and unknown types are refused."""
    _, values, template = _form(type(value))
    return template % tuple([item if type(item) is int else _text(item) for item in values(value)])


def payloads_of(value: Any, instead: Mapping[str, Any]) -> tuple[str, str]:
    """The payload of an instance, and the one it had if some of its fields were others."""
    names, values, template = _form(type(value))
    texts = [_text(item) for item in values(value)]
    others = [
        _text(instead[name]) if name in instead else text
        for name, text in zip(names, texts, strict=True)
    ]
    return template % tuple(texts), template % tuple(others)


def fact_of(
    value: Any,
    *,
    source: str,
    id: str,
    subject: str,
    valid_from: int,
    valid_to: int | None,
    grade: Grade,
    corrects: str | None = None,
    payload: str | None = None,
) -> Fact:
    """A fact that states ``value``, an instance of a kind; ``payload`` is its, if made already."""
    return Fact(
        source=source,
        id=id,
        kind=value.KIND,
        version=value.VERSION,
        subject=subject,
        valid_from=valid_from,
        valid_to=valid_to,
        grade=grade,
        payload=payload_of(value) if payload is None else payload,
        corrects=corrects,
    )


def read(fact: Fact) -> Any:
    """The kind's instance that a fact states, or ``Unread`` with the reason."""
    try:
        value = _parsed(fact.payload)
    except (ValueError, RecursionError) as error:
        return Unread(fact=fact, reason=f"{fact.kind} payload: {error}")
    return read_value(fact, value)


def values_of(kind: str, version: int, payloads: Iterable[str]) -> Iterator[Any]:
    """The instances that payloads of one kind state, each as ``read`` has it; None where unread.

    The same text gives the same instance: a device is in the same few states again and again.
    """
    known = KINDS.get((kind, version))
    read_one = None if known is None else _reader(known)
    found: dict[str, Any] = {}
    for payload in payloads:
        if payload not in found:
            try:
                found[payload] = None if read_one is None else read_one(_parsed(payload))
            except (ValueError, TypeError, KeyError, RecursionError):
                found[payload] = None
        yield found[payload]


def rows_of(kind: type, payloads: Iterable[str], varies: str) -> Iterator[tuple[Any, ...] | None]:
    """``values_of`` for a kind of plain fields, each instance as the values of its fields in order.

    ``varies`` is the field of a whole number in which very many of them differ alone: where the text
    around it was read before, the number is all that is read.
    """
    names = _field_names(kind)
    read_one, fields_in, place = _reader(kind), attrgetter(*names), names.index(varies)
    mark = f"{canonical(varies)}:"  # in no text: quotes inside one are escaped
    around: dict[tuple[str, str], tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
    for payload in payloads:
        before, _, rest = payload.partition(mark)
        digits, comma, after = rest.partition(",")
        plain = comma and digits.isascii() and digits.isdigit() and len(digits) < _LONG
        known = around.get((before, after)) if plain and digits[0] != "0" else None
        if known is not None:
            yield (*known[0], int(digits), *known[1])
            continue
        try:
            row = fields_in(read_one(_parsed(payload)))
        except (ValueError, TypeError, KeyError, RecursionError):
            yield None
            continue
        if plain and payload.count(mark) == 1:
            around[before, after] = row[:place], row[place + 1 :]
        yield row


_LONG = 19


_decoder: Any = json.JSONDecoder()
_scan = make_scanner(_decoder)


def _parsed(text: str) -> Any:
    """``json.loads``, without its detours where there is nothing around the value."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = value = None
    return value if end == len(text) else json.loads(text)


def read_value(fact: Fact, value: Any) -> Any:
    """``read`` for a payload that was parsed already. Floats stand in no kind and are refused."""
    kind = KINDS.get((fact.kind, fact.version))
    if kind is None:
        return Unread(
            fact=fact, reason=f"kind {fact.kind} version {fact.version} is not known here"
        )
    try:
        return from_plain(kind, value)
    except (ValueError, TypeError, KeyError) as error:
        return Unread(fact=fact, reason=f"{fact.kind} payload: {error}")


def from_plain(kind: type, value: Any) -> Any:
    """A kind's instance from plain JSON. ``ValueError`` or ``TypeError`` where it is none."""
    return _reader(kind)(value)


def _text(value: Any) -> str:
    """Canonical text of a value; written out because every fact recorded passes here."""
    if value is None:
        return "null"
    if type(value) is str:
        return encode_basestring(value)  # what canonical JSON makes of a text, without its detours
    if isinstance(value, (str, int)):
        return canonical(value)
    if isinstance(value, (tuple, list)):
        return f"[{','.join([_text(item) for item in value])}]"
    if is_dataclass(value) and not isinstance(value, type):
        return payload_of(value)
    raise TypeError(f"{type(value).__name__} cannot stand in a fact")


@cache
def _form(kind: type) -> tuple[Sequence[str], Callable[[Any], Sequence[Any]], str]:
    """The fields in canonical order, what reads them, and the payload with a place for each text."""
    names = sorted(_field_names(kind))
    template = "{%s}" % ",".join(f"{canonical(name)}:%s" for name in names)
    if len(names) == 1:
        return names, lambda value: (getattr(value, names[0]),), template
    return names, attrgetter(*names), template


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


Reader = Callable[[Any], Any]


@cache
def _reader(hint: Any) -> Reader:
    """A function that turns plain JSON into a value of the hinted type, or raises."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [_reader(arg) for arg in get_args(hint) if arg is not type(None)]
        return lambda value: None if value is None else inner[0](value)
    if origin is tuple:
        item = _reader(get_args(hint)[0])
        return lambda value: tuple(item(entry) for entry in _expect(value, list))
    if is_dataclass(hint):
        return _dataclass_reader(hint)
    return lambda value: _expect(value, hint)


def _dataclass_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _field_names(kind)}
    plain = len(readers) > 1 and all(map(_is_plain, hints.values()))
    pick = itemgetter(*readers) if plain else None
    seen: set[tuple[type, ...]] = set()  # types of fields that were found right before
    later: Mapping[str, Any] = getattr(kind, "LATER", {})

    def build(value: Any) -> Any:
        given = _expect(value, dict)
        if later and given.keys() != readers.keys():
            given = {**later, **given}
        if given.keys() != readers.keys():
            odd = sorted(given.keys() ^ readers.keys())
            raise ValueError(f"fields differ from {kind.__name__}: {', '.join(odd)}")
        sorts = None if pick is None else tuple(map(type, pick(given)))
        if sorts in seen:
            return kind(**given)
        made = kind(**{name: reader(given[name]) for name, reader in readers.items()})
        if sorts is not None:
            seen.add(sorts)
        return made

    return build


def _is_plain(hint: Any) -> bool:
    """Whether the type of a value alone says that it is one of a hint."""
    inner = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return all(each in (str, int, bool, type(None)) for each in inner)


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value
