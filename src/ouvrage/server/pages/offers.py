"""What is for sale, and who has what: offers and leases, with the forms that make, take and end them.

Decides how an offer's terms are laid out. Whether there is room for a lease is decided by the placement, and its refusal is shown.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.base.numbers import whole
from ouvrage.console.blocks import Block, Cell, ConsolePage, Facts, Field, Form, Notice, Said, Table
from ouvrage.model.selling import AUDIENCES
from ouvrage.server.authorise import is_owner_side, may
from ouvrage.server.errors import unreadable
from ouvrage.server.pages.frame import Visit, asked, deed, page
from ouvrage.server.pages.told import length, mebibytes, moment, money, state
from ouvrage.server.services import leases, offers, projects
from ouvrage.server.services.waking import after_change, after_stopping
from ouvrage.wire.work import LeaseTold, NewLease, NewOffer, OfferTold, Release, Why

router = APIRouter()
MOST = 100
HOUR_US = 3_600_000_000


def listed(seen: Visit) -> ConsolePage:
    """Offers for sale, and open leases."""
    _ = seen.word
    found = offers.listed(seen.platform, seen.who, withdrawn=False, cursor=None, limit=MOST)
    taken = leases.listed(
        seen.platform, seen.who, kind=None, open_only=True, cursor=None, limit=MOST
    )
    blocks: list[Block] = [
        Table(
            heading=_("Offers"),
            columns=(_("Offer"), _("GPUs"), _("Cores"), _("Memory"), _("Price per hour"), _("Billing"), _("Terms")),
            rows=tuple(_offer_row(seen, each) for each in found),
            empty=_("Nothing is for sale: make an offer."),
        ),
        _lease_table(seen, taken, _("Leases under way")),
    ]  # fmt: skip
    if found and may_somewhere(seen, "lease.create"):
        blocks.append(_take_form(seen, found))
    if may(seen.who, "offer.create", org=None):
        blocks.append(_offer_form(seen, shown_open=not found))
    return ConsolePage(
        title=_("Offers and leases"),
        headline=f"{_('For sale')}: {len(found)}; {_('leases under way')}: {len(taken)}",
        lead=(),
        place="offers",
        blocks=tuple(blocks),
        live_s=10,
    )


def may_somewhere(seen: Visit, action: str) -> bool:
    """Whether the reader may do something in any organisation of theirs."""
    return any(may(seen.who, action, org=h.org, project=h.project) for h in seen.who.memberships)


def _offer_row(seen: Visit, each: OfferTold) -> tuple[Cell, ...]:
    _ = seen.word
    return (
        Cell(text=each.name, href=f"/offers/{each.name}"),
        Cell(text=f"{each.gpus} {each.gpu or ''}".strip() if each.gpus else "–"),
        Cell(text=str(each.cpus), number=True),
        Cell(text=mebibytes(each.memory_mib, seen.language), number=True),
        money(each.rate, each.currency, seen.language),
        Cell(text=each.plan),
        Cell(text=_("may be interrupted") if each.interruptible else _("not interrupted")),
    )


def _lease_table(seen: Visit, found: list[LeaseTold], heading: str) -> Table:
    _ = seen.word
    return Table(
        heading=heading,
        columns=(_("Lease"), _("Offer"), _("Project"), _("Since"), _("Until"), _("Worked"), _("State")),
        rows=tuple(
            (
                Cell(text=each.code, href=f"/leases/{each.lease}"),
                Cell(text=each.offer_name, href=f"/offers/{each.offer}"),
                Cell(text=each.project_name),
                Cell(text=moment(each.from_us, seen.language)),
                Cell(text=moment(each.until_us, seen.language)),
                Cell(text=length(each.working_us), number=True),
                state("active" if each.state == "open" else each.state, _(each.state)),
            )
            for each in found
        ),
        empty=_("Nobody has one now: a job opens one for itself, or a project takes one for longer."),
    )  # fmt: skip


def _take_form(seen: Visit, found: list[OfferTold]) -> Form:
    _ = seen.word
    mine = projects.listed(seen.platform, seen.who, None, "", MOST)
    return Form(
        heading=_("Take a lease"),
        action="/leases",
        submit=_("Take it"),
        twin="ouvrage lease take OFFER --project PROJECT --for 2h",
        open=False,
        fields=(
            Field(name="offer", label=_("Offer"), kind="select", choices=tuple((o.name, o.name) for o in found)),
            Field(
                name="project",
                label=_("Project"),
                kind="select",
                choices=tuple((p.project, f"{p.org_name}/{p.name}") for p in mine if not p.closed),
            ),
            Field(name="hours", label=_("Hours"), kind="number", value="1", help=_("Empty: until it is given back."), required=False),
        ),
    )  # fmt: skip


def _offer_form(seen: Visit, *, shown_open: bool) -> Form:
    _ = seen.word
    return Form(
        heading=_("New offer"),
        action="/offers",
        submit=_("Put it up for sale"),
        twin="ouvrage offer create NAME --cpus 2 --memory 4GiB --rate 0.36",
        open=shown_open,
        fields=(
            Field(name="name", label=_("Name")),
            Field(name="rate", label=_("Price per hour"), value="0.30"),
            Field(name="currency", label=_("Currency"), value="EUR"),
            Field(name="cpus", label=_("Cores"), kind="number", value="1"),
            Field(name="memory_mib", label=_("Memory, MiB"), kind="number", value="1024"),
            Field(name="gpus", label=_("GPUs"), kind="number", value="0"),
            Field(name="gpu", label=_("GPU model"), required=False),
            Field(name="plan", label=_("Billing"), value="per-second", help=_("A rate plan: per-second, per-minute-up, …")),
            Field(name="audience", label=_("For"), kind="select", value="tenants", choices=tuple((a, _(a)) for a in AUDIENCES)),
            Field(
                name="why",
                label=_("To strangers though no machine is proven, because"),
                help=_("Stays on record. Empty: only from machines whose isolation and audit hold."),
                required=False,
            ),
        ),
    )  # fmt: skip


def _number(form: dict[str, str], name: str) -> int:
    text = form.get(name, "").strip()
    number = whole(text)
    if number is None:
        raise unreadable(
            "form/number",
            f"{name}: {text[:40]!r} is no whole number",
            hint="0, 1, 2, …",
            field=name,
        )
    return number


def make_offer(seen: Visit, form: dict[str, str]) -> str:
    """Put an offer up for sale."""
    once = seen.once(form)
    wanted = asked(
        NewOffer,
        name=form.get("name", "").strip(),
        gpu=form.get("gpu", "").strip() or None,
        gpus=_number(form, "gpus"),
        cpus=_number(form, "cpus"),
        memory_mib=_number(form, "memory_mib"),
        plan=form.get("plan", "").strip(),
        rate=form.get("rate", "").strip() or None,
        currency=form.get("currency", "").strip() or None,
        audience=form.get("audience", ""),
        anyway=bool(form.get("why", "").strip()),
        why=form.get("why", "").strip(),
    )
    made = once.do(OfferTold, wanted, lambda tx: offers.create(tx, seen.platform, seen.who, wanted))
    after_change(seen.platform)
    return f"/offers/{made.name}"


def offer(seen: Visit) -> ConsolePage:
    """One offer, with the plan that bills it."""
    _ = seen.word
    told = offers.shown(seen.platform, seen.who, seen.given("offer"))
    blocks: list[Block] = []
    if told.withdrawn_us is not None:
        blocks.append(
            Notice(
                text=f"{_('No longer for sale since')} {moment(told.withdrawn_us, seen.language)}"
            )
        )
    blocks += [
        Facts(
            heading="",
            pairs=(
                (_("Price per hour"), money(told.rate, told.currency, seen.language)),
                (_("Billing"), Cell(text=told.plan)),
                (_("GPUs"), Cell(text=f"{told.gpus} {told.gpu or ''}".strip() if told.gpus else _("none"))),
                (_("Cores"), Cell(text=str(told.cpus))),
                (_("Memory"), Cell(text=mebibytes(told.memory_mib, seen.language))),
                (_("Scratch"), Cell(text=mebibytes(told.disk_mib, seen.language))),
                (_("Isolation"), Cell(text=told.isolation)),
                (_("Terms"), Cell(text=_("may be interrupted") if told.interruptible else _("not interrupted"))),
                (_("Notice"), Cell(text=length(told.notice_us))),
                (_("For"), Cell(text=_(told.audience))),
            ),
        ),
        Said(heading=_("The rate plan, as it is frozen into every lease"), text=told.plan_text),
    ]  # fmt: skip
    if may(seen.who, "offer.withdraw", org=None) and told.withdrawn_us is None:
        blocks.append(
            Form(
                heading=_("Take it off sale"),
                action=f"/offers/{told.offer}/withdraw",
                submit=_("Take it off sale"),
                twin=f"ouvrage offer withdraw {told.name}",
                tone="bad",
                open=False,
                fields=(Field(name="why", label=_("Why"), required=False),),
            )
        )
    return ConsolePage(
        title=told.name,
        headline=told.name,
        lead=(_("Leases keep the terms under which they were taken; a change is another offer."),),
        place="offers",
        trail=((_("Offers and leases"), "/offers"),),
        blocks=tuple(blocks),
    )


def withdraw(seen: Visit, form: dict[str, str]) -> str:
    """Take an offer off sale."""
    once, name = seen.once(form), seen.given("offer")
    wanted = asked(Why, why=form.get("why", ""))
    once.do(
        OfferTold, wanted, lambda tx: offers.withdraw(tx, seen.platform, seen.who, name, wanted)
    )
    after_change(seen.platform)
    return "/offers"


def take(seen: Visit, form: dict[str, str]) -> str:
    """Take a lease."""
    once = seen.once(form)
    hours = form.get("hours", "").strip()
    wanted = asked(
        NewLease,
        offer=form.get("offer", ""),
        project=form.get("project", ""),
        for_us=_number(form, "hours") * HOUR_US if hours else None,
    )
    made = once.do(LeaseTold, wanted, lambda tx: leases.take(tx, seen.platform, seen.who, wanted))
    after_change(seen.platform)
    return f"/leases/{made.lease}"


def lease(seen: Visit) -> ConsolePage:
    """One lease: what it holds, how long it worked, and its end."""
    _ = seen.word
    told = leases.shown(seen.platform, seen.who, seen.given("lease"))
    end = told.ended_us or seen.platform.clock()
    span = max(1, end - told.from_us)
    blocks: list[Block] = [
        Facts(
            heading="",
            pairs=(
                (_("Offer"), Cell(text=told.offer_name, href=f"/offers/{told.offer}")),
                (_("Project"), Cell(text=told.project_name)),
                (_("Since"), Cell(text=moment(told.from_us, seen.language))),
                (_("Until"), Cell(text=moment(told.ended_us or told.until_us, seen.language))),
                (_("Held"), Cell(text=length(end - told.from_us))),
                (_("Of that working"), Cell(text=f"{length(told.working_us)} ({told.working_us * 100 // span} %)")),
                (_("GPUs"), Cell(text=", ".join(told.devices) or _("none"))),
                (_("Cores"), Cell(text=str(told.cpus))),
                (_("State"), state("active" if told.state == "open" else told.state, _(told.end or told.state))),
                *(((_("Node"), Cell(text=told.node)),) if is_owner_side(seen.who) and told.node else ()),
            ),
        )
    ]  # fmt: skip
    if told.state == "open" and may(seen.who, "lease.release", org=told.org, project=told.project):
        blocks.append(
            Form(
                heading=_("Give it back"),
                action=f"/leases/{told.lease}/release",
                submit=_("Give it back"),
                twin=f"ouvrage lease release {told.code}",
                tone="bad",
                open=False,
                fields=(
                    Field(
                        name="stop",
                        label=_("Work in it"),
                        kind="select",
                        choices=(("no", _("keep the lease while work runs")), ("yes", _("end the work too"))),
                    ),
                ),
            )
        )  # fmt: skip
    return ConsolePage(
        title=f"{_('Lease')} {told.code}",
        headline=f"{_('Lease')} {told.code}: {told.offer_name}, {_(told.state)}",
        lead=(),
        place="offers",
        trail=((_("Offers and leases"), "/offers"),),
        blocks=tuple(blocks),
        live_s=10 if told.state == "open" else 0,
    )


def release(seen: Visit, form: dict[str, str]) -> str:
    """Give a lease back."""
    once, name = seen.once(form), seen.given("lease")
    wanted = asked(Release, stop=form.get("stop") == "yes")
    told = once.do(
        LeaseTold, wanted, lambda tx: leases.release(tx, seen.platform, seen.who, name, wanted)
    )
    after_stopping(seen.platform, lease=told.lease)
    return f"/leases/{told.lease}"


page(router, "/offers", listed)
page(router, "/offers/{offer}", offer)
page(router, "/leases/{lease}", lease)
deed(router, "/offers", make_offer)
deed(router, "/offers/{offer}/withdraw", withdraw)
deed(router, "/leases", take)
deed(router, "/leases/{lease}/release", release)
