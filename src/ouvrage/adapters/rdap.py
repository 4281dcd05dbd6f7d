"""RDAP (RFC 9083): what a registry lists of an AS number or an address block.

A registry answers 404 for what it does not hold, for what another registry holds and for what it
will not show, so a 404 is *no answer* here, never *absent*. A registered name and country are what
somebody had entered: an administrative label, neither use nor a seat.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ouvrage.adapters.answers import Place, Read, Unreadable, json_object, part, word
from ouvrage.base.grades import Grade
from ouvrage.evidence.observations import absent, present
from ouvrage.model.observations import Finding

BASE = "https://rdap.db.ripe.net"
_WORTH = Grade.LISTED
_NOT_SHOWN = (
    "whether what is registered is used, by whom and where; a registry that answers 404 has not said "
    "that there is no registration"
)
_MOST_ENTITIES = 20


def autnum_address(base: str, subject: str) -> str:
    """Where a registry's record of an AS is."""
    return f"{base.rstrip('/')}/autnum/{quote(subject.upper().removeprefix('AS'), safe='')}"


def ip_address(base: str, subject: str) -> str:
    """Where a registry's record of an address block is."""
    return f"{base.rstrip('/')}/ip/{quote(subject, safe='/:')}"


def read_autnum(raw: bytes, subject: str) -> Read:
    """The registration of an AS number."""
    record = _record(raw, "autnum")
    first, last = part(record, "startAutnum", int), part(record, "endAutnum", int)
    number = subject.upper().removeprefix("AS")
    if not number.isdecimal():
        raise Unreadable(f"{subject} is no AS number")
    if first is None or not first <= int(number) <= (first if last is None else last):
        raise Unreadable(f"it is about AS {first} to {last}, not {subject}")
    return Read(findings=_registered(record, str(record.get("handle") or subject)))


def read_ip(raw: bytes, subject: str) -> Read:
    """The registration of an address block."""
    record = _record(raw, "ip network")
    try:
        block = ipaddress.ip_network(subject, strict=False)
        first = ipaddress.ip_address(part(record, "startAddress", str) or "")
        last = ipaddress.ip_address(part(record, "endAddress", str) or "")
    except ValueError as error:
        raise Unreadable("no first and last address") from error
    if not int(first) <= int(block[0]) <= int(last) or first.version != block.version:
        raise Unreadable(f"it is about {first} to {last}, not {subject}")
    return Read(findings=_registered(record, f"{first} to {last}"))


def _record(raw: bytes, kind: str) -> Mapping[str, Any]:
    record = json_object(raw)
    if record.get("objectClassName") != kind:
        raise Unreadable(f"objectClassName is {record.get('objectClassName')!r}, not {kind!r}")
    return record


def _registered(record: Mapping[str, Any], what: str) -> tuple[Finding, ...]:
    return (
        present("registration", word(what) or "without a handle", _WORTH),
        _text(record, "name", "registered name"),
        _text(record, "country", "registered country"),
        _holder(record),
    )


def _text(record: Mapping[str, Any], field: str, name: str) -> Finding:
    text = word(part(record, field, str) or "")
    return present(name, text, _WORTH) if text else absent(name, _WORTH)


def _holder(record: Mapping[str, Any]) -> Finding:
    """The name on the registrant's card, where the registry shows one."""
    for entity in (part(record, "entities", list) or [])[:_MOST_ENTITIES]:
        if isinstance(entity, dict) and "registrant" in (part(entity, "roles", list) or []):
            name = word(_card_name(entity))
            if name:
                return present("registrant", name, _WORTH)
    return absent("registrant", _WORTH)


def _card_name(entity: Mapping[str, Any]) -> str:
    card = part(entity, "vcardArray", list) or []
    lines = card[1] if len(card) > 1 and isinstance(card[1], list) else []
    for line in lines:
        if isinstance(line, list) and len(line) > 3 and line[0] == "fn":
            return line[3] if isinstance(line[3], str) else ""
    return ""


_PROPERTIES = ("registration", "registered name", "registered country", "registrant")
AUTNUM = Place(
    name="RDAP autnum",
    properties=_PROPERTIES,
    grade=_WORTH,
    not_shown=_NOT_SHOWN,
    read=read_autnum,
)
IP = Place(name="RDAP ip", properties=_PROPERTIES, grade=_WORTH, not_shown=_NOT_SHOWN, read=read_ip)
