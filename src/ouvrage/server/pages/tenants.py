"""Organisations and the people in them: who there is, what they may do, and the forms that change it.

Decides what of an organisation is shown to whom by asking the services alone. A password or token that is made here is shown once, on
the page that answers the form.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.base.numbers import whole
from ouvrage.console.blocks import (
    Block,
    Cell,
    ConsolePage,
    Facts,
    Field,
    Form,
    Notice,
    Table,
)
from ouvrage.model.tenancy import OWNER_ROLES, TENANT_ROLES
from ouvrage.server.access import engine_of
from ouvrage.server.authorise import may
from ouvrage.server.pages.frame import Visit, asked, deed, page
from ouvrage.server.pages.told import moment, money, state
from ouvrage.server.services import members, organisations, projects, tokens
from ouvrage.wire.api import (
    CloseOrganisation,
    MemberMade,
    MemberTold,
    NewMember,
    NewOrganisation,
    NewProject,
    NewToken,
    OrganisationMade,
    OrganisationTold,
    ProjectTold,
    TokenShown,
    TokenTold,
)

router = APIRouter()
MOST = 200


def listed(seen: Visit) -> ConsolePage:
    """Every organisation that the reader may see."""
    _ = seen.word
    found = organisations.listed(seen.platform, seen.who, "", MOST)
    tenants = [each for each in found if each.side == "tenant"]
    blocks: list[Block] = [
        Table(
            heading="",
            columns=(_("Organisation"), _("Side"), _("Pays"), _("Credit limit"), _("State")),
            rows=tuple(_row(seen, each) for each in found),
        )
    ]
    if may(seen.who, "organisation.create", org=None):
        blocks.append(_new_tenant(seen))
    count = len([each for each in tenants if not each.closed])
    return ConsolePage(
        title=_("Tenants and budgets"),
        headline=_("Nobody rents here yet") if not count else f"{_('Open tenants')}: {count}",
        lead=()
        if count
        else (_("Make a tenant: its administrator gets a password, and submits work within a budget."),),
        place="tenants",
        blocks=tuple(blocks),
    )  # fmt: skip


def _row(seen: Visit, each: OrganisationTold) -> tuple[Cell, ...]:
    _ = seen.word
    return (
        Cell(text=each.name, href=f"/tenants/{each.name}"),
        Cell(text=_(each.side)),
        Cell(text=_(each.billing)),
        money(each.credit_limit, each.currency, seen.language),
        state("closed" if each.closed else "active", _("closed") if each.closed else _("open")),
    )


def _new_tenant(seen: Visit) -> Form:
    _ = seen.word
    return Form(
        heading=_("New tenant"),
        action="/tenants",
        submit=_("Make it"),
        twin="ouvrage tenant create NAME --admin LOGIN",
        open=False,
        fields=(
            Field(name="name", label=_("Name"), help=_("Lower-case letters, digits and hyphens.")),
            Field(name="admin", label=_("Administrator's login"), value="admin"),
            Field(name="currency", label=_("Currency"), value="EUR"),
            Field(
                name="billing",
                label=_("Pays"),
                kind="select",
                choices=(("prepaid", _("prepaid")), ("credit", _("credit"))),
            ),
            Field(name="credit_limit", label=_("Credit limit"), value="0"),
        ),
    )


def make_tenant(seen: Visit, form: dict[str, str]) -> ConsolePage:
    """Make a tenant and show its administrator's password once."""
    once = seen.once(form)
    wanted = asked(NewOrganisation, **{name: value.strip() for name, value in form.items()})
    made = once.do(
        OrganisationMade,
        wanted,
        lambda tx: organisations.create(tx, seen.platform, seen.who, wanted),
    )
    name = made.organisation.name
    return _secret_page(
        seen, name, f"/tenants/{name}", seen.word("Password"), made.login or "", made.password
    )


def one(seen: Visit) -> ConsolePage:
    """One organisation: its people, projects and tokens, and what can be changed."""
    _ = seen.word
    told = organisations.one(seen.platform, seen.who, seen.given("org"))
    blocks: list[Block] = []
    if told.closed:
        blocks.append(
            Notice(
                text=_("Closed: its people cannot sign in and no work is taken. Its record stays.")
            )
        )
    blocks.append(
        Facts(
            heading="",
            pairs=(
                (_("Pays"), Cell(text=_(told.billing))),
                (_("Credit limit"), money(told.credit_limit, told.currency, seen.language)),
                (_("Identifier"), Cell(text=told.org)),
            ),
        )
    )  # fmt: skip
    blocks.append(_projects(seen, told))
    if may(seen.who, "member.read", org=told.org):
        blocks.append(_members(seen, told))
    if may(seen.who, "token.read", org=told.org):
        blocks.append(_tokens(seen, told))
    blocks += _changes(seen, told)
    return ConsolePage(
        title=told.name,
        headline=told.name,
        lead=(_("The owner of the machines.") if told.side == "owner" else _("A tenant."),),
        place="tenants",
        trail=((_("Tenants and budgets"), "/tenants"),),
        blocks=tuple(blocks),
    )


def _projects(seen: Visit, org: OrganisationTold) -> Table:
    _ = seen.word
    found = projects.listed(seen.platform, seen.who, org.org, "", MOST)
    return Table(
        heading=_("Projects"),
        columns=(_("Project"), _("Weight"), _("Isolation"), _("State")),
        rows=tuple(_project_row(seen, each) for each in found),
        empty=_("No project yet: work is submitted to one."),
    )


def _project_row(seen: Visit, each: ProjectTold) -> tuple[Cell, ...]:
    _ = seen.word
    return (
        Cell(text=each.name),
        Cell(text=each.weight, number=True),
        Cell(text=_("none allowed") if each.trusted else _("always sandboxed")),
        state("closed" if each.closed else "active", _("closed") if each.closed else _("open")),
    )


def _members(seen: Visit, org: OrganisationTold) -> Table:
    _ = seen.word
    found = members.listed(seen.platform, seen.who, org.org, "", MOST)
    return Table(
        heading=_("People and programs"),
        columns=(_("Login"), _("Kind"), _("Roles")),
        rows=tuple(_member_row(seen, each) for each in found),
        empty=_("Nobody yet."),
    )


def _member_row(seen: Visit, each: MemberTold) -> tuple[Cell, ...]:
    roles = [
        f"{seen.word(r.role)}{' (' + r.project[:8] + ')' if r.project else ''}" for r in each.roles
    ]
    return (
        Cell(text=each.login),
        Cell(text=seen.word(each.kind)),
        Cell(text=", ".join(roles) or "–"),
    )  # fmt: skip


def _tokens(seen: Visit, org: OrganisationTold) -> Table:
    _ = seen.word
    found = tokens.listed(seen.platform, seen.who, org.org, "", MOST)
    return Table(
        heading=_("Tokens"),
        columns=(_("Name"), _("Login"), _("Good for"), _("Until"), _("Last used"), _("State")),
        rows=tuple(_token_row(seen, each) for each in found),
        empty=_("No token yet: programs and the command line use one."),
    )


def _token_row(seen: Visit, each: TokenTold) -> tuple[Cell, ...]:
    return (
        Cell(text=each.name),
        Cell(text=each.login),
        Cell(text=", ".join(each.scopes)),
        Cell(text=moment(each.expires_us, seen.language)),
        Cell(text=moment(each.used_us, seen.language)),
        state(each.state, seen.word(each.state)),
    )


def _changes(seen: Visit, org: OrganisationTold) -> list[Block]:
    """The forms that the reader may send about an organisation."""
    _ = seen.word
    found: list[Block] = []
    if may(seen.who, "member.create", org=org.org) and not org.closed:
        roles = OWNER_ROLES if org.side == "owner" else TENANT_ROLES
        choices = tuple((role, _(role)) for role in roles)
        found.append(
            Form(
                heading=_("Add somebody"),
                action=f"/tenants/{org.name}/members",
                submit=_("Add"),
                twin=f"ouvrage member add LOGIN --role ROLE --org {org.name}",
                open=False,
                fields=(
                    Field(name="login", label=_("Login")),
                    Field(name="role", label=_("Role"), kind="select", choices=choices),
                ),
            )
        )
    if may(seen.who, "project.create", org=org.org) and not org.closed:
        found.append(
            Form(
                heading=_("New project"),
                action=f"/tenants/{org.name}/projects",
                submit=_("Make it"),
                twin=f"ouvrage project create NAME --org {org.name}",
                open=False,
                fields=(Field(name="name", label=_("Name")),),
            )
        )
    if may(seen.who, "token.create", org=org.org) and _belongs(seen, org):
        found.append(_new_token(seen, org))
    if may(seen.who, "organisation.close", org=org.org) and org.side != "owner" and not org.closed:
        found.append(_closing(seen, org))
    return found


def _closing(seen: Visit, org: OrganisationTold) -> Form:
    """The one button that ends everything of a tenant and keeps the evidence."""
    _ = seen.word
    return Form(
        heading=_("End everything of this tenant"),
        action=f"/tenants/{org.name}/close",
        submit=_("End all its jobs, leases and tokens"),
        twin=f"ouvrage tenant close {org.name} --why TEXT",
        open=False,
        fields=(Field(name="why", label=_("Why"), help=_("Logs, outputs and charges stay.")),),
    )


def close_tenant(seen: Visit, form: dict[str, str]) -> str:
    """End everything of a tenant."""
    once, org, engine = seen.once(form), seen.given("org"), engine_of(seen.request)
    wanted = asked(CloseOrganisation, why=form.get("why", "").strip())
    once.do(
        OrganisationTold,
        wanted,
        lambda tx: organisations.close(tx, seen.platform, engine, seen.who, org, wanted.why),
    )
    return f"/tenants/{org}"


def _belongs(seen: Visit, org: OrganisationTold) -> bool:
    return any(held.org == org.org for held in seen.who.memberships)


def _new_token(seen: Visit, org: OrganisationTold) -> Form:
    _ = seen.word
    scopes = ("all", "read", "work", "money", "machines", "people")
    return Form(
        heading=_("New token of mine"),
        action=f"/tenants/{org.name}/tokens",
        submit=_("Make it"),
        twin="ouvrage token create NAME --scope SCOPE",
        open=False,
        fields=(
            Field(name="name", label=_("Name"), help=_("What it is for.")),
            Field(
                name="scope",
                label=_("Good for"),
                kind="select",
                choices=tuple((each, _(each)) for each in scopes),
            ),
            Field(name="days", label=_("Days"), kind="number", value="90"),
        ),
    )


def add_member(seen: Visit, form: dict[str, str]) -> ConsolePage:
    """Add a member and show the new one's password once."""
    once, org = seen.once(form), seen.given("org")
    wanted = asked(
        NewMember, login=form.get("login", "").strip(), role=form.get("role", ""), org=org
    )
    made = once.do(
        MemberMade, wanted, lambda tx: members.create(tx, seen.platform, seen.who, wanted)
    )
    return _secret_page(
        seen, org, f"/tenants/{org}", seen.word("Password"), made.member.login, made.password
    )


def add_project(seen: Visit, form: dict[str, str]) -> str:
    """Make a project."""
    once, org = seen.once(form), seen.given("org")
    wanted = asked(NewProject, name=form.get("name", "").strip(), org=org)
    once.do(ProjectTold, wanted, lambda tx: projects.create(tx, seen.platform, seen.who, wanted))
    return f"/tenants/{org}"


def add_token(seen: Visit, form: dict[str, str]) -> ConsolePage:
    """Make a token and show it once."""
    once, org = seen.once(form), seen.given("org")
    wanted = asked(
        NewToken,
        name=form.get("name", "").strip(),
        scopes=[form.get("scope", "")],
        days=whole(form.get("days", "")) or 0,
    )
    made = once.do(
        TokenShown, wanted, lambda tx: tokens.create(tx, seen.platform, seen.who, wanted)
    )
    return _secret_page(
        seen, org, f"/tenants/{org}", seen.word("Token"), made.login, made.secret
    )  # fmt: skip


def _secret_page(
    seen: Visit, org: str, back: str, what: str, login: str, secret: str | None
) -> ConsolePage:
    _ = seen.word
    said = secret or _("shown before, and not again")
    return ConsolePage(
        title=what,
        headline=f"{what}: {_('copy it now, it is not shown again')}" if secret else _("It was made"),
        lead=(),
        place="tenants",
        trail=((_("Tenants and budgets"), "/tenants"), (org, back)),
        blocks=(
            Facts(heading="", pairs=((_("Login"), Cell(text=login or "–")), (what, Cell(text=said)))),
        ),
    )  # fmt: skip


page(router, "/tenants", listed)
page(router, "/tenants/{org}", one)
deed(router, "/tenants", make_tenant)
deed(router, "/tenants/{org}/members", add_member)
deed(router, "/tenants/{org}/projects", add_project)
deed(router, "/tenants/{org}/close", close_tenant)
deed(router, "/tenants/{org}/tokens", add_token)
