"""The figures of a fleet's report, each with the way back to the rows of accounting that it is made of.

Decides their names (``fleet/lab/2026-11:hours.free``) and what each was made from: of a node's hours its listing, what accounting said of it
and the jobs on it; of an account's the jobs of it. Nothing is computed here that the report does not say; values are its own, exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO
from ouvrage.base.time import HOUR, SECOND
from ouvrage.books.cluster_jobs import Attempt
from ouvrage.books.fleet.bill import rate_of
from ouvrage.books.fleet.record import NO_ACCOUNT
from ouvrage.books.fleet.report import FleetReport
from ouvrage.books.fleet.weights import WORDS as DIFFERENCES
from ouvrage.books.goodput import WORDS, Goodput, hours_in, sort_of
from ouvrage.evidence.figures import Figure, Sheet, known, unknown

_GRADE = Grade.METERED
_UNIT = "GPU-h"
_NO_ROW = "no row of accounting says it"
_WAIT = "of the waits from the moment a job might have begun to its beginning"
_HOLLOW = {
    "no_process": "GPU-hours of jobs that had no process on their GPUs",
    "no_cpu": "GPU-hours of jobs that used less than a hundredth of one core",
    "busy": "GPU-hours of jobs that are known to have used their GPUs",
    "unknown": "GPU-hours of jobs of which nobody says whether they used their GPUs",
}


def fleet_sheet(found: FleetReport, name: str, as_of: int) -> Sheet:
    """Every figure of a report under ``name`` (``fleet/lab/2026-11``), as known at ``as_of`` (microseconds UTC)."""
    figures = [
        *_hours(found), *_accounts(found), *_waits(found), *_lost(found), *_allotted(found),
        *_efficiency(found), *_costs(found), *_weights(found),
    ]  # fmt: skip
    return Sheet(object=name, as_of=as_of, figures={figure.path: figure for figure in figures})


def part(text: str) -> str:
    """A name or a cause as a part of a figure's path: ``a job that fits waited`` is ``a-job-that-fits-waited``."""
    return re.sub(r"[^A-Za-z0-9_/+=-]+", "-", text).strip("-") or "none"


def _hours(found: FleetReport) -> Iterator[Figure]:
    """The calendar: by node and state and cause, then added up by state, by cause and in all."""
    by_state: dict[str, list[str]] = {}
    by_cause: dict[tuple[str, str], list[str]] = {}
    for (node, state, cause), us in _spent(found).items():
        path = f"nodes.{part(node)}.{state}.{part(cause)}"
        by_state.setdefault(state, []).append(path)
        by_cause.setdefault((state, cause), []).append(path)
        words = f"GPU time of {node}, {state}: {cause}"
        yield known(path, Fraction(us, HOUR), _UNIT, _GRADE, words, facts=_of_node(found, node))
    for (state, cause), paths in by_cause.items():
        us = found.time.by_cause()[state, cause]
        path = f"causes.{state}.{part(cause)}"
        words = f"what all nodes were {state} for: {cause}"
        yield known(path, Fraction(us, HOUR), _UNIT, _GRADE, words, inputs=paths)
    states = found.time.by_state()
    for state, paths in by_state.items():
        words = f"what all nodes were {state}"
        yield known(
            f"hours.{state}", Fraction(states[state], HOUR), _UNIT, _GRADE, words, inputs=paths
        )
    inputs = [f"hours.{state}" for state in by_state]
    words = "the time that all GPUs stood there, counted from the listings of nodes; the states add up to it"
    owned = Fraction(found.time.owned_us, HOUR)
    yield known("hours.owned", owned, _UNIT, _GRADE, words, inputs=inputs, facts=_listed(found))
    if "working" in states and owned:
        share = Fraction(states["working"], found.time.owned_us)
        words = "hours.working / hours.owned"
        yield known("working_share", share, "1", _GRADE, words, inputs=("hours.working", "hours.owned"))  # fmt: skip


def _spent(found: FleetReport) -> dict[tuple[str, str, str], int]:
    """Microseconds by node, state and cause, whoever had them."""
    spent: dict[tuple[str, str, str], int] = {}
    for each in found.time.spent:
        key = (each.node, each.state, each.cause)
        spent[key] = spent.get(key, 0) + each.us
    return spent


def _of_node(found: FleetReport, node: str) -> list[str]:
    """The facts that a node's calendar is made of, within the period."""
    record, period = found.fleet.machines[node], found.period
    said = [each.key for each in record.states if period.overlap(each.valid_from, each.valid_to)]
    listed = [each.key for each in found.fleet.nodes[node]]
    return _once([*listed, *said])


def _listed(found: FleetReport) -> list[str]:
    return _once(each.key for listings in found.fleet.nodes.values() for each in listings)


def _once(keys: Iterable[str]) -> list[str]:
    return [key for key in dict.fromkeys(keys) if key]


def _keys(attempts: Iterable[Attempt]) -> list[str]:
    return _once(key for each in attempts for key in each.keys)


def _accounts(found: FleetReport) -> Iterator[Figure]:
    """GPU-hours of all jobs, of each account and of each user, and how much of them completed."""
    yield from _had("jobs", found.goodput, found.attempts)
    for each in found.accounts:
        ours = [a for a in found.attempts if _account(a) == each.account]
        yield from _had(f"accounts.{part(each.account)}", each.goodput, ours)
    for each in found.users:
        ours = [
            a
            for a in found.attempts
            if _account(a) == each.account and (a.user or "no user") == each.user
        ]
        path = f"users.{part(each.account)}/{part(each.user or '')}"
        yield from _had(path, each.goodput, ours)
    for why, hours in found.beside:
        yield known(f"beside.{part(why)}", hours, _UNIT, _GRADE, f"GPU-hours of {why}", facts=_keys(found.attempts))  # fmt: skip


def _account(attempt: Attempt) -> str:
    return attempt.account or NO_ACCOUNT


def _had(path: str, had: Goodput, attempts: Sequence[Attempt]) -> Iterator[Figure]:
    for sort, hours in had.hours.items():
        ours = _keys(a for a in attempts if sort_of(a.state) == sort)
        yield known(f"{path}.{sort}", hours, _UNIT, _GRADE, f"GPU-hours of {WORDS[sort]}", facts=ours)  # fmt: skip
    inputs = [f"{path}.{sort}" for sort in had.hours]
    unsaid = f"; of {had.unknown} more nobody says them" if had.unknown else ""
    words = f"GPU-hours of {sum(had.jobs.values())} attempts{unsaid}"
    yield known(f"{path}.gpu_hours", had.total, _UNIT, _GRADE, words, inputs=inputs)
    words, total = f"{path}.completed / {path}.gpu_hours", f"{path}.gpu_hours"
    if had.share is None:
        why = "no GPU-hour is known"
        yield unknown(f"{path}.completed_share", "1", words, why, inputs=(total,))
    else:
        done = (f"{path}.completed",) if had.good in had.hours else ()
        yield known(f"{path}.completed_share", had.share, "1", _GRADE, words, inputs=(*done, total))


def _waits(found: FleetReport) -> Iterator[Figure]:
    for each in found.waits:
        facts = _keys(
            a for a in found.attempts
            if (a.partition or "no partition") == each.partition
            and a.start_us is not None and found.period.from_us <= a.start_us < found.period.to_us
        )  # fmt: skip
        for name, us in (
            ("median", each.median_us),
            ("p95", each.p95_us),
            ("most", each.most_us),
        ):
            path, words = f"waits.{part(each.partition)}.{name}", f"the {name} {_WAIT}"
            if us is None:
                yield unknown(path, "s", words, f"{each.jobs} jobs are too few")
            else:
                yield known(path, Fraction(us, SECOND), "s", _GRADE, words, facts=facts)


def _lost(found: FleetReport) -> Iterator[Figure]:
    for each in found.lost:
        path = f"lost.{part(each.state)}"
        words = f"GPU-hours of {len(each.attempts)} jobs that ended as {each.state}"
        yield known(f"{path}.gpu_hours", each.hours, _UNIT, _GRADE, words, facts=_keys(each.attempts))  # fmt: skip
        priced = [a for a in each.attempts if a.name in found.billed.nano]
        words, unit = "what these jobs are charged", found.billed.currency or "money"
        inputs = [f"costs.{part(a.name)}" for a in priced]
        if not priced or found.billed.currency is None:
            why = "no price of one currency holds for them"
            yield unknown(f"{path}.cost", unit, words, why)
            continue
        cost = Fraction(sum(found.billed.nano[a.name] for a in priced), NANO)
        yield known(f"{path}.cost", cost, unit, _GRADE, words, inputs=inputs)


def _allotted(found: FleetReport) -> Iterator[Figure]:
    for each in found.hollow:
        ours = [
            a for a in found.attempts if each.node in a.nodes and (hours_in(a, found.period) or 0)
        ]
        for name, words in _HOLLOW.items():
            path = f"allotted.{part(each.node)}.{name}"
            yield known(path, getattr(each, name), _UNIT, _GRADE, words, facts=_keys(ours))


def _efficiency(found: FleetReport) -> Iterator[Figure]:
    names = {"cores": "of the cores", "memory": "of the memory", "time_limit": "of the time limit", "gpu_load": "load of the GPUs"}  # fmt: skip
    for each in found.efficiency:
        ours = _keys(
            a for a in found.attempts
            if _account(a) == each.account and (a.user or "no user") == each.user and (a.partition or "no partition") == each.partition
        )  # fmt: skip
        whose = "/".join(part(name) for name in (each.account, each.user, each.partition))
        for name, of in names.items():
            path, words = f"used.{whose}.{name}", f"the part that was used {of} asked for"
            value = getattr(each, name)
            if value is None:
                yield unknown(path, "1", words, _NO_ROW)
            else:
                yield known(path, value, "1", _GRADE, words, facts=ours)


def _costs(found: FleetReport) -> Iterator[Figure]:
    """What each priced job costs, and what each tenant would owe before tax."""
    unit = found.billed.currency
    if unit is None:
        return
    tenants: dict[str, list[str]] = {}
    attempts = {each.name: each for each in found.attempts}
    for name, nano in found.billed.nano.items():
        each, path = attempts[name], f"costs.{part(name)}"
        tenants.setdefault(found.fleet.tenant(each.account), []).append(path)
        rate = rate_of(found.fleet, each)
        price = (
            ""
            if rate is None
            else f"{rate.rate} {rate.currency}/h per {rate.per}, {rate.plan_name}; "
        )
        words = f"{price}charged in the period, tax apart"
        facts = [*each.keys, *(r.key for r in found.fleet.rates if r.value == rate)]
        yield known(path, Fraction(nano, NANO), unit, _GRADE, words, facts=_once(facts))
    for tenant, paths in tenants.items():
        nano = sum(found.billed.nano[n] for n in found.billed.nano if found.fleet.tenant(attempts[n].account) == tenant)  # fmt: skip
        words = "the charges of its jobs, before tax and rounding to whole cents"
        yield known(f"owes.{part(tenant)}", Fraction(nano, NANO), unit, _GRADE, words, inputs=paths)


def _weights(found: FleetReport) -> Iterator[Figure]:
    weighed, unit = found.weighed, found.billed.currency
    if weighed is None or unit is None:
        return
    facts = _keys(each for each in found.attempts if each.name in found.billed.nano)
    words = "all charges / all unit-hours of the cluster's own billing weights"
    worth = weighed.worth_of_unit / NANO
    yield known("units.worth", worth, unit, _GRADE, words, facts=facts)
    for split in weighed.splits:
        path = f"units.{part(split.tenant)}"
        yield known(f"{path}.hours", split.unit_hours, "unit-h", _GRADE, "its unit-hours", facts=facts)  # fmt: skip
        yield known(
            f"{path}.worth", split.worth / NANO, unit, _GRADE, "unit-hours x units.worth",
            inputs=(f"{path}.hours", "units.worth"),
        )  # fmt: skip
        for name, nano in split.parts.items():
            words = f"difference between units and prices: {DIFFERENCES[name]}"
            inputs = (f"{path}.worth", f"owes.{part(split.tenant)}")
            made = known(f"{path}.{part(name)}", nano / NANO, unit, _GRADE, words, inputs=inputs)
            yield made
