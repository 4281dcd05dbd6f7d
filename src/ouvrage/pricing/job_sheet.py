"""The figures of a job, each with the way back to the runs that it is made of.

Decides their names (``job/ID:cost.total``), their grades and when one is unknown. Values are exact; the
adding up is ``job_cost``'s, units and clocks are ``metering.jobs``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.price import PER_US
from ouvrage.base.text import safe
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.metering.around import communications_of, link_tests_of
from ouvrage.metering.jobs import WHOLE, Job, laps_of
from ouvrage.metering.reckoning import covered_us, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import median
from ouvrage.metering.straggler import Straggling
from ouvrage.metering.units import facts_of_units
from ouvrage.pricing.communication import MODEL, NO_EVIDENCE, spoken
from ouvrage.pricing.job_cost import Cards, Money, cards_of, coverage, metered, missing_words

US = 1_000_000
_BOTH = ("run.started", "run.ended", "run.job")
CLOCKS = "each machine's own UTC clock; how far these differ is not known"
METERS = {"wall": ("wall", "everything behind the plugs"), "host": ("rapl", "the processors")}


def job_sheet(job: Job, money: Money, pace: Straggling, as_of: int) -> Sheet:
    """Every figure about a job, as known at ``as_of``."""
    figures = [
        *_times(job),
        *_units(job),
        *_host_figures(job, money),
        *_costs(job, money),
        *_gpus(job, cards_of(job)),
        *_meters(job),
        *_straggler(job, pace),
        *_communication(job),
    ]
    return Sheet(object=f"job/{job.job}", as_of=as_of, figures={f.path: f for f in figures})


def grade_of(job: Job) -> Grade:
    """The weakest of its runs'."""
    return weakest(run.grade for run in job.runs)


def _assumed(job: Job) -> Grade:
    return weakest((Grade.ASSUMED, grade_of(job)))


def _facts(runs: Iterable[RunView], *kinds: str) -> tuple[str, ...]:
    return tuple(key for run in runs for key in run.facts(*(kinds or _BOTH)))


def span_us(job: Job) -> int:
    """From the first start to the last end, each by its own machine's clock."""
    starts = [host.stretches[0].from_us for host in job.hosts]
    ends = [max(stretch.to_us for stretch in host.stretches) for host in job.hosts]
    return max(0, max(ends) - min(starts))


def _times(job: Job) -> Iterator[Figure]:
    facts, several = _facts(job.runs), len(job.hosts) > 1
    method = "from the first start to the last end"
    grade = _assumed(job) if several else grade_of(job)
    words = f"{method}, {CLOCKS}" if several else f"{method}, by the machine's clock"
    yield known("wall_s", Fraction(span_us(job), US), "s", grade, words, facts=facts)
    longest = max(host.length_us for host in job.hosts)
    words = "the longest time of one machine, whatever the clocks say"
    yield known("wall_s_at_least", Fraction(longest, US), "s", grade_of(job), words, facts=facts)
    yield known(
        "hosts", len(job.hosts), "host", grade_of(job), "machines with a run of it", facts=facts
    )
    method = "share of all machines' time in which samples came, of the machines that are stated"
    sampled = Fraction(sum(min(covered_us(run), run.wall_us) for run in job.runs))
    share = coverage(job, sampled, sum(run.wall_us for run in job.runs))
    if share is None:
        yield unknown("coverage", "1", method, "its runs took no time")
    else:
        facts = _facts(job.runs, "run.window", "run.job")
        yield known("coverage", share, "1", grade_of(job), method, facts=facts)


def _units(job: Job) -> Iterator[Figure]:
    units, method = job.units, "finished units, each once however many ranks marked it"
    marked = [run for run in job.runs if not reckon(run).units.is_command] or list(job.runs)
    facts = tuple(key for run in marked for key in facts_of_units(run, reckon(run).units))
    if job.missing and not job.launched:
        yield unknown("units", units.name, method, missing_words(job))
    else:
        yield known("units", units.finished, units.name, grade_of(job), method, facts=facts)
    path, method = "seconds_per_unit.median", "median of the timed units after warm-up, of one rank"
    values = reckon(units.lead).per_unit_us if units.lead and units.name != WHOLE else ()
    if not values or units.lead is None:
        yield unknown(path, "s", method, "no unit could be timed")
        return
    facts = facts_of_units(units.lead, reckon(units.lead).units)
    yield known(path, median(values) / US, "s", units.lead.grade, method, facts=facts)


def _host_figures(job: Job, money: Money) -> Iterator[Figure]:
    for each in money.hosts:
        root, host = f"hosts.{each.host.index}", each.host
        facts, many = _facts(host.runs), len(host.runs)
        words = f"time in which any of its {many} runs went on, each moment once"
        yield known(
            f"{root}.wall_s", Fraction(host.length_us, US), "s", grade_of(job), words, facts=facts
        )
        path, method = (
            f"{root}.cost",
            f"price of {safe(host.name)} x that time, once for all its runs",
        )
        if each.cost is None or each.currency is None:
            yield unknown(path, "1", method, each.why or "", inputs=(f"{root}.wall_s",))
        else:
            inputs = (f"{root}.wall_s",)
            yield known(
                path, each.cost, each.currency, _assumed(job), method, inputs=inputs, facts=facts
            )


def _costs(job: Job, money: Money) -> Iterator[Figure]:
    unit, method = money.currency, "what all its machines cost"
    inputs = tuple(f"hosts.{each.host.index}.cost" for each in money.hosts)
    if money.rates:
        told = ", ".join(
            f"1 {rate.base} = {rate.rate} {rate.quote} on {rate.day}, {safe(rate.said_by)}"
            for rate in money.rates
        )
        method = f"{method}, at {told}"
    if money.total is None:
        yield unknown("cost.total", unit, method, money.why or "", inputs=inputs)
    else:
        yield known("cost.total", money.total, unit, _assumed(job), method, inputs=inputs)
    words = "the part of the total that is known"
    if money.known is None:
        yield unknown("cost.known", unit, words, money.why or "", inputs=inputs)
    else:
        yield known("cost.known", money.known, unit, _assumed(job), words, inputs=inputs)
    yield from _per_unit(job, money)


def _per_unit(job: Job, money: Money) -> Iterator[Figure]:
    unit, finished = money.currency, job.units.finished
    path, method, inputs = "cost_per_unit.all_in", "total cost / units", ("cost.total", "units")
    if money.total is None or not finished:
        why = money.why or "no unit finished"
        yield unknown(path, unit, method, why, inputs=inputs)
    else:
        yield known(path, money.total / finished, unit, _assumed(job), method, inputs=inputs)
    path, method = "cost_per_unit.marginal", "prices of all machines x median time of a unit"
    inputs = ("seconds_per_unit.median", *(f"hosts.{each.host.index}.cost" for each in money.hosts))
    lead = job.units.lead
    values = reckon(lead).per_unit_us if lead and job.units.name != WHOLE else ()
    if not job.launched and len(job.runs) > 1:
        why = "its runs are different work, so no one of them times a unit of the job"
        yield unknown(path, unit, method, why, inputs=inputs)
    elif money.per_us is None or not values:
        why = money.why or (
            "no unit could be timed" if not values else "a machine had several prices"
        )
        yield unknown(path, unit, method, why, inputs=inputs)
    else:
        cost = money.per_us * median(values)
        yield known(path, cost, unit, _assumed(job), method, inputs=inputs)


def _gpus(job: Job, cards: Cards) -> Iterator[Figure]:
    facts = _facts(job.runs, "run.device", "run.gpu_window")
    why = "no run of it saw a GPU"
    rows: tuple[tuple[str, Fraction | None, str, str], ...] = (
        ("gpus", Fraction(cards.count), "GPU", "cards of all machines, each once"),
        ("gpu_time_s", Fraction(cards.held_us, US), "s", "time of each card in the job, added up"),
        ("gpu_busy", cards.busy, "1", "share of the sampled GPU time in which a kernel ran"),
        (
            "energy_j",
            None if cards.energy_uj is None else cards.energy_uj / US,
            "J",
            "energy of every card, each once, over the part that energy.coverage tells",
        ),
        (
            "energy.coverage",
            None if cards.energy_uj is None else coverage(job, cards.covered_us, cards.expected_us),
            "1",
            "share of the GPU time that the energy covers, of the machines that are stated",
        ),
    )
    for path, value, unit, method in rows:
        if not cards.count or value is None:
            yield unknown(path, unit, method, why if not cards.count else "no card told it")
        else:
            yield known(path, value, unit, grade_of(job), method, facts=facts)


def _meters(job: Job) -> Iterator[Figure]:
    expected = sum(host.length_us for host in job.hosts)
    facts = _facts(job.runs, "run.energy_meter", "run.energy_window")
    for name, (kind, covers) in METERS.items():
        path, method, found = f"energy.{name}_j", f"energy of {covers}", metered(job, kind)
        share = f"energy.{name}_coverage"
        words = "share of the machines' time that it covers"
        if found is None or not expected:
            why = "no machine of it has such a meter that a run could read"
            yield unknown(path, "J", method, why)
            yield unknown(share, "1", words, why)
            continue
        yield known(path, found.uj / US, "J", grade_of(job), method, facts=facts)
        part = coverage(job, found.covered_us, expected) or Fraction(0)
        yield known(share, part, "1", grade_of(job), words, facts=facts)


def _straggler(job: Job, pace: Straggling) -> Iterator[Figure]:
    rows = (
        ("straggler.host", "host", "the machine that is slowest in most units"),
        ("straggler.later_s", "s", "median time by which it is later than the slowest other one"),
        ("straggler.share", "1", "share of the units in which it is slowest"),
    )
    if pace.host is None or pace.later_us is None:
        for path, unit, method in rows:
            yield unknown(path, unit, method, pace.why)
        return
    slowest = next(each.slowest for each in pace.paces if each.host == pace.host)
    values = (job.hosts[pace.host].name, pace.later_us / US, Fraction(slowest, pace.units))
    runs = [run for run in job.runs if laps_of(run)]
    facts = tuple(key for run in runs for key in facts_of_units(run, reckon(run).units))
    for (path, unit, method), value in zip(rows, values, strict=True):
        yield known(path, value, unit, grade_of(job), method, facts=facts)


def _communication(job: Job) -> Iterator[Figure]:
    said = [each for run in job.runs for each in communications_of(run)]
    tests = [each for run in job.runs for each in link_tests_of(run)]
    found, path = spoken(said, tests), "communication.modelled_s"
    share = "communication.share_at_most"
    method = "modelled seconds / the longest time of one machine, as if none overlapped"
    if found is None or found.seconds is None:
        why = NO_EVIDENCE if found is None else found.why or ""
        yield unknown(path, "s", MODEL, why)
        yield unknown(share, "1", method, why)
        return
    facts = _facts(job.runs, "run.communication", "run.link_test")
    yield known(path, found.seconds, "s", _assumed(job), MODEL, facts=facts)
    longest = max(host.length_us for host in job.hosts)
    part = min(Fraction(1), found.seconds * US / longest) if longest else Fraction(0)
    inputs = (path, "wall_s_at_least")
    yield known(share, part, "1", _assumed(job), method, inputs=inputs)


def hourly(money: Money) -> Fraction | None:
    """What all machines together cost in an hour."""
    return None if money.per_us is None else money.per_us * PER_US["h"]
