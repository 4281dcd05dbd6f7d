"""Submitted work: what runs, why the rest waits, what each finished unit takes, and the output as it comes.

Decides how much of a log stands in a page, and which jobs the list begins with. Why a job waits is the engine's own word.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.console.blocks import (
    Block,
    Buttons,
    Cell,
    ConsolePage,
    Facts,
    Field,
    Form,
    Log,
    Notice,
    Table,
    Tiles,
)
from ouvrage.model.work import ENDED, UNDER_WAY
from ouvrage.server.access import engine_of
from ouvrage.server.authorise import may
from ouvrage.server.pages import telemetry
from ouvrage.server.pages.frame import Visit, VisitDep, asked, deed, page, refused
from ouvrage.server.pages.offers import may_somewhere
from ouvrage.server.pages.told import length, mebibytes, moment, money, state
from ouvrage.server.routes import job_output
from ouvrage.server.services import jobs, logs, offers, projects, usage
from ouvrage.server.services.waking import after_change, after_stopping
from ouvrage.server.services.watching import watched
from ouvrage.wire.work import (
    AttemptTold,
    Explained,
    JobShown,
    JobTold,
    NewJob,
    ServiceTold,
    Why,
)

router = APIRouter()
MOST = 50
MOST_JOBS = 10_000
FIRST_BYTES = 1 << 16
"""So much of a log's end stands in the page itself."""


def listed(seen: Visit) -> ConsolePage:
    """Jobs, newest first: those under way, or all."""
    _ = seen.word
    every = seen.given("all") == "1"
    states = None if every else UNDER_WAY
    found = jobs.listed(
        seen.platform, seen.who, states=states, project=seen.given("project") or None, lease=None,
        cursor=seen.given("before") or None, limit=MOST,
    )  # fmt: skip
    shown, more = found[:MOST], len(found) > MOST
    ended = [] if every else jobs.listed(
        seen.platform, seen.who, states=ENDED, project=None, lease=None, cursor=None, limit=10,
    )[:10]  # fmt: skip
    running = sum(each.state == "running" for each in shown)
    waiting = sum(each.state == "waiting" for each in shown)
    blocks: list[Block] = [
        table(
            seen,
            shown,
            _("All jobs") if every else _("Under way"),
            more=_next(seen, shown) if more else None,
        )
    ]
    if ended:
        blocks.append(table(seen, ended, _("Ended lately"), more="/jobs?all=1"))
    if may_somewhere(seen, "job.submit"):
        blocks.append(_form(seen, shown_open=not shown and not ended))
    return ConsolePage(
        title=_("Jobs"),
        headline=f"{_('Running')}: {running}; {_('waiting')}: {waiting}",
        lead=(),
        place="jobs",
        blocks=tuple(blocks),
        live_s=5,
    )


def _next(seen: Visit, found: list[JobTold]) -> str:
    return f"/jobs?all={seen.given('all')}&before={found[-1].job}"


def table(seen: Visit, found: list[JobTold], heading: str, more: str | None = None) -> Table:
    """Jobs as rows."""
    _ = seen.word
    return Table(
        heading=heading,
        columns=(_("Job"), _("Project"), _("Under"), _("State"), _("Units"), _("One unit"), _("Submitted")),
        rows=tuple(_row(seen, each) for each in found),
        empty=_("No job is under way: submit one below, or with ouvrage job submit."),
        more=more,
    )  # fmt: skip


def _row(seen: Visit, each: JobTold) -> tuple[Cell, ...]:
    _ = seen.word
    last = each.last
    under = each.offer_name or (f"{_('lease')} {code_of(each.lease)}" if each.lease else "–")
    return (
        Cell(text=f"{each.code} {each.name}", href=f"/jobs/{each.job}", note=each.reason or ""),
        Cell(text=each.project_name),
        Cell(text=under),
        state(each.state, _(each.state)),
        Cell(text=_units(last), number=True),
        Cell(text=length(last.unit_us) if last else "–", number=True),
        Cell(text=moment(each.submitted_us, seen.language)),
    )


def _units(last: AttemptTold | None) -> str:
    if last is None or last.units is None:
        return "–"
    return f"{last.units} {last.unit or ''}".strip()


def _form(seen: Visit, *, shown_open: bool) -> Block:
    _ = seen.word
    sale = offers.listed(seen.platform, seen.who, withdrawn=False, cursor=None, limit=MOST)
    mine = [
        each
        for each in projects.listed(seen.platform, seen.who, None, "", MOST)
        if not each.closed and may(seen.who, "job.submit", org=each.org, project=each.project)
    ]
    if not sale or not mine:
        return Notice(text=_("Work can be submitted once there is an offer and a project."), href="/offers", action=_("See the offers"), tone="plain")  # fmt: skip
    return Form(
        heading=_("Submit a job"),
        action="/jobs",
        submit=_("Submit"),
        twin="ouvrage job submit --offer OFFER -- COMMAND",
        open=shown_open,
        fields=(
            Field(name="command", label=_("Command"), kind="area", help=_("Run by /bin/sh, in the sandbox.")),
            Field(name="offer", label=_("Offer"), kind="select", choices=tuple((o.offer, _offer_words(o)) for o in sale)),
            Field(name="project", label=_("Project"), kind="select", choices=tuple((p.project, f"{p.org_name}/{p.name}") for p in mine)),
            Field(name="name", label=_("Name"), required=False),
            Field(name="time_limit", label=_("Time limit"), value="1h", required=False),
            Field(name="unit", label=_("Unit"), required=False, help=_("epoch, step, image, …; found by the meter where left out.")),
        ),
    )  # fmt: skip


def _offer_words(offer: Any) -> str:
    return (
        f"{offer.name}  {offer.rate or offer.plan} {offer.currency}/h" if offer.rate else offer.name
    )


def submit(seen: Visit, form: dict[str, str]) -> str:
    """Submit a job to an offer."""
    once = seen.once(form)
    given = {name: form.get(name, "").strip() for name in ("command", "name", "time_limit", "unit")}
    wanted = asked(
        NewJob,
        project=form.get("project", ""),
        offer=form.get("offer", ""),
        spec={name: value for name, value in given.items() if value},
    )
    engine = engine_of(seen.request)
    told = once.do(
        JobTold, wanted, lambda tx: jobs.submit(tx, seen.platform, engine, seen.who, wanted)
    )
    after_change(seen.platform)
    return f"/jobs/{told.job}"


def one(seen: Visit) -> ConsolePage:
    """One job: how it stands and why, its attempts, its output."""
    _ = seen.word
    told = jobs.shown(seen.platform, seen.request.app.state.uses, seen.who, seen.given("job"))
    why = jobs.explained(seen.platform, engine_of(seen.request), seen.who, told.job)
    over = told.state in ENDED
    return ConsolePage(
        title=f"{told.code} {told.name}",
        headline=f"{told.name}: {_(told.state)}" + (f", {told.reason}" if over and told.reason else ""),
        lead=() if over else (why.words,),
        place="jobs",
        trail=((_("Jobs"), "/jobs"),),
        blocks=tuple(_blocks(seen, told, why)),
        live_s=0 if over else 3,
    )  # fmt: skip


def _blocks(seen: Visit, told: JobShown, why: Explained) -> list[Block]:
    blocks: list[Block] = [_tiles(seen, told)]
    if told.last is not None and told.last.warned_us is not None:
        words = seen.word("Its GPUs are held, paid for, and stand idle:")
        blocks.insert(0, Notice(text=f"{words} {length(told.last.idle_us)}", tone="bad"))
    blocks += _doing(seen, told)
    if told.service is not None:
        blocks.append(_service(seen, told.service))
    blocks.append(_attempts(seen, told))
    blocks += telemetry.of_job(seen, told)
    if told.last is not None:
        blocks.append(_log(seen, told))
    if told.files:
        blocks.append(_files(seen, told))
    blocks.append(_facts(seen, told, why))
    return blocks


def _tiles(seen: Visit, told: JobShown) -> Tiles:
    _ = seen.word
    last = told.last
    used = last.used if last else None
    memory = (
        "–"
        if used is None or used.memory_bytes is None
        else mebibytes(used.memory_bytes >> 20, seen.language)
    )
    ran = (last.wall_us or _so_far(seen, last)) if last else None
    return Tiles(
        tiles=(
            (_("State"), state(told.state, _(told.state))),
            (_("Units finished"), Cell(text=_units(last))),
            (_("One unit takes"), Cell(text=length(last.unit_us) if last else "–")),
            (_("Running for"), Cell(text=length(ran))),
            (_("Memory at its peak"), Cell(text=memory)),
            (_("Cost, this month"), _cost(seen, told)),
        )
    )


def _cost(seen: Visit, told: JobShown) -> Cell:
    """What the job cost this month, as its bill will say; one in a lease costs nothing beside it."""
    if told.lease is not None:
        return Cell(text=seen.word("in the lease"))
    found = usage.usage(
        seen.platform,
        seen.who,
        org=None,
        project=told.project,
        by="job",
        period=None,
        limit=MOST_JOBS,
    )
    mine = next((each for each in found.rows if each.key == told.job), None)
    return money(mine.cost if mine else "0", found.currency, seen.language, Grade.METERED)


def _so_far(seen: Visit, last: AttemptTold) -> int | None:
    if last.began_us is None:
        return None
    return max(0, (last.ended_us or seen.platform.clock()) - last.began_us)


def _doing(seen: Visit, told: JobShown) -> list[Block]:
    _ = seen.word
    if not may(seen.who, "job.change", org=told.org, project=told.project):
        return []
    if told.state in ENDED:
        return [Buttons(buttons=((_("Run it again"), f"/jobs/{told.job}/retry", "plain"),))]
    return [Buttons(buttons=((_("Cancel"), f"/jobs/{told.job}/cancel", "bad"),))]


def _service(seen: Visit, told: ServiceTold) -> Facts:
    """How a service does and what it did; times are the bounds of their buckets."""
    _ = seen.word
    well = {True: _("well"), False: _("not well"), None: _("not known yet")}[told.well]
    tokens = "–" if told.tokens_out is None else str(told.tokens_out)
    untold = told.requests - told.failed - told.counted
    note = f"{untold} {_('answers told none')}" if told.counted and untold > 0 else ""
    cost = "–" if told.cost_per_unit is None else f"{told.cost_per_unit} {told.currency}"
    pairs: list[tuple[str, Cell]] = [
        (_("Address"), Cell(text=told.address, note=_("asked with a token of yours"))),
        (_("Health"), Cell(text=well)),
        (_("Requests"), Cell(text=str(told.requests))),
        (_("Failed"), Cell(text=str(told.failed))),
        (_("Tokens out"), Cell(text=tokens, note=note)),
        (f"{_('Cost per')} {_(told.unit)}", Cell(text=cost)),
    ]
    names = (
        (_("First byte"), told.first),
        (_("First text"), told.token),
        (_("Whole answer"), told.took),
    )
    for name, times in names:
        text = f"{length(times.p50_us)} · {length(times.p95_us)}"
        pairs.append((name, Cell(text=text, note=_("half · 95 of 100, at most"))))
    return Facts(heading=_("Service"), pairs=tuple(pairs))


def _attempts(seen: Visit, told: JobShown) -> Table:
    _ = seen.word
    return Table(
        heading=_("Attempts"),
        columns=(_("Attempt"), _("State"), _("Began"), _("Ran"), _("Ended with"), _("Units"), _("Isolation"), _("Lease")),
        rows=tuple(
            (
                Cell(text=str(each.number), note=each.reason or ""),
                state(each.outcome or each.state, _(each.outcome or each.state)),
                Cell(text=moment(each.began_us, seen.language)),
                Cell(text=length(each.wall_us), number=True),
                Cell(text=_exit(seen, each)),
                Cell(text=_units(each), number=True),
                Cell(text=each.isolation or "–"),
                Cell(text=code_of(each.lease), href=f"/leases/{each.lease}"),
            )
            for each in told.all_attempts
        ),
        empty=_("None yet."),
    )  # fmt: skip


def _exit(seen: Visit, each: AttemptTold) -> str:
    if each.signal is not None:
        return f"{seen.word('signal')} {each.signal}"
    return "–" if each.exit_code is None else f"{seen.word('exit code')} {each.exit_code}"


def _log(seen: Visit, told: JobShown) -> Log:
    """The end of the last attempt's log, and where the rest comes from."""
    _ = seen.word
    found = watched(seen.platform, seen.who, told.job, None)
    start = max(0, found.bytes - FIRST_BYTES)
    data = logs.piece(seen.platform.files_dir, found.attempt, start, found.bytes - start)
    notes = []
    if start:
        notes.append(_("Only its end is shown here; the command prints all of it."))
    if found.state == "cut":
        notes.append(_("It was longer than a log may be, and was cut."))
    return Log(
        heading=f"{_('Output of attempt')} {found.number}",
        text=data.decode("utf-8", "replace"),
        follow=f"/jobs/{told.job}/log" if found.state == "open" else None,
        offset=start + len(data),
        note=" ".join([*notes, f"ouvrage job logs {told.code} -f"]),
    )


def _files(seen: Visit, told: JobShown) -> Table:
    _ = seen.word
    return Table(
        heading=_("Files"),
        columns=(_("Name"), _("Direction"), _("Bytes"), "SHA-256"),
        rows=tuple(
            (
                Cell(text=each.name),
                Cell(text=_("brought in") if each.direction == "in" else _("left")),
                Cell(text=str(each.bytes), number=True),
                Cell(text=each.sha256[:16]),
            )
            for each in told.files
        ),
    )


def _facts(seen: Visit, told: JobShown, why: Explained) -> Facts:
    _ = seen.word
    command = told.spec.get("command") or ()
    pairs: list[tuple[str, Cell]] = [
        (_("Why it stands so"), Cell(text=why.words, note=why.code)),
        *(
            (_(str(key).replace("_", " ")).capitalize(), Cell(text=str(value)))
            for key, value in why.detail.items()
        ),
        (_("Command"), Cell(text=" ".join(map(str, command)))),
        (_("Project"), Cell(text=told.project_name)),
        (_("Submitted"), Cell(text=moment(told.submitted_us, seen.language))),
        (_("Ended"), Cell(text=moment(told.ended_us, seen.language))),
        (_("Identifier"), Cell(text=told.job)),
    ]
    return Facts(heading=_("About this job"), pairs=tuple(pairs))


def cancel(seen: Visit, form: dict[str, str]) -> str:
    """End a job."""
    once, name = seen.once(form), seen.given("job")
    wanted, engine = Why(), engine_of(seen.request)
    told = once.do(
        JobTold, wanted, lambda tx: jobs.cancel(tx, seen.platform, engine, seen.who, name, wanted)
    )
    after_stopping(seen.platform, job=told.job)
    return f"/jobs/{told.job}"


def retry(seen: Visit, form: dict[str, str]) -> str:
    """Run a job again."""
    once, name = seen.once(form), seen.given("job")
    engine = engine_of(seen.request)
    told = once.do(JobTold, None, lambda tx: jobs.retry(tx, seen.platform, engine, seen.who, name))
    after_change(seen.platform)
    return f"/jobs/{told.job}"


page(router, "/jobs", listed)


@router.get("/jobs/{job}/log", include_in_schema=False)
async def log(
    request: Request,
    seen: VisitDep,
    job: str,
    offset: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    follow: bool = False,
) -> Response:
    """The output of a job's last attempt for an open page."""
    if seen.actor is None:
        return Response(status_code=401)
    try:
        return await job_output.log(request, seen.platform, seen.actor, job, None, offset, follow)
    except OuvrageError as error:
        return await run_in_threadpool(refused, seen, error)


page(router, "/jobs/{job}", one)
deed(router, "/jobs", submit)
deed(router, "/jobs/{job}/cancel", cancel)
deed(router, "/jobs/{job}/retry", retry)
