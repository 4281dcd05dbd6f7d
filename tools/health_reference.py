"""Write ``docs/reference/xid.md``, ``health-thresholds.md``, ``audit.md`` and ``work-classes.md`` from the tables they stand on.

The data files are the only source, so that the pages and ``ouvrage check`` cannot say different things. What
public tables make of a code stands beside ours, by the name of its source.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from generated import keep

from ouvrage.adapters.audit_tables import audit_table, need_table
from ouvrage.adapters.health_tables import thresholds, xid_table
from ouvrage.base.numbers import decimal_text
from ouvrage.health.needs import Need
from ouvrage.health.tables import Xid, XidTable

XID_HEAD = """\
<!-- Generated from src/ouvrage/health_data/xid.toml by tools/health_reference.py; do not edit. -->

# Xid errors

NVIDIA's driver numbers its errors and writes them into the kernel's log. This is the table by which `ouvrage check xid`
and the node agent judge them: version {version}, of {as_of}. Meanings and actions are in our own words. A code that is not
listed warns, keeps new work off that GPU, and lets the running job end.

The order in which signals are believed: the driver's own recovery action; a GPU that is gone, with or without a
code; the flag of a failed row remap; a code of this table; counters; throttling. Why: [decision 221](../decisions/0221-whom-to-believe.md).
"""

AUDIT_HEAD = """\
<!-- Generated from src/ouvrage/health_data/host_audit.toml by tools/health_reference.py; do not edit. -->

# What an audit holds against a machine

The table of `ouvrage node audit`: version {version}, of {as_of}. A version carries a mend when it is at least the greatest one that is named, or
at least the one of its own branch (1.2.9 is past 1.2.8, 1.3.2 is not past 1.3.3); a package that a distribution mended under an
older number is named last. What your distribution mended beyond that: `--mended CVE`. A passed audit counts for {days} days.
Whether a sandbox holds here is not read from versions: [it is tried out](../guides/sandbox.md).
"""

CLASS_HEAD = """\
<!-- Generated from src/ouvrage/health_data/work_classes.toml by tools/health_reference.py; do not edit. -->

# What each class of work needs

The table of `ouvrage node qualify --for CLASS`: version {version}, of {as_of}. *If tried*: said where it was measured, and no reason to fail
where it was not; everything else must be measured and hold. A machine whose GPUs cannot be read is taken as one with a single GPU.
"""

THRESHOLD_HEAD = """\
<!-- Generated from src/ouvrage/health_data/thresholds.toml by tools/health_reference.py; do not edit. -->

# Thresholds of health

The bounds of `ouvrage check` and of the node agent: version {version}, of {as_of}. *Our choice* is said where nothing
better was found; a node's owner who measures better should change it.
"""


def main() -> int:
    """Write or compare the pages."""
    return max(
        keep("docs/reference/xid.md", _xid_page()),
        keep("docs/reference/health-thresholds.md", _threshold_page()),
        keep("docs/reference/audit.md", _audit_page()),
        keep("docs/reference/work-classes.md", _class_page()),
    )


def _audit_page() -> str:
    table = audit_table()
    escapes = _table(
        (
            "what is old",
            "CVE",
            "verdict",
            "what it lets somebody do",
            "from",
            "mended in",
            "source",
        ),
        (
            (
                e.component,
                e.cve,
                e.verdict,
                e.what,
                e.since,
                ", ".join((*e.fixed, *e.mended)),
                e.source,
            )
            for e in table.escapes
        ),
    )
    services = _table(
        ("port", "what it is", "verdict", "why"),
        ((f"{s.port}/{s.protocol}", s.name, s.verdict, s.why) for s in table.services.values()),
    )
    head = AUDIT_HEAD.format(version=table.version, as_of=table.as_of, days=table.valid_days)
    return "\n\n".join([head.rstrip(), "## Known ways out", escapes, "## Ports", services, ""]).rstrip() + "\n"  # fmt: skip


def _class_page() -> str:
    table = need_table()
    checks = _table(
        ("check", "code of its failure", "compared", "what to do"),
        ((f"{t.id}: {t.words}", f"`{t.code}`", f"{t.operator} {t.unit}".strip(), t.remedy) for t in table.tests.values()),
    )  # fmt: skip
    parts = [CLASS_HEAD.format(version=table.version, as_of=table.as_of).rstrip()]
    for name, words in table.classes.items():
        needs = table.of(name)
        rows = (
            (table.tests[id].words, _amount(needs[id], table.tests[id].unit), "" if needs[id].needed else "if tried", needs[id].source)
            for id in table.tests
            if id in needs
        )  # fmt: skip
        parts += [f"## {name}", f"{words[0].upper()}{words[1:]}.", _table(("what", "needed", "", "source"), rows)]  # fmt: skip
    return "\n\n".join([*parts, "## Checks and their codes", checks]) + "\n"


def _amount(need: Need, unit: str) -> str:
    per = {"machine": "", "gpu": " for each GPU", "gpu_gib": " for each GiB of the GPUs' memory"}
    words = f"{decimal_text(need.value)} {unit}".rstrip() + per[need.per]
    words += f", and {decimal_text(need.base)}" if need.base else ""
    words += f", {decimal_text(need.least)} at least" if need.least is not None else ""
    return words + (f", {decimal_text(need.most)} at most" if need.most is not None else "")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _xid_page() -> str:
    table = xid_table()
    codes = _table(
        ("code", "meaning", "what follows", "at stake", "elsewhere"),
        (
            (str(row.code), _meaning(row), _follows(row, table), row.scope.replace("_", " "), _elsewhere(row))
            for row in table.codes.values()
        ),
    )  # fmt: skip
    return "\n\n".join(
        [
            XID_HEAD.format(version=table.version, as_of=table.as_of).rstrip(),
            "## What an action means",
            _actions(table),
            "## The driver's recovery action",
            "Of several values that were seen since the last verification the heaviest stands: it can step down while the fault is there.",
            _recoveries(table),
            "## Codes",
            codes,
            "## Where public tables disagree",
            _disputes(table),
            "## What comes again",
            "A rule *on trial* reports what it would have done and fences nothing.",
            _repeats(table),
            "## Sources",
            _table(
                ("name", "what was read", "where"),
                ((s.name, s.what, s.where) for s in table.sources),
            ),
        ]
    )


def _meaning(row: Xid) -> str:
    return f"{row.meaning}; {row.note}" if row.note else row.meaning


def _follows(row: Xid, table: XidTable) -> str:
    if row.action == "decode":
        return "the line's own word"
    action = table.actions[row.action]
    return f"{action.verdict}: {action.words}"


def _elsewhere(row: Xid) -> str:
    return "; ".join(f"{name}: {words}" for name, words in row.elsewhere.items())


def _actions(table: XidTable) -> str:
    fences = {"none": "nothing", "drain": "new work", "now": "new work; what runs is in doubt"}
    return _table(
        ("action", "verdict", "keeps away", "the ladder begins at", "once idle"),
        (
            (a.words, a.verdict, fences[a.fence], a.rung.replace("_", " "), a.at_drain.replace("_", " "))
            for a in table.actions.values()
        ),
    )  # fmt: skip


def _recoveries(table: XidTable) -> str:
    return _table(
        ("value", "name", "what follows"),
        ((str(r.value), r.name, table.actions[r.action].words) for r in table.recoveries.values()),
    )


def _disputes(table: XidTable) -> str:
    by_words: dict[str, list[int]] = {}
    for row in table.codes.values():
        if row.dispute:
            by_words.setdefault(row.dispute, []).append(row.code)
    return _table(
        ("codes", "what others do, and what is done here"),
        ((", ".join(map(str, codes)), words) for words, codes in by_words.items()),
    )


def _repeats(table: XidTable) -> str:
    return _table(
        ("rule", "codes", "times", "within", "by", "what follows", "mode"),
        (
            (
                rule.name, ", ".join(map(str, sorted(rule.codes))), str(rule.count),
                f"{rule.window_us // 3_600_000_000} h",
                f"{rule.jobs} jobs of {rule.tenants} owners, same {rule.same}" if rule.jobs else f"same {rule.same}",
                table.actions[rule.action].words, "on trial" if rule.mode == "shadow" else "live",
            )
            for rule in table.repeats
        ),
    )  # fmt: skip


def _threshold_page() -> str:
    found = thresholds()
    sorts = {
        "hard": "at once",
        "soft": "when enough looks agree",
        "rate": "by events within the window",
    }
    rules = _table(
        ("rules", "count", "lasting makes it", "mode", "why"),
        (
            (
                f"`{r.pattern}`", sorts[r.sort],
                f"{r.becomes} after {r.after_us // 1_000_000} s" if r.becomes else "",
                "on trial" if r.mode == "shadow" else "live", r.why,
            )
            for r in found.rules
        ),
    )  # fmt: skip
    bounds = _table(
        ("name", "bound", "what it bounds", "where it is from"),
        (
            (f"`{t.name}`", f"{decimal_text(t.value)} {t.unit}", t.what, t.source)
            for t in found.all.values()
        ),
    )
    head = THRESHOLD_HEAD.format(version=found.version, as_of=found.as_of).rstrip()
    return "\n\n".join(
        [
            head,
            bounds,
            "## How looks become a verdict that may fence",
            "The first pattern that fits counts.",
            rules,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
