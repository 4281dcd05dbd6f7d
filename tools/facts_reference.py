"""Write ``docs/reference/facts.md`` from the kinds of facts that the ledger understands.

The classes and their docstrings are the only source: a field cannot be added without the page
showing it. Types are given as they stand in the payload, which is JSON.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from generated import keep

from ouvrage.ledger.kinds import KINDS

_WORDS: dict[Any, str] = {str: "text", int: "integer", bool: "true or false"}
HEAD = """\
<!-- Generated from ouvrage.ledger.kinds by tools/facts_reference.py; do not edit. -->

# Facts

Every fact in the ledger has a source, an id, a kind with a version, a subject, a half-open period in
which it holds, a grade, and a payload. This page lists the kinds that this version understands and
the fields of their payloads. A kind or a version that is not on this page is kept as it came and
reported, never dropped.

A payload is canonical JSON: keys sorted, no white space, no binary fractions. Money and rates are
decimal text. Names that end in `_us` are microseconds, in `_bytes` bytes, in `_ppm` millionths.
"""


def main() -> int:
    """Write or compare the page."""
    parts: dict[str, type] = {}
    sections = [
        _section(kind, f"`{name}`, version {version}", parts)
        for (name, version), kind in KINDS.items()
    ]
    shown: set[str] = set()
    inner: list[str] = []
    while parts.keys() - shown:
        name = sorted(parts.keys() - shown)[0]
        shown.add(name)
        inner.append(_section(parts[name], f"`{name}`", parts))
    if inner:
        sections.append("## Parts of payloads\n\nObjects that stand inside the payloads above.")
        sections.extend(section.replace("## ", "### ", 1) for section in inner)
    return keep("docs/reference/facts.md", "\n\n".join([HEAD.rstrip(), *sections]))


def _section(kind: type, title: str, parts: dict[str, type]) -> str:
    hints = get_type_hints(kind)
    rows = [
        f"| `{f.name}` | {_type_words(hints[f.name], parts)} |" for f in fields(cast(Any, kind))
    ]
    return "\n".join(
        [f"## {title}", "", _prose(kind), "", "| field | type |", "| --- | --- |", *rows]
    )


def _prose(kind: type) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", inspect.cleandoc(kind.__doc__ or ""))


def _type_words(hint: Any, parts: dict[str, type]) -> str:
    """The type as JSON has it: ``text``, ``integer``, ``list of ...``, or the name of a part."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [_type_words(arg, parts) for arg in get_args(hint) if arg is not type(None)]
        return f"{' or '.join(inner)}, or null"
    if get_origin(hint) is tuple:
        return f"list of {_type_words(get_args(hint)[0], parts)}"
    if is_dataclass(hint) and isinstance(hint, type):
        parts[hint.__name__] = hint
        return f"`{hint.__name__}`"
    return _WORDS[hint]


if __name__ == "__main__":
    sys.exit(main())
