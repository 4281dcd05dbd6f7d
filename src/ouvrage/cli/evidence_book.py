"""The evidence in a ledger, for the verbs that add to it, show it or judge by it.

Decides which kinds of facts are evidence, how a statement is called by name, and what a recording
answers. The example sets are files of the package and go in the same way as a person's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.ledger import Ledger
from ouvrage.evidence.claims import name_of
from ouvrage.evidence.published import PUBLISHED
from ouvrage.evidence.reading import facts_in
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.view import in_force
from ouvrage.model.claims import Claim
from ouvrage.model.observations import Observation, Question, Search
from ouvrage.model.records import Withdrawal
from ouvrage.store.store import Outcome

KINDS = (Claim.KIND, Observation.KIND, Search.KIND, Question.KIND)
_LARGEST_FILE = 16 << 20


def evidence_in(ledger: Ledger, as_of: int | None = None) -> list[Recorded]:
    """Every record of evidence and every withdrawal, as known at a moment, in order."""
    kinds = (*KINDS, Withdrawal.KIND)
    found = [r for kind in kinds for r in ledger.store.records(kind=kind, as_of=as_of)]
    return sorted(found, key=lambda entry: entry.seq)


def standing(ledger: Ledger, as_of: int | None = None) -> list[Recorded]:
    """The evidence that nothing corrects or withdraws, in order of recording."""
    kept = [r for r in in_force(evidence_in(ledger, as_of)) if r.fact.kind in KINDS]
    return sorted(kept, key=lambda entry: entry.seq)


def called(name: str, records: Sequence[Recorded]) -> Recorded:
    """The statement of this name. Raises ``OuvrageError`` ``evidence/unknown`` or ``/ambiguous``."""
    wanted = name.strip()
    found = [r for r in records if wanted in (name_of(r.fact), r.fact.key, r.fact.id)]
    found = found or [r for r in records if name_of(r.fact).casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise OuvrageError(
            "evidence/ambiguous",
            f"{len(found)} statements are called {name!r}",
            where=tuple(r.fact.key for r in found[:5]),
            hint="use one of these keys",
        )
    raise OuvrageError(
        "evidence/unknown",
        f"no statement is called {name!r}",
        where=tuple(name_of(r.fact) for r in records[-3:]),
        hint="ouvrage evidence list shows them all",
    )


def record(ledger: Ledger, facts: Sequence[Fact]) -> list[Outcome]:
    """Record facts, all of them or none."""
    own = source_id(ledger.home)
    return ledger.store.append(list(facts), now_us=now_us(), own_source=own)


def recorded_json(facts: Sequence[Fact], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What ``evidence add --json`` prints."""
    return {
        "recorded": [
            {"name": name_of(fact), "fact": fact.key, "kind": fact.kind, "result": outcome.result}
            for fact, outcome in zip(facts, outcomes, strict=True)
        ]
    }


def shipped_names() -> list[str]:
    """The example sets that come with the package."""
    place = resources.files("ouvrage") / "evidence_data"
    return sorted(
        file.name.removesuffix(".json") for file in place.iterdir() if file.name.endswith(".json")
    )


def shipped(name: str) -> list[Fact]:
    """The facts of an example set. Raises ``OuvrageError`` ``evidence/unknown``."""
    if name not in shipped_names():
        raise OuvrageError(
            "evidence/unknown",
            f"no example set is called {name!r}",
            hint=f"there is {', '.join(shipped_names())}",
        )
    file = resources.files("ouvrage") / "evidence_data" / f"{name}.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    return facts_in(document, file=f"{name}.json", source=PUBLISHED)


def from_file(path: Path, source: str) -> list[Fact]:
    """The facts of a person's own file. Raises ``OuvrageError`` ``evidence/file``."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE} bytes")
        document = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise OuvrageError(
            "evidence/file",
            f"{path}:{error.lineno}: not JSON: {error.msg}",
            hint="the form is that of docs/guides/evidence.md",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise OuvrageError(
            "evidence/file", f"{path} cannot be read: {error}", hint="name a JSON file"
        ) from error
    return facts_in(document, file=str(path), source=source)
