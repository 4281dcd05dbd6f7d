"""The owner's machines: what each has, who has it, and what is held back from new work.

Decides what of a machine leads and which forms are offered; a one-time token is shown once, on the page that answers the form.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.console.blocks import (
    Block,
    Cell,
    ConsolePage,
    Facts,
    Field,
    Form,
    Notice,
    Table,
    Tiles,
)
from ouvrage.server.authorise import may
from ouvrage.server.pages import telemetry
from ouvrage.server.pages.frame import Visit, asked, deed, page
from ouvrage.server.pages.told import mebibytes, moment, state
from ouvrage.server.services import nodes
from ouvrage.server.services.waking import after_change
from ouvrage.wire.work import EnrolmentMade, NewEnrolment, NewFence, NewListing, NodeTold

router = APIRouter()
MOST = 200
ENROL = "ouvrage agent run --server URL --enrol-file FILE"


def listed(seen: Visit) -> ConsolePage:
    """Every node."""
    _ = seen.word
    found = nodes.listed(seen.platform, seen.who, after="", limit=MOST)
    away = [each for each in found if each.state != "here"]
    fenced = [each for each in found if each.fences]
    headline = f"{_('Machines')}: {len(found)}"
    if away or fenced:
        headline += f"; {_('away')}: {len(away)}; {_('held back')}: {len(fenced)}"
    blocks: list[Block] = [
        Table(
            heading="",
            columns=(_("Node"), _("State"), _("Health"), _("Cores free"), _("Memory free"), _("GPUs"), _("Attempts"), _("New work")),
            rows=tuple(_row(seen, each) for each in found),
            empty=_("No machine yet: make an enrolment, then start the runner on the machine with it."),
        )
    ]  # fmt: skip
    if may(seen.who, "node.enrol", org=None):
        blocks.append(_enrol_form(seen, shown_open=not found))
    return ConsolePage(
        title=_("Nodes"),
        headline=headline if found else _("No machine has joined yet"),
        lead=(),
        place="nodes",
        blocks=tuple(blocks),
        live_s=5,
    )


def _row(seen: Visit, each: NodeTold) -> tuple[Cell, ...]:
    _ = seen.word
    taken = sum(device.lease is not None for device in each.devices)
    gpus = f"{taken} / {len(each.devices)}" if each.devices else "–"
    return (
        Cell(text=each.name, href=f"/nodes/{each.name}"),
        state("online" if each.state == "here" else "away", _(each.state)),
        _health(each.health, seen),
        Cell(text=f"{each.cpus_free} / {each.cpus}", number=True),
        Cell(text=mebibytes(each.memory_free_mib, seen.language), number=True),
        Cell(text=gpus, number=True),
        Cell(text=str(each.attempts), number=True),
        _takes(seen, each),
    )


def _health(word: str, seen: Visit) -> Cell:
    """A state of health in words, with its tone."""
    _ = seen.word
    words = {
        "healthy": _("healthy"), "suspect": _("suspect"), "fenced": _("fenced"),
        "draining": _("draining"), "repairing": _("repairing"), "verifying": _("verifying"),
        "awaiting_hands": _("awaits hands"), "rma": _("returned"), "retired": _("retired"),
        "maintenance": _("maintenance"), "unknown": _("not looked at"),
    }  # fmt: skip
    tones = dict.fromkeys(("suspect", "maintenance", "verifying"), "waiting")
    tones |= {"healthy": "active", "unknown": ""}
    return state(tones.get(word, "fenced"), words.get(word, word))


def _takes(seen: Visit, each: NodeTold) -> Cell:
    _ = seen.word
    if any(fence.device is None for fence in each.fences):
        return state("fenced", _("held back"))
    return state("listed" if each.listed else "unlisted", _("taken") if each.listed else _("not taken"))  # fmt: skip


def one(seen: Visit) -> ConsolePage:
    """One node: its parts, who has them, fences and what can be done."""
    _ = seen.word
    told = nodes.shown(seen.platform, seen.who, seen.given("node"))
    return ConsolePage(
        title=told.name,
        headline=_headline(seen, told),
        lead=(),
        place="nodes",
        trail=((_("Nodes"), "/nodes"),),
        blocks=tuple(_blocks(seen, told)),
        live_s=5,
    )


def _headline(seen: Visit, told: NodeTold) -> str:
    _ = seen.word
    if told.state != "here":
        return f"{told.name}: {_('no word since')} {moment(told.seen_us, seen.language)}"
    if told.fences:
        return f"{told.name}: {_('held back from new work')}"
    return f"{told.name}: {_('attempts under way')}: {told.attempts}"


def _blocks(seen: Visit, told: NodeTold) -> list[Block]:
    _ = seen.word
    lang = seen.language
    blocks: list[Block] = [
        Notice(
            text=f"{fence.device or told.name}: {fence.why or _('no reason given')} ({fence.holder}, {moment(fence.since_us, lang)})",
            tone="bad",
        )
        for fence in told.fences
    ]  # fmt: skip
    if told.health_why:
        blocks.append(Notice(text=f"{told.name}: {told.health_why}", tone="bad"))
    blocks.append(
        Tiles(
            tiles=(
                (_("Cores free"), Cell(text=f"{told.cpus_free} / {told.cpus}")),
                (_("Memory free"), Cell(text=mebibytes(told.memory_free_mib, lang))),
                (_("Scratch free"), Cell(text=mebibytes(told.disk_free_mib, lang))),
                (_("Leases"), Cell(text=str(told.leases))),
            )
        )
    )
    blocks.append(
        Table(
            heading=_("GPUs"),
            columns=(_("GPU"), _("Model"), _("Memory"), _("Lease"), _("State"), _("Health")),
            rows=tuple(
                (
                    Cell(text=device.device),
                    Cell(text=device.model),
                    Cell(text=mebibytes(device.memory_mib, lang), number=True),
                    Cell(
                        text=device.lease[-6:] if device.lease else "–",
                        href=f"/leases/{device.lease}" if device.lease else None,
                    ),
                    state("fenced", _("held back")) if device.fenced else state("active", _("good")),
                    _health(device.health, seen),
                )
                for device in told.devices
            ),
            empty=_("None was found on this machine: offers of cores and memory work without one."),
        )
    )  # fmt: skip
    blocks += telemetry.of_node(seen, told.node)
    blocks.append(
        Facts(
            heading=_("About this machine"),
            pairs=(
                (_("Isolation"), Cell(text=", ".join(told.isolations) or _("none"))),
                (_("Control groups"), Cell(text=told.cgroup)),
                (_("Version"), Cell(text=told.version)),
                (_("Joined"), Cell(text=moment(told.enrolled_us, lang))),
                (_("Last heard"), Cell(text=moment(told.seen_us, lang))),
                (_("Empty"), Cell(text=_("now") if told.empty else moment(told.empty_us, lang))),
            ),
        )
    )
    if may(seen.who, "node.change", org=None):
        blocks += _forms(seen, told)
    return blocks


def _forms(seen: Visit, told: NodeTold) -> list[Block]:
    _ = seen.word
    held = any(f.device is None and f.holder == "operator" for f in told.fences)
    why = Field(name="why", label=_("Why"), required=False, help=_("Stands in the trail."))
    hold = Form(
        heading=_("Let new work in again") if held else _("Hold back from new work"),
        action=f"/nodes/{told.name}/fence",
        submit=_("Let go") if held else _("Hold back"),
        twin=f"ouvrage node {'unfence' if held else 'fence'} {told.name}",
        open=False,
        fields=(Field(name="held", label="", kind="hidden", value="no" if held else "yes"), why),
    )
    listing = Form(
        heading=_("Take no new leases") if told.listed else _("Take new leases"),
        action=f"/nodes/{told.name}/listing",
        submit=_("Take it off the list") if told.listed else _("Put it on the list"),
        twin=f"ouvrage node {'unlist' if told.listed else 'list'} {told.name}",
        open=False,
        fields=(
            Field(name="listed", label="", kind="hidden", value="no" if told.listed else "yes"),
            why,
        ),
    )
    return [hold, listing]


def _enrol_form(seen: Visit, *, shown_open: bool) -> Form:
    _ = seen.word
    return Form(
        heading=_("Let a machine join"),
        action="/nodes/enrolments",
        submit=_("Make an enrolment"),
        twin="ouvrage node enrol",
        open=shown_open,
        fields=(),
    )


def enrol(seen: Visit, form: dict[str, str]) -> ConsolePage:
    """Make a one-time token and show it once."""
    _ = seen.word
    once, wanted = seen.once(form), NewEnrolment()
    made = once.do(
        EnrolmentMade, wanted, lambda tx: nodes.enrolment(tx, seen.platform, seen.who, wanted)
    )
    return ConsolePage(
        title=_("Let a machine join"),
        headline=_("Write this into a file on the machine: it is good once, and not shown again"),
        lead=(ENROL,),
        place="nodes",
        trail=((_("Nodes"), "/nodes"),),
        blocks=(
            Facts(
                heading="",
                pairs=(
                    (_("One-time token"), Cell(text=made.secret or _("shown before, and not again"))),
                    (_("Good until"), Cell(text=moment(made.expires_us, seen.language))),
                ),
            ),
        ),
    )  # fmt: skip


def fence(seen: Visit, form: dict[str, str]) -> str:
    """Hold a node back, or let go."""
    once, name = seen.once(form), seen.given("node")
    wanted = asked(NewFence, held=form.get("held") == "yes", why=form.get("why", ""))
    once.do(NodeTold, wanted, lambda tx: nodes.fence(tx, seen.platform, seen.who, name, wanted))
    after_change(seen.platform)
    return f"/nodes/{name}"


def listing(seen: Visit, form: dict[str, str]) -> str:
    """Whether a node takes new leases."""
    once, name = seen.once(form), seen.given("node")
    wanted = asked(NewListing, listed=form.get("listed") == "yes", why=form.get("why", ""))
    once.do(NodeTold, wanted, lambda tx: nodes.listing(tx, seen.platform, seen.who, name, wanted))
    after_change(seen.platform)
    return f"/nodes/{name}"


page(router, "/nodes", listed)
page(router, "/nodes/{node}", one)
deed(router, "/nodes/enrolments", enrol)
deed(router, "/nodes/{node}/fence", fence)
deed(router, "/nodes/{node}/listing", listing)
