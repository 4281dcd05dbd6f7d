"""``ouvrage import sacct``: a Slurm cluster's accounting and what befell its nodes, without any agent.

Decides which of the two a file is, what time an owner says that an export holds whole, and what is told. The hash
is of what all facts of clusters in this home say, whatever order they came in and from how many files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.feeds.node_events import is_node_list, read_events
from ouvrage.adapters.feeds.sacct import read_sacct, text_of
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import HOUR
from ouvrage.books.cluster_jobs import Attempt, attempts_of, gpus_per_node, hours_by_state
from ouvrage.books.known import Known
from ouvrage.books.period import Period, period_named
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import (
    Imported,
    counted,
    covered,
    imported_json,
    imported_lines,
    in_words,
    joined,
    read_bytes,
    saved_at,
    site_zone,
    values,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.stated import Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.cluster import ClusterJobRow, ClusterNodeEvent, ClusterWhole
from ouvrage.model.sites import Node

KINDS = (ClusterJobRow.KIND, ClusterNodeEvent.KIND)


@click.command(name="sacct")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--cluster", metavar="NAME", help="The cluster, where rows do not name it.")
@click.option("--zone", metavar="ZONE", help="The zone of its clocks (the site's).")
@click.option("--columns", metavar="A,B,…", help="The columns of a file without a line of names.")
@click.option(
    "--whole",
    metavar="PERIOD",
    help="The files hold every job of 2026-11, of A..B: the rest was free.",
)
@click.option(
    "--saved", metavar="TIME", help="When a list of `sinfo -R` was made (the file's time)."
)
@json_option
@plain_option
def sacct(
    files: tuple[Path, ...],
    cluster: str | None,
    zone: str | None,
    columns: str | None,
    whole: str | None,
    saved: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Jobs of a Slurm cluster and what befell its nodes.

    \b
    sacct --allusers --duplicates --parsable2 --state BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RS,RV,S,TO \\
      --starttime DAY --endtime DAY --format \\
      JobIDRaw,JobID,Cluster,State,Submit,Start,End,ElapsedRaw,AllocTRES,NodeList,Account,User,Partition
    sacctmgr --parsable2 show event start=DAY
    sinfo --list-reasons --format '%E|%u|%H|%N|%T'

    A job is its number, its submission and its attempt. Files may overlap, be cut at midnight, and come in any
    order. With SLURM_TIME_FORMAT=%s no hour comes twice.
    """
    if cluster is not None:
        check_name("cluster", cluster, "--cluster lab")
    with opened() as ledger:
        where = site_zone(ledger, zone)
        told = [_read(path, where, cluster, columns, saved) for path in files]
        period = period_named(whole, where) if whole else None
        done, jobs = _recorded(ledger, told, period)
        sha256 = facts_hash(ledger)
    done.first = in_words(done.first) if plain or as_json else done.first
    if as_json:
        say_json({**imported_json(done), **_json(jobs), "ledger_hash": sha256})
    else:
        say_text("\n".join(imported_lines(done, [*_lines(jobs), _hash_line(sha256)])))
    return 1 if done.flagged else 0


def _hash_line(sha256: str) -> str:
    return f"  the facts of clusters in this home have the hash {sha256[:16]}"


def _read(
    path: Path, zone: str, cluster: str | None, columns: str | None, saved: str | None
) -> Told:
    told = Told(form="sacct", file=str(path))
    text = text_of(read_bytes(path), told)
    if is_node_list(text.split("\n", 1)[0]):
        told.form = "node events"
        told.stated += read_events(text, told, zone, cluster, saved_at(path, saved))
    else:
        told.stated += read_sacct(text, told, zone, cluster, columns)
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """What files told together: distinct rows, the attempts they make, nodes, events, owned nodes."""

    distinct: int
    attempts: Sequence[Attempt]
    nodes: frozenset[str]
    owned: frozenset[str]
    events: int


def _recorded(ledger: Ledger, told: list[Told], period: Period | None) -> tuple[Imported, Jobs]:
    said = list({each.id: each for one in told for each in one.stated}.values())
    rows = [_known(each) for each in said if isinstance(each.value, ClusterJobRow)]
    attempts = attempts_of(rows)
    events = [each for each in said if isinstance(each.value, ClusterNodeEvent)]
    nodes = {node for each in attempts for node in each.nodes} | {e.value.node for e in events}
    owned = nodes & {each.node for each in values(ledger, Node.KIND)}
    clusters = {each.value.cluster for each in said}
    booked = book(ledger, said)
    if period is not None:
        booked = joined(booked, book(ledger, [_whole(name, period) for name in sorted(clusters)]))
    done = Imported(told=told, booked=booked)
    jobs = Jobs(
        distinct=len(rows), attempts=attempts, nodes=frozenset(nodes), owned=frozenset(owned),
        events=len(events),
    )  # fmt: skip
    done.first = _first(jobs, said)
    done.more = (
        "What the GPUs did: ouvrage books calendar; what a good hour cost: ouvrage books goodput"
    )
    return done, jobs


def _known(each: Stated) -> Known[ClusterJobRow]:
    return Known(
        value=each.value,
        valid_from=each.valid_from,
        valid_to=each.valid_to,
        grade=each.grade,
        key="",
    )


def _whole(cluster: str, period: Period) -> Stated:
    return Stated(
        natural=f"sacct-whole/{key_part(cluster)}/{period.from_us}..{period.to_us}",
        value=ClusterWhole(cluster=cluster),
        subject=f"cluster:{name_part(cluster)}",
        valid_from=period.from_us,
        valid_to=period.to_us,
        grade=Grade.REPORTED,
    )


def facts_hash(ledger: Ledger) -> str:
    """SHA-256 of what the facts of clusters say: the same in every home that was told the same."""
    facts = [entry.fact for kind in KINDS for entry in in_force(ledger.store.records(kind=kind))]
    lines = {
        canonical([f.kind, f.version, f.subject, f.valid_from, f.valid_to, f.grade.word, f.payload])
        for f in facts
    }
    return sha256_hex("\n".join(sorted(lines)))


def _jobs(attempts: Sequence[Attempt]) -> int:
    return len({(each.cluster, each.job, each.submit_us) for each in attempts})


def _first(jobs: Jobs, said: Sequence[Stated]) -> str:
    known = sum(hours_by_state(jobs.attempts).values())
    unknown = sum(each.gpu_us is None for each in jobs.attempts)
    hours = f"{fixed(Fraction(known, HOUR), 1)} GPU-hours {Grade.METERED.mark}"
    if unknown == len(jobs.attempts):
        hours = "GPU-hours unknown"
    elif unknown:
        hours += f" and those of {counted(unknown, 'attempt')} unknown"
    told = [f"{counted(_jobs(jobs.attempts), 'job')}, {hours}"] if jobs.attempts else []
    told += [f"{counted(jobs.events, 'event')} of nodes"] if jobs.events else []
    return f"{'; '.join(told) or 'nothing'}, {covered(said)}"


def _json(jobs: Jobs) -> dict[str, Any]:
    by_state = hours_by_state(jobs.attempts)
    return {
        "distinct": jobs.distinct,
        "jobs": _jobs(jobs.attempts),
        "attempts": len(jobs.attempts),
        "steps": sum(each.steps for each in jobs.attempts),
        "steps_after_job": sum(each.steps_after for each in jobs.attempts),
        "events": jobs.events,
        "gpu_hours": {
            state: decimal_text(Fraction(us, HOUR)) for state, us in sorted(by_state.items())
        },
        "gpu_hours_unknown": sum(each.gpu_us is None for each in jobs.attempts),
        "not_placed": _not_placed(jobs),
        "nodes": len(jobs.nodes),
        "nodes_owned": sorted(jobs.owned),
    }


def _not_placed(jobs: Jobs) -> int:
    """Attempts with GPU time of which the calendar cannot say on which node it was."""
    return sum(bool(each.gpu_us) and not gpus_per_node(each) for each in jobs.attempts)


def _lines(jobs: Jobs) -> list[str]:
    lines: list[str] = []
    attempts = jobs.attempts
    for state, us in sorted(hours_by_state(attempts).items(), key=lambda each: -each[1]):
        count = sum(each.state == state for each in attempts)
        words = state.lower().replace("_", " ")
        lines.append(f"  {words:<15} {fixed(Fraction(us, HOUR), 2):>14} GPU-hours in {count}")
    more = len(attempts) - _jobs(attempts)
    if more:
        lines.append(f"  {counted(more, 'attempt')} more than jobs: they were started again")
    after = sum(each.steps_after for each in attempts)
    if after:
        lines.append(f"  {counted(after, 'step')} ended after the job, whose own end counts")
    alone = sum(each.only_steps for each in attempts)
    if alone:
        lines.append(
            f"  {counted(alone, 'job')} known by steps alone: the job's own row is in no file"
        )
    if _not_placed(jobs):
        lines.append(
            f"  {counted(_not_placed(jobs), 'attempt')} cannot be put on nodes: no node list, or GPUs that they do not share evenly"
        )
    if jobs.nodes:
        lines.append(
            f"  {len(jobs.owned)} of {counted(len(jobs.nodes), 'node')} stand in the books; others: ouvrage own node NAME"
        )
    return lines
