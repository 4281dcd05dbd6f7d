"""``ouvrage node audit``: is this machine safe enough for strangers' work?

Decides what may be said beside what is seen, and that the result is recorded, so that an offer to strangers can stand on it.
The exit codes are those of ``ouvrage check``: 0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN and every error of its own.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import click

from ouvrage.adapters.audit_tables import audit_table
from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.host_audit import host_seen
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY
from ouvrage.cli.check import Check
from ouvrage.cli.check_words import check_json, check_words
from ouvrage.cli.node_proofs import node_named, push, recorded
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.health.audit import Said, audit
from ouvrage.health.findings import together
from ouvrage.model.health import VERDICTS, Audited, CheckResult, NodeAudited

HERE = "/"
RULES = "docs/reference/audit.md"


@click.command("audit", cls=Check)
@click.argument("node", metavar="[NODE]", required=False)
@click.option(
    "--allow", "allowed", metavar="PORT", type=click.IntRange(1, 65535), multiple=True,
    help="A port that is open on purpose.",
)  # fmt: skip
@click.option(
    "--mended", metavar="CVE", multiple=True,
    help="A fault that the distribution mended under its own number, as you say.",
)  # fmt: skip
@click.option("--admin-network", "admin", metavar="NET", help="Where BMCs and switches are: 10.9.0.0/24.")  # fmt: skip
@click.option("--root", metavar="DIR", default=HERE, help="Stands in for /; then nothing is recorded.")  # fmt: skip
@click.option("--push", "pushed", is_flag=True, help="Also tell the platform that the node is part of.")  # fmt: skip
@json_option
@plain_option
def node_audit(
    node: str | None, root: str, pushed: bool, as_json: bool, plain: bool, **said: Any
) -> int:
    """Is this machine safe enough for strangers' work?

    \b
    Looks at services open to other machines, sign-in by SSH, containers without privileges, versions with a known
    way out, IOMMU groups, upgrades of the driver, and the admin network. Nothing is changed.
    Exit code: 0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN and every error of its own.
    """  # fmt: skip
    if pushed and root != HERE:
        raise OuvrageError("audit/root", "another machine's files are nobody's audit", hint="leave --push or --root out")  # fmt: skip
    results = [replace(each, grade=_grade(root)) for each in audit(host_seen(root), audit_table(), _said(**said))]  # fmt: skip
    whole = together("audit", results)
    if root == HERE:
        name = node_named(node)
        fact = recorded(_audited(name, whole, results), grade=Grade.MEASURED)
        wrote()
        if pushed:
            push(name, [fact])
    parts = {each.check: [each] for each in results}
    if as_json:
        say_json(check_json(whole, parts))
    else:
        say_text(check_words(whole, parts, plain=plain, rules=RULES))
    return VERDICTS.index(whole.verdict)


def _grade(root: str) -> Grade:
    """Files that stand in for a machine are somebody's word."""
    return Grade.MEASURED if root == HERE else Grade.REPORTED


def _said(*, allowed: tuple[int, ...], mended: tuple[str, ...], admin: str | None) -> Said:
    known = {each.cve for each in audit_table().escapes}
    odd = sorted(set(mended) - known)
    if odd:
        raise OuvrageError("audit/cve", f"{odd[0]} is none that is looked for", hint=f"one of {', '.join(sorted(known))}")  # fmt: skip
    try:
        network = None if admin is None else IPv4Network(admin)
    except ValueError as error:
        raise OuvrageError("audit/network", f"{admin!r} is no network: {error}", hint="--admin-network 10.9.0.0/24") from error  # fmt: skip
    return Said(allowed=frozenset(allowed), mended=frozenset(mended), admin=network)


def _audited(node: str, whole: CheckResult, results: list[CheckResult]) -> NodeAudited:
    table = audit_table()
    return NodeAudited(
        audit=new_id(),
        node=node,
        verdict=whole.verdict,
        results=tuple(
            Audited(check=e.check, verdict=e.verdict, rule=e.rule, reason=e.reasons[0])
            for e in results
        ),
        table=table.version,
        expires_us=now_us() + int(table.valid_days * DAY),
    )
