"""RIPEstat: what the RIPE NCC's route collectors saw of an AS or a prefix.

Knows three of its data calls. A field that an answer leaves out is *no answer*; a zero, a false and
an empty text are *absent*. What the collectors see is their report: routes that no collector's peer
carries exist too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ouvrage.adapters.answers import Place, Read, Unreadable, json_object, part, word
from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_us
from ouvrage.evidence.observations import absent, present, unanswered
from ouvrage.model.observations import Finding

BASE = "https://stat.ripe.net/data"
_WORTH = Grade.REPORTED
_NOT_SHOWN = (
    "what the route collectors did not see, what happened between two such answers, and why; "
    "routes say nothing of machines, customers or contracts"
)
_LISTED_PREFIXES = 50


def overview_address(base: str, subject: str) -> str:
    """Where the overview of an AS is."""
    return _address(base, "as-overview", subject)


def status_address(base: str, subject: str) -> str:
    """Where the routing status of an AS or a prefix is."""
    return _address(base, "routing-status", subject)


def prefixes_address(base: str, subject: str) -> str:
    """Where the prefixes that an AS announces are."""
    return _address(base, "announced-prefixes", subject)


def _address(base: str, call: str, subject: str) -> str:
    return f"{base.rstrip('/')}/{call}/data.json?resource={quote(subject, safe='')}"


def _data(raw: bytes, subject: str) -> Mapping[str, Any]:
    """The ``data`` of an answer that succeeded and is about what was asked."""
    whole = json_object(raw)
    if whole.get("status") != "ok":
        raise Unreadable(f"status is {whole.get('status')!r}, not 'ok'")
    data = part(whole, "data", dict)
    if data is None:
        raise Unreadable("no data")
    about = data.get("resource")
    if str(about).upper().removeprefix("AS") != subject.upper().removeprefix("AS"):
        raise Unreadable(f"it is about {about!r}, not {subject}")
    return data


def _moment(data: Mapping[str, Any]) -> int | None:
    """The moment for which an answer holds; RIPEstat writes UTC without saying so."""
    for name in ("query_time", "query_endtime", "latest_time"):
        text = data.get(name)
        if isinstance(text, str):
            try:
                return utc_us(text if text.endswith("Z") else f"{text}Z")
            except (ValueError, OverflowError):
                return None
    return None


def read_overview(raw: bytes, subject: str) -> Read:
    """``as-overview``: whether the AS is announced, and the holder's name."""
    data = _data(raw, subject)
    announced, holder = part(data, "announced", bool), data.get("holder", ...)
    findings = [
        unanswered("announced", _WORTH)
        if announced is None
        else (present("announced", "yes", _WORTH) if announced else absent("announced", _WORTH))
    ]
    if holder is ...:
        findings.append(unanswered("holder", _WORTH))
    elif holder is None or not word(str(holder)):
        findings.append(absent("holder", _WORTH))
    else:
        findings.append(present("holder", word(str(holder)), _WORTH))
    return Read(findings=tuple(findings), page_us=_moment(data))


def read_status(raw: bytes, subject: str) -> Read:
    """``routing-status``: how many collectors' peers see it, how much is announced, when last."""
    data = _data(raw, subject)
    findings = [*_visibility(data), *_space(data), *_last_seen(data)]
    return Read(findings=tuple(findings), page_us=_moment(data))


def _visibility(data: Mapping[str, Any]) -> Iterator[Finding]:
    seen = part(data, "visibility", dict) or {}
    for family in ("v4", "v6"):
        peers = part(seen, family, dict) or {}
        yield _counted(f"collector peers that see it, {family}", peers, "ris_peers_seeing", "peers")


def _space(data: Mapping[str, Any]) -> Iterator[Finding]:
    space = part(data, "announced_space", dict) or {}
    for family in ("v4", "v6"):
        announced = part(space, family, dict) or {}
        yield _counted(f"prefixes announced, {family}", announced, "prefixes", "prefixes")


def _counted(name: str, values: Mapping[str, Any], field: str, unit: str) -> Finding:
    number = part(values, field, int)
    if number is None or number < 0:
        return unanswered(name, _WORTH)
    return present(name, str(number), _WORTH, unit) if number else absent(name, _WORTH, unit)


def _last_seen(data: Mapping[str, Any]) -> Iterator[Finding]:
    last = part(data, "last_seen", dict)
    time = part(last, "time", str) if last else None
    if time:
        yield present("last seen by the collectors", word(time), _WORTH)
    elif last is not None:
        yield absent("last seen by the collectors", _WORTH)
    else:
        yield unanswered("last seen by the collectors", _WORTH)


def read_block_status(raw: bytes, subject: str) -> Read:
    """``routing-status`` of an address block: who sees it, when last."""
    data = _data(raw, subject)
    findings = (*_visibility(data), *_last_seen(data))
    return Read(findings=findings, page_us=_moment(data))


def read_prefixes(raw: bytes, subject: str) -> Read:
    """``announced-prefixes``: the address blocks that the AS announces."""
    data = _data(raw, subject)
    rows = part(data, "prefixes", list)
    if rows is None:
        return Read(findings=(unanswered("prefixes announced", _WORTH),), page_us=_moment(data))
    names = sorted({word(str(part(_row(row), "prefix", str))) for row in rows})
    if not names:
        found = absent("prefixes announced", _WORTH)
    else:
        more = len(names) - _LISTED_PREFIXES
        listed = ", ".join(names[:_LISTED_PREFIXES])
        found = present(
            "prefixes announced", f"{listed} and {more} more" if more > 0 else listed, _WORTH
        )
    return Read(findings=(found,), page_us=_moment(data))


def _row(row: object) -> Mapping[str, Any]:
    if isinstance(row, dict) and isinstance(row.get("prefix"), str):
        return row
    raise Unreadable("a row of prefixes without a prefix")


OVERVIEW = Place(
    name="RIPEstat as-overview",
    properties=("announced", "holder"),
    grade=_WORTH,
    not_shown=_NOT_SHOWN,
    read=read_overview,
)
STATUS = Place(
    name="RIPEstat routing-status",
    properties=(
        "collector peers that see it, v4",
        "collector peers that see it, v6",
        "prefixes announced, v4",
        "prefixes announced, v6",
        "last seen by the collectors",
    ),
    grade=_WORTH,
    not_shown=_NOT_SHOWN,
    read=read_status,
)
BLOCK = Place(
    name="RIPEstat routing-status",
    properties=(
        "collector peers that see it, v4",
        "collector peers that see it, v6",
        "last seen by the collectors",
    ),
    grade=_WORTH,
    not_shown=_NOT_SHOWN,
    read=read_block_status,
)
PREFIXES = Place(
    name="RIPEstat announced-prefixes",
    properties=("prefixes announced",),
    grade=_WORTH,
    not_shown=_NOT_SHOWN,
    read=read_prefixes,
)
