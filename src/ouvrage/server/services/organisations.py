"""Organisations: who there is, made and closed by the owner.

Decides that a tenant begins whole (a project, and an administrator where one is named), that an organisation's currency never
changes, and that closing one ends every credential of its people at once: what they did stays in the books.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.model.tenancy import Organisation, Project
from ouvrage.server.authorise import authorise, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.engine import Engine
from ouvrage.server.errors import conflict
from ouvrage.server.recording import record, stated
from ouvrage.server.services.ending import end_work_of
from ouvrage.server.services.members import add_member, end_credentials
from ouvrage.server.services.naming import organisation_meant, refuse_id_as_name
from ouvrage.store.platform.people import users_of
from ouvrage.store.platform.tenancy import (
    list_organisations,
    organisation_of,
    put_organisation,
    put_project,
)
from ouvrage.store.transaction import Transaction
from ouvrage.wire.api import (
    ChangeOrganisation,
    NewOrganisation,
    OrganisationMade,
    OrganisationTold,
)

FIRST_PROJECT = "main"


def told(org: Organisation) -> OrganisationTold:
    """An organisation as it is shown."""
    return OrganisationTold(
        org=org.org,
        name=org.name,
        side=org.side,
        currency=org.currency,
        billing=org.billing,
        credit_limit=org.credit_limit,
        closed=org.closed,
    )


def listed(platform: Platform, actor: Actor, after: str, limit: int) -> list[OrganisationTold]:
    """The organisations that somebody may see, by id, after one id."""
    within = visible_orgs(actor)
    with platform.reading() as connection:
        found = list_organisations(connection, within=within, after=after, limit=limit)
    return [told(org) for org in found]


def one(platform: Platform, actor: Actor, name: str) -> OrganisationTold:
    """One organisation by id or name."""
    with platform.reading() as connection:
        return told(organisation_meant(connection, actor, name))


def create(
    tx: Transaction, platform: Platform, actor: Actor, asked: NewOrganisation
) -> OrganisationMade:
    """A new tenant with a project, and an administrator where one is named."""
    authorise(actor, "organisation.create", org=None)
    refuse_id_as_name(asked.name, "name")
    if organisation_of(tx.connection, asked.name) is not None:
        raise conflict(
            "organisation/exists",
            f"there is an organisation {asked.name} already",
            hint="choose another name",
            field="name",
        )
    org = Organisation(
        org=platform.ids(), name=asked.name, side="tenant", currency=asked.currency,
        billing=asked.billing, credit_limit=asked.credit_limit, closed=False,
    )  # fmt: skip
    project = Project(
        project=platform.ids(), org=org.org, name=FIRST_PROJECT, weight="1", trusted=False,
        closed=False,
    )  # fmt: skip
    put_organisation(tx.connection, org)
    put_project(tx.connection, project)
    facts = (
        stated(platform, org, subject=org.org, at_us=tx.now_us),
        stated(platform, project, subject=project.project, at_us=tx.now_us),
    )
    record(
        tx, platform, actor, "organisation.create",
        org=org.org, target=org.org, detail=org.name, facts=facts,
    )  # fmt: skip
    login = password = None
    if asked.admin is not None:
        user, password = add_member(
            tx, platform, actor, org=org, word=asked.admin, role="tenant-admin", project=None,
            with_password=True,
        )  # fmt: skip
        login = user.login
    return OrganisationMade(
        organisation=told(org), project=project.project, login=login, password=password
    )


def change(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: ChangeOrganisation
) -> OrganisationTold:
    """How an organisation pays, from now on."""
    org = organisation_meant(tx.connection, actor, name)
    authorise(actor, "organisation.change", org=org.org)
    new = replace(
        org,
        billing=asked.billing or org.billing,
        credit_limit=asked.credit_limit or org.credit_limit,
    )
    detail = f"{new.billing}, credit limit {new.credit_limit} {new.currency}"
    _restated(tx, platform, actor, "organisation.change", new, detail)
    return told(new)


def close(
    tx: Transaction, platform: Platform, engine: Engine, actor: Actor, name: str, why: str
) -> OrganisationTold:
    """End an organisation: what it has under way ends, no work is taken any more, every credential of its people is revoked."""
    org = organisation_meant(tx.connection, actor, name)
    authorise(actor, "organisation.close", org=org.org)
    if org.side == "owner":
        raise conflict(
            "organisation/owner",
            "the owner's organisation cannot be closed",
            hint="ouvrage down stops the platform",
        )
    new = replace(org, closed=True)
    said = f"{org.name} was closed by {actor.login}" + (f": {why}" if why else "")
    jobs, leases = end_work_of(tx, platform, engine, org, said)
    ends = f"ends {jobs} jobs and {leases} leases" if jobs or leases else ""
    detail = "; ".join(each for each in (why, ends) if each)
    _restated(tx, platform, actor, "organisation.close", new, detail)
    for kind in ("person", "machine"):
        for user in users_of(tx.connection, org.org, kind):
            end_credentials(tx, user)
    return told(new)


def reopen(tx: Transaction, platform: Platform, actor: Actor, name: str) -> OrganisationTold:
    """Let a closed organisation in again; its tokens stay revoked."""
    org = organisation_meant(tx.connection, actor, name)
    authorise(actor, "organisation.close", org=org.org)
    new = replace(org, closed=False)
    _restated(tx, platform, actor, "organisation.reopen", new, "")
    return told(new)


def _restated(
    tx: Transaction, platform: Platform, actor: Actor, action: str, org: Organisation, detail: str
) -> None:
    put_organisation(tx.connection, org)
    fact = stated(platform, org, subject=org.org, at_us=tx.now_us)
    record(tx, platform, actor, action, org=org.org, target=org.org, detail=detail, facts=(fact,))
