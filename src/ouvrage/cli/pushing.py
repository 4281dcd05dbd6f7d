"""A run sent to a server: in parts that the server takes one after the other, each of which counts once.

Decides how large a part is, and that conflicts and facts of kinds that concern this home alone stay here. What arrived before an
interruption stays there; the next push sends the parts again, and the server says that it has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ouvrage.cli.ledger import known_runs, opened
from ouvrage.cli.output import say_json, say_text, wrote
from ouvrage.cli.talking import talk
from ouvrage.ledger.facts import Fact
from ouvrage.metering.exchange import export_run
from ouvrage.metering.run_view import TRAVELS
from ouvrage.model.runs import RunSamples, RunStarted
from ouvrage.pricing.words import counted
from ouvrage.store.samples import read_sealed

PART = 2000
"""Facts in a part, beside the run's start."""
_RESULTS = ("accepted", "exists", "conflict")


def push_run(name: str, address: str | None, project: str | None, *, as_json: bool) -> int:
    """Send a run to the server at an address, or to the one meant; the exit code."""
    with opened() as ledger:
        (found,) = known_runs(ledger, [name], None)
        facts = [entry.fact for entry in ledger.store.records(subject=found)]
        samples = read_sealed(ledger.home, found)
    with talk(address) as server:
        answers = [
            server.post_bytes("/v1/facts", part, project=project)
            for part in parts_of(found, facts, samples)
        ]
        url = server.server.url
    wrote()
    return _say(url, answers, as_json=as_json)


def parts_of(run: str, facts: Sequence[Fact], samples: bytes | None) -> Iterator[bytes]:
    """Files that each hold the start of a run and a part of its facts; the raw samples come with the last."""
    known = [fact for fact in facts if fact.kind in TRAVELS]
    starts = [fact for fact in known if fact.kind == RunStarted.KIND]
    rest = sorted(
        (fact for fact in known if fact.kind != RunStarted.KIND),
        key=lambda fact: fact.kind == RunSamples.KIND,
    )
    for begin in range(0, max(1, len(rest)), PART):
        last = begin + PART >= len(rest)
        part = [*starts, *rest[begin : begin + PART]]
        yield export_run(run, part, samples if last else None)


def _say(url: str, answers: Sequence[Any], *, as_json: bool) -> int:
    last = answers[-1]
    counts = {
        result: sum(answer["results"].count(result) for answer in answers) for result in _RESULTS
    }
    conflicts = [each for answer in answers for each in answer["conflicts"]]
    where = f"{last['org_name']}/{last['project_name']} at {url}"
    if as_json:
        kept = {name: last[name] for name in ("run", "code", "org_name", "project", "project_name")}
        samples = any(answer["samples"] for answer in answers)
        say_json({**kept, "server": url, "samples": samples, **counts, "conflicts": conflicts})
    elif conflicts:
        many = counted(len(conflicts), "fact")
        lines = [f"error[run/conflict]: {many} about {last['code']} differ from those in {where}"]
        lines += [f"  {each['fact']}   {each['field']}" for each in conflicts[:3]]
        hint = "  hint: what was there stands; each conflict is recorded"
        say_text("\n".join([*lines, hint]), err=True)
    elif counts["accepted"]:
        say_text(f"{last['code']} is in {where}: {counted(counts['accepted'], 'fact')} sent.")
        say_text(f"As data, with your token: {url}/v1/runs/{last['code']}")
    else:
        say_text(f"{last['code']} was in {where} already; nothing was changed.")
    return 1 if conflicts else 0
