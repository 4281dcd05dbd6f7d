"""Whole quotes: a published trial, scaling, increments, losses, tiers, exclusions, order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.catalogues.made import made
from ouvrage.adapters.market_terms import Billings
from ouvrage.adapters.profile_files import profile_in
from ouvrage.adapters.rate_files import load_plan, shipped_names, usage_from
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import utc_text
from ouvrage.metering.timeuse import KEYS
from ouvrage.model.offers import ExchangeRate, MarketOffer
from ouvrage.planning.offer_screen import cheapest, columns_of, lower_bounds, work_of
from ouvrage.pricing.market.billing import billing_of
from ouvrage.pricing.market.listed import Listed, hourly
from ouvrage.pricing.market.lots import lots_of, packed, unpacked
from ouvrage.pricing.market.profile import Profile
from ouvrage.pricing.market.quote import Quote, beside_of, estimate, lines_of, quoted
from ouvrage.pricing.market.ranking import Ranker, Ranking, effects, frontier, would_win
from ouvrage.pricing.market.ranking_text import headline, rows, warnings
from ouvrage.pricing.market.scaling import carried
from ouvrage.pricing.rates.quantity import parse_rate
from ouvrage.pricing.rates.rating import apply_plan

from . import catalogues as c


def offer(**stated: Any) -> MarketOffer:
    base = {
        "provider": "Somebody",
        "name": "a machine",
        "gpu": "RTX3080",
        "gpus": "1",
        "vcpus": "4",
        "memory_mib": 12 * 1024,
        "price": "0.30",
        "currency": "USD",
        "interruptible": False,
        "raw": "{}",
        "key": "0" * 16,
    }
    return made(c.context(), **(base | stated))


def work(text: str = "", **changes: Any) -> Profile:
    return replace(
        profile_in("work.toml", c.TRIAL_PROFILE.replace("[time]", f"{text}\n[time]")), **changes
    )


def ranked(profile: Profile, *offers: MarketOffer, **options: Any) -> Ranking:
    listed = [Listed(each, "2026-11-30") for each in offers]
    ranker = Ranker(
        profile=profile,
        currency="USD",
        billing=Billings(),
        rates=options.pop("rates", {}),
        **options,
    )
    return ranker.rank(lots_of(listed))


def one(profile: Profile, each: MarketOffer) -> Quote:
    found = quoted(profile, each, Billings()(each))
    assert found is not None
    return found


def amounts(quote: Quote) -> Mapping[str, Fraction | None]:
    return {line.name: line.amount and line.amount.likely for line in lines_of(quote)}


def test_the_published_trial():
    offers = c.parsed(c.TRIAL, "own/trial").offers
    result = ranked(work(), *offers)
    assert [(r.quote.offer.name, fixed(r.cost, 4)) for r in result.ranked] == [
        ("optimised", "0.0096"),
        ("standard", "0.0106"),
    ]
    best, second = result.ranked
    assert best.quote.likely.unit_s == 96
    assert second.quote.likely.unit_s == Fraction("127.2")
    assert (best.by_hour, second.by_hour) == (2, 1)
    assert result.cheapest_hour is not None
    assert result.cheapest_hour.quote.offer.name == "standard"
    why = effects(best, second)
    assert why is not None
    assert (why.price, why.waste, why.beside) == (Fraction("1.2"), 1, 1)
    assert why.whole == best.cost / second.cost
    won = would_win(best, second)
    # at 0.0096 a unit of 127.2 s the hour would have to cost 0.2717
    assert won.hour == Fraction("0.0096") * 3600 / Fraction("127.2")
    assert won.unit_s == Fraction("0.0096") * 3600 / Fraction("0.30")
    assert won.first_s == Fraction("0.0106") * 3600 / Fraction("0.36")


def test_times_that_the_offers_state_are_not_scaled():
    parsed = c.parsed(
        c.TRIAL.replace("currency", "currency,seconds_per_unit")
        .replace("0.30,USD", "0.30,USD,127.2")
        .replace("0.36,USD", "0.36,USD,96.0"),
        "own/trial",
    )
    assert sorted(parsed.stated.values()) == ["127.2", "96.0"]


def test_on_the_very_configuration_nothing_is_scaled():
    profile = work('grade = "reported"')
    same, other = carried(profile, offer()), carried(profile, offer(vcpus="8"))
    assert same is not None
    assert other is not None
    assert (same.grade, same.scaled, same.seconds.high) == (
        Grade.REPORTED,
        False,
        Fraction("127.2"),
    )
    assert (other.grade, other.scaled) == (Grade.ASSUMED, True)
    little_less = carried(profile, offer(memory_mib=11900))
    assert little_less is not None
    assert not little_less.scaled


def test_unknown_parts_widen_the_range_and_never_help():
    profile = work()
    told, untold = carried(profile, offer(vcpus="8")), carried(profile, offer(vcpus=None))
    assert told is not None
    assert untold is not None
    assert untold.seconds.likely == profile.timing.likely
    assert untold.seconds.low <= told.seconds.likely < untold.seconds.high
    assert carried(profile, offer(gpu="tpu-v9")) is None


def test_more_gpus_gain_nothing_without_evidence_of_their_interconnect():
    profile = work("exchange_gb = 3")
    single, four = carried(profile, offer()), carried(profile, offer(gpus="4"))
    joined = carried(profile, offer(gpus="4", interconnect_gb_s="100"))
    assert single is not None
    assert four is not None
    assert joined is not None
    assert four.seconds.likely == single.seconds.likely
    assert joined.seconds.likely < single.seconds.likely
    by_key = {term.key: term.seconds.likely for term in joined.terms}
    assert by_key["computing"] == Fraction("64.8") / 4
    assert by_key["communication"] == Fraction(3 * 2 * 3, 4 * 100)


def test_increments_are_the_providers():
    profile = work(units=Fraction(10))
    minute = one(profile, offer(plan="genesis-cloud"))
    assert minute.likely.metered_s == 1272
    assert minute.likely.billed_s == 1320
    hour = one(profile, offer(plan="ovh-from-creation"))
    assert (hour.low.billed_s, hour.likely.billed_s) == (3600, 3600)
    assert minute.likely.busy == Fraction(1272, 1320)
    assert amounts(minute)["increments"] == Fraction(48, 3600) * Fraction("0.30")


@pytest.mark.parametrize("name", shipped_names())
def test_billed_time_is_what_the_rate_engine_makes_of_it(name: str):
    plan = load_plan(name)
    billing = billing_of(offer(plan=name), plan)
    starts = {"azure": "created", "ovh-from-creation": "created", "scaleway": "created"}
    at = 1_796_000_400_000_000  # an hour of the clock begins
    for seconds in (1, 59, 60, 61, 405, 3600, 3670):
        events = [("requested", 0), ("created", 0), ("active", 0), ("healthy", 0)]
        events += [("terminated", seconds)]
        rows = [f"m,{event},{utc_text(at + s * 10**6)},," for event, s in events]
        rows.append(f"m,gpus,{utc_text(at)},1,GPU")
        rows.append(f"m,vcpus,{utc_text(at)},0,vCPU")
        rows.append(f"m,memory,{utc_text(at)},0,GB")
        text = "resource,event,at,quantity,unit\n" + "\n".join(rows) + "\n"
        version = plan.versions[-1]
        compute = next(r for r in version.rules if r.part == "compute" and r.kind == "metered")
        if compute.rate_name is None or name in starts:
            pytest.skip("its price is its own")
        rates = {each.rate_name: parse_rate(_example(each)) for each in _open(plan)}
        bill = apply_plan(plan, usage_from("u.csv", text), rates, currency=version.currency)
        charged = [x for x in bill.charges if x.rule == compute.name]
        assert sum(x.amount for x in charged) == billing.billed_s(Fraction(seconds)) / 3600 * 2


def _open(plan: Any) -> list[Any]:
    return [r for v in plan.versions for r in v.rules if r.rate_name]


def _example(rule: Any) -> str:
    if rule.part in ("storage", "traffic"):
        return "1/GB-h" if rule.part == "storage" else "1/GB"
    unit = (
        {"gpus": "gpu-", "vcpus": "vcpu-", "memory": "GB-"}.get(rule.of[0], "") if rule.of else ""
    )
    return f"2/{unit}h"


def test_an_interruption_costs_half_an_interval_and_a_restart():
    profile = work("interruptible = true\ncheckpoint_every_s = 600\nrestart_s = 100")
    quote = one(profile, offer(interruptible=True, mtbf_h="2"))
    worked = 300 * Fraction("127.2")
    assert quote.likely.lost_s == worked / 7200 * (300 + 100)
    assert amounts(quote)["interruptions"] == quote.likely.lost_s * Fraction("0.30") / 3600
    assert one(profile, offer(mtbf_h="2")).likely.lost_s == quote.likely.lost_s
    none = one(
        replace(profile, moves=replace(profile.moves, checkpoint_every_s=None)),
        offer(interruptible=True, mtbf_h="2"),
    )
    assert none.likely.lost_s == worked / 7200 * (worked / 2 + 100)
    guessed = one(profile, offer(interruptible=True))
    assert guessed.low.lost_s == 0 < guessed.likely.lost_s < guessed.high.lost_s


def test_everything_that_is_paid_besides_the_hours():
    profile = work(
        "dataset_gb = 10\nresults_gb = 300\ncheckpoint_gb = 5\npublic_ips = 1\nreserved_h = 20\nimage_gb = 6"
    )
    quote = one(profile, offer(plan="ec2-linux", storage_gb_month="0.73"))
    found = amounts(quote)
    assert found["results out"] == 200 * Fraction("0.09")
    assert found["data in"] == 0
    assert found["storage"] == 5 * Fraction("0.001") * quote.likely.finish_s / 3600
    assert found["public IP"] == Fraction("0.005") * quote.likely.finish_s / 3600
    assert found["image"] == 60 * Fraction("0.30") / 3600
    assert found["reservation unused"] == (20 - quote.likely.billed_s / 3600) * Fraction("0.30")
    assert found["tax"] is None
    assert sum(each for each in found.values() if each is not None) == quote.total.likely
    unpriced = amounts(one(profile, offer()))
    assert (unpriced["results out"], unpriced["storage"], unpriced["public IP"]) == (
        None,
        None,
        None,
    )


def test_loading_is_free_where_the_meter_starts_when_the_machine_is_healthy():
    profile = work("image_gb = 6")
    quote = one(profile, offer(plan="lambda"))
    assert quote.likely.billed_s % 60 == 0
    assert quote.likely.finish_s - quote.likely.metered_s == 60


def test_the_marginal_unit_has_neither_start_nor_increments():
    quote = one(work("startup_s = 90", units=None), offer(plan="ovh-from-creation"))
    assert quote.per_unit.likely == Fraction("0.0106")


def test_who_cannot_do_the_work_and_why():
    profile = work("gpu_memory_gib = 12\nram_needed_gib = 8\ndeadline_h = 9")
    result = ranked(
        profile,
        offer(name="small", gpu_memory_mib=10 * 1024),
        offer(name="poor", gpu="RTX3090", memory_mib=4096),
        offer(name="slow", gpu="RTX3090", vcpus="1"),
        offer(name="spot", gpu="RTX3090", interruptible=True),
        offer(name="euro", gpu="RTX3090", currency="EUR"),
        offer(name="half", gpu="RTX3090", split="gpu"),
        offer(name="odd", gpu="X1", gpu_memory_mib=65536),
        offer(name="dark", gpu="X2"),
        offer(name="gift", gpu="RTX3090", price="0.00"),
        offer(name="plain", gpus="0", gpu=None),
        offer(name="able", gpu="RTX3090", vcpus="8"),
    )
    assert {e.lot.offer.name: e.why for e in result.excluded} == {
        "small": "memory",
        "poor": "memory",
        "slow": "deadline",
        "spot": "interruptible",
        "euro": "currency",
        "half": "price",
        "odd": "unknown GPU",
        "dark": "unknown GPU",
        "gift": "price",
        "plain": "GPU",
    }
    assert [r.quote.offer.name for r in result.ranked] == ["able"]


def test_currencies_meet_by_a_dated_rate_only():
    rate = ExchangeRate(base="EUR", quote="USD", rate="1.10", day="2026-11-30", said_by="a bank")
    dear = offer(name="euro", currency="EUR", price="0.30")
    result = ranked(work(), offer(name="dollar", price="0.32"), dear, rates={"EUR": rate})
    assert [r.quote.offer.name for r in result.ranked] == ["dollar", "euro"]
    assert result.ranked[1].cost == Fraction("0.0106") * Fraction("1.1")
    turned = replace(rate, base="USD", quote="EUR", rate="0.5")
    other = ranked(work(), dear, rates={"EUR": turned})
    assert other.ranked[0].cost == Fraction("0.0106") * 2


def test_the_frontier_holds_whom_nobody_beats():
    result = ranked(
        work(),
        *(
            offer(name=f"v{n}", vcpus=str(n), price=p, key=f"{n}")
            for n, p in ((4, "0.30"), (8, "0.36"), (16, "0.90"), (2, "0.29"))
        ),
    )
    assert [r.quote.offer.name for r in frontier(result.ranked)] == ["v16", "v8"]


prices = st.integers(1, 10**6).map(lambda n: decimal_text(Fraction(n, 10**5)))
plans = st.sampled_from(
    [None, *(n for n in shipped_names() if not n.startswith(("azure", "coreweave-o")))]
)


@st.composite
def some_offers(draw: st.DrawFn) -> MarketOffer:
    gpu = draw(st.sampled_from(["RTX3080", "RTX4090", "H100", "A100-80GB"]))
    return offer(
        name=draw(st.text("abc", min_size=1, max_size=3)),
        gpu=gpu,
        gpus=draw(st.sampled_from(["1", "2", "8"])),
        vcpus=draw(st.sampled_from([None, "1", "4", "8", "0.5"])),
        memory_mib=draw(st.sampled_from([None, 12 * 1024, 65536])),
        price=draw(prices),
        plan=draw(plans),
        interruptible=draw(st.booleans()),
        mtbf_h=draw(st.sampled_from([None, "0.5", "100"])),
        storage_gb_month=draw(st.sampled_from([None, "0.1"])),
        egress_gb=draw(st.sampled_from([None, "0", "0.05"])),
    )


@st.composite
def some_work(draw: st.DrawFn) -> Profile:
    number = st.integers(0, 500)
    text = "\n".join(
        f"{name} = {draw(number)}"
        for name in (
            "dataset_gb",
            "results_gb",
            "checkpoint_gb",
            "startup_s",
            "restart_s",
            "image_gb",
        )
        if draw(st.booleans())
    )
    text += "\ninterruptible = true"
    if draw(st.booleans()):
        text += f"\ncheckpoint_every_s = {draw(st.integers(1, 5000))}"
    if draw(st.booleans()):
        text += f"\nreserved_h = {draw(st.integers(0, 50))}"
    units = draw(st.one_of(st.none(), st.integers(1, 1000).map(Fraction)))
    terms = {key: Fraction(draw(st.integers(0, 60))) for key in KEYS}
    total = sum(terms.values()) or Fraction(1)
    profile = work(text, units=units, terms=terms)
    timing = replace(profile.timing, low=total, likely=total, high=total)
    return replace(profile, timing=timing)


@settings(max_examples=60, deadline=None)
@given(some_work(), st.lists(some_offers(), min_size=1, max_size=12), st.integers(1, 5))
def test_the_vector_core_and_the_quick_estimate_are_the_exact_core(
    profile: Profile, offers: list[MarketOffer], top: int
):
    ranker = Ranker(profile=profile, currency="USD", billing=Billings(), rates={})
    able = [(Listed(each, "2026-11-30"), carried(profile, each)) for each in offers]
    able = [(each, time) for each, time in able if time is not None]
    for each, time in able:
        billing = ranker.billing(each.offer)
        exact = one(profile, each.offer).per_unit.likely
        assert estimate(profile, each.offer, billing, time, beside_of(profile, billing)) == exact
    columns = columns_of(ranker, able)
    costs = [ranker.cost(*able[int(index)]) for index in columns.order]
    bounds = lower_bounds(columns, work_of(profile))
    assert all(bound <= cost for bound, cost in zip(bounds, costs, strict=True))
    stepped = any(ranker.billing(each.offer).steps.increment_us for each, _ in able)
    close = all(b >= float(cost) * (1 - 1e-6) for b, cost in zip(bounds, costs, strict=True))
    assert close or stepped
    found = cheapest(bounds, lambda index: costs[index], top)
    assert [costs[i] for i in found[:top]] == sorted(costs)[: min(top, len(costs))]


@settings(max_examples=60, deadline=None)
@given(
    some_work(),
    st.lists(
        st.tuples(some_offers(), st.lists(st.sampled_from(("0", "1.5", "1.50", "2", "0.3")))),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 6),
)
def test_lots_rank_as_their_offers_would_one_by_one(
    profile: Profile, kinds: list[tuple[MarketOffer, list[str]]], top: int
):
    prices = [(each, each.price) for each, _ in kinds]
    prices += [(each, price) for each, more in kinds for price in more]
    offers = [
        replace(each, price=price, key=f"{number:016x}", region=f"r{number}")
        for number, (each, price) in enumerate(prices)
    ]
    ranker = Ranker(profile=profile, currency="USD", billing=Billings(), rates={})
    fit = [each for each in offers if Fraction(each.price) and carried(profile, each)]
    fit = [each for each in fit if each.interruptible is False or profile.interruptible]
    plain = sorted((one(profile, o).per_unit.likely, o.name, o.key) for o in fit)[:top]
    listed = [Listed(each, "2026-11-30") for each in offers]
    stated = [(f"s/offer/{o.key}/h", asdict(o)) for o in offers]
    for lots in (lots_of(listed), unpacked(packed(stated, "2026-11-30"))):
        found = ranker.rank(lots, top)
        assert [(r.cost, r.listed.offer.name, r.listed.offer.key) for r in found.ranked] == plain
        assert found.able + sum(len(e.lot) for e in found.excluded) == len(offers)
        for each in found.ranked:
            assert each.by_hour == 1 + sum(hourly(o) < each.hour for o in fit)
            assert each.listed.offer.region == f"r{int(each.listed.offer.key, 16)}"
    assert packed(stated, "2026-11-30") == packed(reversed(stated), "2026-11-30")


@settings(max_examples=80, deadline=None)
@given(some_work(), some_offers())
def test_every_quote_adds_up_and_its_range_holds_its_middle(profile: Profile, each: MarketOffer):
    quote = one(profile, each)
    lines = [line.amount for line in lines_of(quote) if line.amount is not None]
    for name in ("low", "likely", "high"):
        assert sum(getattr(span, name) for span in lines) == getattr(quote.total, name)
    assert quote.carried.seconds.low <= quote.carried.seconds.likely <= quote.carried.seconds.high
    assert quote.low.finish_s <= quote.likely.finish_s <= quote.high.finish_s
    if each.plan not in ("per-minute-down",) and profile.moves.reserved_h is None:
        assert quote.total.low <= quote.total.likely <= quote.total.high


REFUSED = [
    ("", "work.toml", "profile/field"),
    ("seconds_per_unit = 0", "work.toml", "profile/field"),
    ("seconds_per_unit = 1e99999999999999999999", "work.toml", "profile/toml"),
    ("seconds_per_unit = -3", "work.toml", "profile/field"),
    ('seconds_per_unit = 3\nunits = "many"', "work.toml", "profile/field"),
    ("seconds_per_unit = 3\n[time]\ncompute = 4", "work.toml", "profile/field"),
    ("[time]\ncolour = 4", "work.toml", "profile/field"),
    ('seconds_per_unit = 3\ngrade = "good"', "work.toml", "profile/field"),
    ("seconds_per_unit = 3\ncpu = 1\nvcpus = 2", "work.toml", "profile/field"),
    ("{", "work.json", "profile/json"),
    ("[1]", "work.json", "profile/field"),
    ("a,b\n1,2\n3,4,5\n", "work.csv", "profile/csv"),
    ("seconds_per_unit = ", "work.toml", "profile/toml"),
]


@pytest.mark.parametrize(("text", "file", "code"), REFUSED)
def test_a_profile_that_cannot_be_used_is_refused_with_its_field(text: str, file: str, code: str):
    with pytest.raises(OuvrageError) as refused:
        profile_in(file, text)
    assert refused.value.code == code
    assert refused.value.hint


def test_one_profile_in_three_forms():
    toml = profile_in(
        "w.toml", 'unit = "step"\nunits = 5\nseconds_per_unit = 2.5\ngpu = "T4"\nvcpus = 2'
    )
    json_ = profile_in(
        "w.json", '{"unit": "step", "units": 5, "seconds_per_unit": 2.5, "gpu": "T4", "vcpus": 2}'
    )
    row = profile_in("w.csv", "unit,units,seconds_per_unit,gpu,vcpus\nstep,5,2.5,T4,2\n")
    pairs = profile_in(
        "w.csv", "name,value\nunit,step\nunits,5\nseconds_per_unit,2.5\ngpu,T4\nvcpus,2\n"
    )
    told = [
        (p.unit, p.units, p.timing.likely, p.on.gpu, p.on.vcpus, p.terms)
        for p in (toml, json_, row, pairs)
    ]
    assert told == [told[0]] * 4
    assert told[0][:3] == ("step", 5, Fraction("2.5"))


def test_sizes_in_bytes_and_durations_in_words():
    profile = profile_in(
        "w.toml",
        'seconds_per_unit = 1\ndataset_bytes = 2500000000\ncheckpoint_gib = 1\ndeadline = "6 h"\n'
        'checkpoint_every = "10 min"\negress_destination = "home"\ncolour = "red"',
    )
    assert profile.moves.dataset_gb == Fraction("2.5")
    assert profile.moves.checkpoint_gb == Fraction(2**30, 10**9)
    assert (profile.deadline_s, profile.moves.checkpoint_every_s) == (21600, 600)
    assert profile.moves.egress_to == "home"
    assert "'colour' means nothing here" in profile.notes


def test_memory_beside_ram_is_the_gpus_and_parts_that_add_up_to_one_are_shares():
    text = '{"gpu": "RTX 3080", "memory_gib": 10, "ram_gib": 12, "vcpu": 4, "seconds_per_unit": 200, "time": {"compute": 0.6, "wait": 0.4}}'
    profile = profile_in("w.json", text)
    assert (profile.needs.gpu_memory_mib, profile.on.memory_mib) == (10 * 1024, 12 * 1024)
    assert profile.terms == {"computing": 120, "waiting_data": 80}
    alone = profile_in("w.json", '{"memory_gib": 12, "time": {"compute_s": 1}}')
    assert (alone.needs.gpu_memory_mib, alone.on.memory_mib) == (None, 12 * 1024)


def test_results_leave_at_the_tier_that_the_month_has_reached():
    each = offer(provider="AWS")  # 100 GB free, then 0.09 to 10 TB and 0.085 beyond
    first = amounts(one(work("results_gb = 100"), each))["results out"]
    later = amounts(one(work("results_gb = 100\negress_before_gb = 20000"), each))["results out"]
    assert (first, later) == (0, Fraction("8.5"))


def _out(to: str, plan: str | None = "ec2-linux", **stated: Any) -> tuple[Fraction | None, str]:
    quote = one(work(f'results_gb = 150\negress_to = "{to}"'), offer(plan=plan, **stated))
    line = next(line for line in lines_of(quote) if line.name == "results out")
    assert ("results out" in quote.not_counted) is (line.amount is None)
    return line.amount and line.amount.likely, line.because


def test_traffic_is_priced_by_where_it_goes():
    # 100 GB a month are free towards the internet; between zones each way costs 0.01
    assert _out("internet")[0] == Fraction("4.5")
    assert _out("another zone")[0] == Fraction("3")
    assert _out("other-region") == (None, "no price of traffic to 'other region' is stated")
    assert _out("home") == (None, "no price of traffic to 'home' is stated")
    # who charges for no traffic at all charges for none to anywhere
    assert _out("other region", "lambda")[0] == 0
    # an offer's own price is that of traffic to the internet
    assert _out("internet", None, egress_gb="0.02")[0] == 3
    assert _out("same zone", None, egress_gb="0.02")[0] is None


def _taxed(profile: Profile, **stated: Any) -> tuple[list[Fraction | None], Grade]:
    quote = one(profile, offer(**stated))
    line = next(line for line in lines_of(quote) if line.name == "tax")
    spans = [] if line.amount is None else [line.amount.low, line.amount.likely, line.amount.high]
    work_likely = amounts(quote)["work"]
    assert work_likely
    return [each and each / work_likely for each in spans], line.grade


def test_tax_comes_on_top_as_far_as_it_is_stated():
    at = work("tax = '19 %'")
    rate = Fraction("0.19")
    assert _taxed(work(), plan="lambda") == ([], Grade.LISTED)
    assert _taxed(at, plan="lambda") == ([rate] * 3, Grade.ASSUMED)
    # whether the price holds it is not stated: the range says so
    assert _taxed(at, plan="genesis-cloud", name="g") == ([0, rate, rate], Grade.ASSUMED)
    for status in ("included", "none"):
        assert _taxed(at, plan="lambda", tax=status) == ([0] * 3, Grade.LISTED)
    with pytest.raises(OuvrageError):
        work("tax = 19")
    told = warnings(ranked(at, offer(plan="lambda")), "2026-11-30")
    assert "tax comes on top, at the rate of 19 % that the profile says" in told


def test_what_has_no_price_is_marked_and_not_taken_for_cheap():
    profile = work('results_gb = 150\negress_to = "other zone"')
    result = ranked(profile, offer(plan="ec2-linux", key="1" * 16), offer(plan=None, key="2" * 16))
    open_ = [each.quote.not_counted for each in result.ranked]
    assert open_ == [("results out", "tax"), ("tax",)]
    shown = [row[3].endswith(" + ?") for row in rows(result, False)]
    assert shown == [True, False]
    assert " + ?, in " in headline(result, False)[0]
    assert "no price is stated of results out (1 offer)" in " ".join(warnings(result, "2026-11-30"))


def test_contradicting_texts_and_missing_plans_widen_the_range():
    profile = work(units=Fraction(1))  # 127.2 s

    def billed(**stated: Any) -> tuple[Fraction, ...]:
        quote = one(profile, offer(**stated))
        line = next(line for line in lines_of(quote) if line.name == "increments")
        assert line.grade is Grade.ASSUMED
        return tuple(case.billed_s for case in (quote.low, quote.likely, quote.high))

    assert billed(plan="azure-per-second") == (120, 128, 128)
    assert billed(plan="coreweave") == (180, 3600, 3600)
    assert billed(plan=None) == (Fraction("127.2"), Fraction("127.2"), 3600)


def test_a_price_that_the_offer_shares_is_called_the_cheapest_hour_too():
    result = ranked(work(), offer(key="1" * 16), offer(key="2" * 16, name="b machine", vcpus="2"))
    assert headline(result, False)[1] == "  It is also the cheapest hour."


def test_what_somebody_writes_down_is_never_a_measurement():
    profile = work('grade = "measured"')
    assert (profile.timing.grade, profile.terms_grade) == (Grade.REPORTED, Grade.REPORTED)
    assert "reported, and never measured" in " ".join(profile.notes)


def test_costs_in_a_table_stand_in_one_currency():
    rate = ExchangeRate(base="EUR", quote="USD", rate="1.30", day="2026-11-27", said_by="a bank")
    mixed = [offer(key="1" * 16), offer(key="2" * 16, price="0.25", currency="EUR")]
    result = ranked(work(), *mixed, rates={"EUR": rate})
    assert [row[2:4] for row in rows(result, False)] == [
        ("0.300 USD ○", "0.0106 (0.0106–0.0110)"),
        ("0.250 EUR ○", "0.0115 USD (0.0115–0.0119)"),
    ]
