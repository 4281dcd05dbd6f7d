"""A fleet's report in words: the answer first, then what each question of an administrator is answered with.

Decides order, digits and how many lines a list has before the rest is left to ``--json``. Figures are made in ``books.fleet``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, fixed, significant
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR, SECOND
from ouvrage.books.dues.invoice import cents
from ouvrage.books.fleet.report import FleetReport
from ouvrage.books.fleet.weights import GPUS, WORDS, Weighed
from ouvrage.books.fleet.work import Had, Hollow
from ouvrage.books.goodput import BOUND
from ouvrage.cli.import_told import counted
from ouvrage.cli.output import shortened, table
from ouvrage.model.occupancy import STATES

MOST = 12
_TIMES = ((SECOND, 120 * SECOND, "s"), (60 * SECOND, 7200 * SECOND, "min"), (HOUR, 2**62, "h"))


def hours_text(hours: Fraction, whole: Fraction) -> str:
    """Hours with as many digits as the size of the whole is worth."""
    return fixed(hours, 1 if whole >= 1000 else 2 if whole >= 10 else 4)


def share_text(part: Fraction | int, whole: Fraction | int) -> str:
    """``28.1 %``, or nothing where there is no whole."""
    return f"{fixed(Fraction(part) / Fraction(whole) * 100, 1)} %" if whole else ""


def wait_text(us: int) -> str:
    """``45 s``, ``12.5 min``, ``3.2 h``."""
    unit, _, word = next(each for each in _TIMES if us < each[1])
    return f"{fixed(Fraction(us, unit), 0 if word == 's' else 1)} {word}"


def money_text(nano: int | Fraction, currency: str) -> str:
    """An amount in whole cents; with three digits where it is less than one of money."""
    amount = Fraction(nano) / NANO
    text = significant(amount, 3) if 0 < abs(amount) < 1 else fixed(amount, cents(currency))
    return f"{text} {currency}"


def report_lines(found: FleetReport, invoice: Sequence[str] = ()) -> list[str]:
    """The whole report, safe to print; ``invoice`` stands before the last line."""
    parts = (
        _time, _idle, _had, _waits, _lost, _hollow, _efficiency, _bills, _weights, _doubts,
    )  # fmt: skip
    lines = [answer(found)]
    for part in parts:
        told = list(part(found))
        lines += ["", *told] if told else []
    more = f"One account with its draft: ouvrage fleet report --account NAME      As a page: --html FILE      {MORE}"
    if found.account is not None:
        more = f"All accounts: ouvrage fleet report      {MORE}"
    safely = ["\n".join(safe(line) for line in each.split("\n")) for each in lines]
    return [*safely, *invoice, "", more]


MORE = "Newer: ouvrage fleet adopt      Where a figure comes from: ouvrage explain fleet/NAME"


def answer(found: FleetReport) -> str:
    """What the GPUs of the cluster did, or what an account had, in a sentence."""
    hours = found.goodput.total
    if found.account is not None:
        good = found.goodput.share
        completed = (
            "" if good is None else f", {fixed(good * 100, 1)} % of them in jobs that completed"
        )
        return f"{found.account} had {hours_text(hours, hours)} GPU-hours {_METERED} in {found.period.name}{completed}."
    states, owned = found.time.by_state(), found.time.owned_us
    if not owned:
        return f"{found.fleet.cluster} lists no GPU: jobs had {hours_text(hours, hours)} GPU-hours {_METERED} in {found.period.name}."
    idle = owned - states.get("working", 0)
    causes = sorted(found.time.by_cause().items(), key=lambda each: -each[1])
    worst = next(
        (
            f"{state}, {cause}" if state != "free" else cause
            for (state, cause), _ in causes
            if state != "working"
        ),
        "",
    )
    said = f"; {share_text(idle, owned)} were not, most of it: {worst}" if idle else ""
    return (
        f"{found.fleet.cluster}: GPUs were at work {share_text(states.get('working', 0), owned)} of "
        f"{hours_text(Fraction(owned, HOUR), Fraction(owned, HOUR))} GPU-hours {_METERED} in {found.period.name}{said}."
    )


_METERED = Grade.METERED.mark


def _time(found: FleetReport) -> Iterator[str]:
    whole = Fraction(found.time.owned_us, HOUR)
    states = found.time.by_state()
    told = [f"{hours_text(Fraction(states[s], HOUR), whole)} {s}" for s in STATES if states.get(s)]
    if told:
        gpus, nodes = sum(found.time.gpus.values()), len(found.time.gpus)
        adds = "adds up" if sum(states.values()) == found.time.owned_us else "DOES NOT ADD UP"
        yield f"hours     {hours_text(whole, whole)} of {counted(gpus, 'GPU')} on {counted(nodes, 'node')} = {' + '.join(told)}     ({adds} {_METERED})"
    for why, hours in found.beside:
        yield f"  beside it {hours_text(hours, whole)} GPU-hours: {why}"


def _idle(found: FleetReport) -> Iterator[str]:
    whole = found.time.owned_us
    causes = [(s, c, us) for (s, c), us in found.time.by_cause().items() if s != "working"]
    if not causes:
        return
    rows = [
        (
            shortened(cause, 76),
            state,
            hours_text(Fraction(us, HOUR), Fraction(whole, HOUR)),
            share_text(us, whole),
        )
        for state, cause, us in sorted(causes, key=lambda each: -each[2])
    ]
    yield table(("not at work, because", "state", "GPU-hours", "of all"), rows[:MOST], "<<>>")
    yield from _rest(rows)


def _rest(rows: Sequence[object]) -> Iterator[str]:
    if len(rows) > MOST:
        yield f"  and {len(rows) - MOST} more: --json"


def _had(found: FleetReport) -> Iterator[str]:
    groups = found.accounts if found.account is None else found.users
    whole = sum((each.goodput.total for each in found.accounts), Fraction(0))
    rows = [_had_row(found, each, whole) for each in groups]
    if rows:
        yield table(
            ("who", "tenant", "jobs", "GPU-hours", "of all", "completed"), rows[:MOST], "<<>>>>"
        )
        yield from _rest(rows)
        yield f"  completed is {BOUND}"


def _had_row(found: FleetReport, each: Had, whole: Fraction) -> tuple[str, ...]:
    who = each.account if each.user is None else f"{each.account} {each.user}"
    share = each.goodput.share
    return (
        shortened(who, 40), shortened(each.tenant, 24), str(each.jobs), hours_text(each.goodput.total, whole),
        share_text(each.goodput.total, whole), "" if share is None else f"{fixed(share * 100, 1)} %",
    )  # fmt: skip


def _waits(found: FleetReport) -> Iterator[str]:
    rows = [
        (
            shortened(each.partition, 30), str(each.jobs), wait_text(each.median_us),
            "too few" if each.p95_us is None else wait_text(each.p95_us), wait_text(each.most_us),
        )
        for each in found.waits
    ]  # fmt: skip
    if rows:
        yield table(
            ("waited in", "jobs", "half at most", "95 % at most", "longest"), rows[:MOST], "<>>>>"
        )
        yield from _rest(rows)


def _lost(found: FleetReport) -> Iterator[str]:
    whole = found.goodput.total
    currency = found.billed.currency
    rows: list[tuple[str, ...]] = []
    for each in found.lost:
        nano = [found.billed.nano[a.name] for a in each.attempts if a.name in found.billed.nano]
        cost = (
            "no price"
            if currency is None or len(nano) < len([a for a in each.attempts if a.run_us])
            else money_text(sum(nano), currency)
        )
        rows.append((each.state.lower().replace("_", " "), str(len(each.attempts)), hours_text(each.hours, whole),
                     share_text(each.hours, whole), cost))  # fmt: skip
    if rows:
        yield table(("came to nothing", "jobs", "GPU-hours", "of all", "cost"), rows, "<>>>>")


def _hollow(found: FleetReport) -> Iterator[str]:
    if not found.hollow:
        return
    whole = found.goodput.total
    sums = {
        name: sum((getattr(each, name) for each in found.hollow), Fraction(0))
        for name in ("no_process", "no_cpu", "busy", "unknown")
    }
    if sums["no_process"] or sums["busy"]:
        yield f"allotted with no process on the GPU: {hours_text(sums['no_process'], whole)} GPU-hours {_METERED}, seen busy: {hours_text(sums['busy'], whole)}"
    if sums["no_cpu"]:
        yield (
            f"allotted and next to no processor time used: {hours_text(sums['no_cpu'], whole)} GPU-hours {_METERED}"
            f"{_where(found, 'no_cpu', sums['no_cpu'])}; hardly anything can have run on them"
        )
    if sums["unknown"]:
        yield (
            f"whether a process was on the GPU is unknown for {hours_text(sums['unknown'], whole)} GPU-hours: accounting keeps no "
            "gres/gpumem (AccountingStorageTRES, with AutoDetect=nvml)"
        )


def _where(found: FleetReport, name: str, whole: Fraction) -> str:
    worst: Hollow = max(found.hollow, key=lambda each: getattr(each, name))
    partitions = (
        found.fleet.nodes[worst.node][-1].value.partitions
        if worst.node in found.fleet.nodes
        else ()
    )
    there = f" in {', '.join(partitions)}" if partitions else ""
    return f", {share_text(getattr(worst, name), whole)} of it on {worst.node}{there}"


def _efficiency(found: FleetReport) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    for each in found.efficiency:
        shares = (each.cores, each.memory, each.time_limit, each.gpu_load)
        told = ("unknown" if share is None else f"{fixed(share * 100, 1)} %" for share in shares)
        rows.append(
            (
                shortened(f"{each.account} {each.user} in {each.partition}", 48),
                str(each.jobs),
                *told,
            )
        )
    if rows:
        yield table(
            ("used of what was asked for", "jobs", "cores", "memory", "time limit", "GPU load"),
            rows[:MOST],
            "<>>>>>",
        )
        yield from _rest(rows)
    advice = [
        f"  {each.user} in {each.partition}: {words}"
        for each in found.efficiency
        for words in each.advice
    ]
    yield from advice[:MOST]
    yield from _rest(advice)


def _bills(found: FleetReport) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    for name, each in found.billed.drafts.items():
        total = "tax not stated" if each.total is None else money_text(each.total, each.currency)
        rows.append((shortened(name, 30), str(len(each.work)), money_text(each.net, each.currency), total,
                     money_text(each.running, each.currency) if each.running else ""))  # fmt: skip
    if rows:
        yield table(
            ("would owe", "jobs", "before tax", "with tax", "still running"), rows[:MOST], "<>>>>"
        )
        yield from _rest(rows)
    if found.billed.own:
        jobs = counted(len(found.billed.own), "job")
        yield f"{jobs} held places for this platform's own attempts, which it bills as leases and not again here"
    if found.billed.unpriced:
        gpus = sorted(
            {each.partition or "no partition" for each in found.billed.unpriced if each.gpus}
        )
        cores = sorted(
            {each.partition or "no partition" for each in found.billed.unpriced if not each.gpus}
        )
        for names, per in ((gpus, ""), (cores, " --per cpu")):
            if names:
                jobs = sum(
                    (each.partition or "no partition") in names and bool(each.gpus) == (not per)
                    for each in found.billed.unpriced
                )
                yield f"no price for {counted(jobs, 'job')} in {', '.join(names)}: ouvrage fleet rate {names[0]} --price 2.10/h{per}"


def _weights(found: FleetReport) -> Iterator[str]:
    each: Weighed | None = found.weighed
    currency = found.billed.currency
    if each is None or currency is None or len(each.splits) < 2:
        return
    rows = [
        (
            shortened(split.tenant, 24), fixed(split.unit_hours, 2), money_text(split.worth, currency),
            money_text(split.charged, currency), money_text(split.charged - split.worth, currency),
            *(money_text(split.parts[name], "").strip() for name in WORDS),
        )
        for split in each.splits
    ]  # fmt: skip
    head = (
        "billing weights",
        "unit-hours",
        "worth",
        "charged here",
        "difference",
        *(f"{'=' if n == GPUS else '+'} {n}" for n in WORDS),
    )
    yield table(head, rows[:MOST], "<" + ">" * (len(head) - 1))
    yield from _rest(rows)
    yield f"  one unit-hour is worth {money_text(each.worth_of_unit, currency)}, which makes both totals the same; the difference by part:"
    yield f"  {'; '.join(f'{name}: {words}' for name, words in WORDS.items())}"


def _doubts(found: FleetReport) -> Iterator[str]:
    if found.fleet.missing:
        yield f"not answered when the cluster was last read: {', '.join(found.fleet.missing)}"
    if found.goodput.unknown:
        yield f"{counted(found.goodput.unknown, 'job')} without a known GPU time, in no figure"
