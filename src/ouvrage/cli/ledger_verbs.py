"""``verify``, ``rebuild``, ``backup``, ``restore``: the verbs that keep the books themselves.

Decides only what is printed; the checking is ``store/audit.py``, the rest its neighbours.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.home import home
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.ledger.laws import Breach
from ouvrage.store.archive import Archived
from ouvrage.store.archive import backup as write_backup
from ouvrage.store.archive import restore as read_backup
from ouvrage.store.audit import Audit, Checked, audit
from ouvrage.store.market_table import rebuild_market
from ouvrage.store.platform.dues_rebuild import rebuild_odd_dues
from ouvrage.store.platform.rebuild_work import rebuild_odd_work
from ouvrage.store.projections import rebuild as rebuild_runs
from ouvrage.store.store import open_store


@click.command()
@json_option
def verify(*, as_json: bool) -> int:
    """Check every law over everything recorded.

    Prints what was checked and the first thing found broken. Exit code 1 where a law is broken.
    """
    with opened() as ledger:
        found = audit(ledger.store, ledger.home)
    if as_json:
        say_json(audit_json(found))
    else:
        say_text(audit_text(found))
    return 0 if found.first is None else 1


def refuse_while_serving(where: Path) -> None:
    """Refuse to make a platform's tables anew while its server reads and changes them."""
    if not (where / "server.lock").exists():
        return
    from ouvrage.server.serving import running_pid

    if running_pid(where) is not None:
        raise OuvrageError(
            "rebuild/serving",
            f"a server runs on {where}",
            hint=f"stop it first: ouvrage down --state {where}",
        )


@click.command()
@json_option
def rebuild(*, as_json: bool) -> int:
    """Make the derived tables anew from the facts."""
    with opened() as ledger:
        refuse_while_serving(ledger.home)
        rebuild_odd_work(ledger.store)
        rebuild_odd_dues(ledger.store)
        made = rebuild_runs(ledger.store)
        catalogues = len(rebuild_market(ledger.store).catalogues)
    if as_json:
        say_json(
            {
                "runs": len(made.rows),
                "catalogues": catalogues,
                "facts": made.seq,
                "sha256": made.sha256,
            }
        )
    else:
        also = f" and {_count(catalogues, 'catalogue')}" if catalogues else ""
        say_text(
            f"Made {_count(len(made.rows), 'run')}{also} anew from {_count(made.seq, 'fact')}; "
            f"the rows have the hash {made.sha256[:16]}"
        )
    return 0


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def backup(file: Path, *, as_json: bool) -> int:
    """Write everything recorded into one new FILE.

    Runs still going are not part of it.
    """
    with opened() as ledger:
        written = write_backup(ledger.store, ledger.home, file)
        running = len(ledger.intake.running)
    if as_json:
        say_json({**archived_json(written, file), "still_running": running})
        return 0
    say_text(f"Wrote {_holding(written)} to {file}")
    if running:
        say_text(f"  {_count(running, 'run')} still going: not part of it")
    say_text(f"Into an empty home: OUVRAGE_HOME=DIR ouvrage restore {file}")
    return 0


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def restore(file: Path, *, as_json: bool) -> int:
    """Fill an empty home from the backup FILE.

    All of the file is checked before any of it is written. A home that holds facts is refused.
    """
    place = home()
    with open_store(os.environ.get("OUVRAGE_STORE") or place / "ouvrage.db") as store:
        try:
            found = read_backup(file, store, place)
        except OuvrageError as error:
            if not error.code.startswith("restore/"):
                wrote()  # the samples may be there already when the store fails
            raise
    if as_json:
        say_json(archived_json(found, file))
        return 0
    say_text(f"Restored {_holding(found)} from {file}")
    say_text("Check it: ouvrage verify")
    return 0


COMMANDS = (verify, rebuild, backup, restore)


def audit_text(found: Audit) -> str:
    """What ``ouvrage verify`` prints."""
    width = max(len(each.law.name) for each in found.checked)
    lines = [_verdict(found), "", f"  {'law':<{width}}  {'facts':>9}"]
    for each in found.checked:
        broken = len(each.breaches)
        state = f"{broken:,} broken" if broken else "ok"
        lines.append(
            f"  {each.law.name:<{width}}  {each.records:>9,}  {state:<9}  {each.law.statement}"
        )
    if found.unread:
        lines += ["", "  kept, and not understood by this version:"]
        lines += [
            f"    {_count(count, 'fact')} of {safe(kind)} version {version}"
            for (kind, version), count in found.unread.items()
        ]
    if found.missing:
        lines += ["", f"  samples of {_count(len(found.missing), 'run')} are not in this home"]
    first = found.first
    if first is not None:
        lines += ["", *_breach_lines(first)]
    return "\n".join(lines)


def _verdict(found: Audit) -> str:
    laws = _count(len(found.checked), "law")
    if found.first is None and not found.facts:
        return f"Nothing is recorded yet, and {laws} hold of it. Begin: ouvrage run -- COMMAND"
    if found.first is None:
        return f"The books hold: {laws} over {_count(found.facts, 'fact')}, nothing broken."
    broken = sum(bool(each.breaches) for each in found.checked)
    return f"The books do not hold: {broken} of {laws} broken over {_count(found.facts, 'fact')}."


def _breach_lines(first: Breach) -> list[str]:
    return [
        f"first broken: {first.law}",
        f"  {safe(first.where)}",
        f"  {safe(first.found)}",
        "  hint: nothing was changed; compare with the last backup before you record more",
    ]


def audit_json(found: Audit) -> dict[str, Any]:
    """What ``ouvrage verify --json`` prints."""
    return {
        "holds": found.first is None,
        "facts": found.facts,
        "first_broken": _breach_json(found.first),
        "laws": [_checked_json(each) for each in found.checked],
        "unread": [
            {"kind": kind, "version": version, "facts": count}
            for (kind, version), count in found.unread.items()
        ],
        "missing_samples": list(found.missing),
    }


def _checked_json(each: Checked) -> dict[str, Any]:
    first = each.breaches[0] if each.breaches else None
    return {
        "law": each.law.name,
        "statement": each.law.statement,
        "records": each.records,
        "broken": len(each.breaches),
        "first": _breach_json(first),
    }


def _breach_json(breach: Breach | None) -> dict[str, str] | None:
    if breach is None:
        return None
    return {"law": breach.law, "where": breach.where, "found": breach.found}


def archived_json(archived: Archived, file: Path) -> dict[str, Any]:
    """What ``backup`` and ``restore`` print with ``--json``."""
    return {
        "file": str(file),
        "facts": archived.facts,
        "samples": archived.samples,
        "missing_samples": list(archived.missing),
    }


def _holding(archived: Archived) -> str:
    text = f"{_count(archived.facts, 'fact')} and the samples of {_count(archived.samples, 'run')}"
    if archived.missing:
        text += f" ({len(archived.missing)} were not there)"
    return text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
