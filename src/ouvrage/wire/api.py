"""What people and programs say to the server under ``/v1``, and what it answers: tenancy, tokens, the trail.

The runner's messages are in ``wire/runner``. ``NewX`` asks for something to be made, ``ChangeX`` for it to be changed (what is
left out stays); answers that show a secret do so once, and their repetition says null.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ouvrage.wire.runner import Message

SLUG = r"^[a-z0-9][a-z0-9-]{0,62}$"
PLAIN = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"

Slug = Annotated[str, Field(pattern=SLUG, description="Lower-case letters, digits and hyphens.")]
Words = Annotated[str, Field(max_length=200, pattern=PLAIN)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Amount = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,9})?$")]
Weight = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?$")]
Password = Annotated[str, Field(min_length=1, max_length=256)]
Days = Annotated[int, Field(ge=1, le=366)]


class Answer(BaseModel):
    """What the server answers. ``SHOWN_ONCE`` names the fields that hold a secret."""

    model_config = ConfigDict(frozen=True)
    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ()


T = TypeVar("T")


class Listed(Answer, Generic[T]):
    """A part of a list, and the cursor to the next one (null: this was the last)."""

    items: list[T]
    next: str | None


class ErrorTold(Answer):
    """A refusal: a stable ``code``, what was found, what to do, and the field it is about."""

    code: str
    message: str
    hint: str | None
    field: str | None


class ErrorBody(Answer):
    """The body of every error."""

    error: ErrorTold


class Health(Answer):
    """The server answers; ``version`` is its own."""

    status: str
    version: str


class SamplesKept(Answer):
    """Answer to ``POST /v1/samples``: ``accepted``, or ``exists`` where it was kept before; and the last number kept."""

    result: str
    sequence: int


class SamplesShown(Answer):
    """A node's last minutes: moments in µs, and by column one value for each; null where nothing was read."""

    node: str
    times: list[int]
    columns: dict[str, list[int | None]]
    gpus: dict[str, dict[str, list[int | None]]]


class Done(Answer):
    """It is so now."""

    done: bool = True


class RoleHeld(Answer):
    """A role in an organisation, in one project or (null) in all."""

    org: str
    org_name: str
    project: str | None
    project_name: str | None
    role: str


class Me(Answer):
    """Who asks, what they are, and what their token is good for (null: all that the roles allow)."""

    user: str
    login: str
    roles: list[RoleHeld]
    scopes: list[str] | None
    token: str | None
    expires_us: int | None


class Login(Message):
    """``POST /v1/login``: a password for a token."""

    login: Name
    password: Password
    name: Words = "ouvrage login"
    days: Days = 30


class NewPassword(Message):
    """``POST /v1/me/password``: a new password in place of the old one."""

    old: Password
    new: Password


class TokenShown(Answer):
    """A token, shown this once."""

    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ("secret",)

    token: str
    secret: str | None
    login: str
    scopes: list[str]
    project: str | None
    expires_us: int


class NewOrganisation(Message):
    """``POST /v1/organisations``: a tenant, and (where named) its first administrator."""

    name: Slug
    currency: Currency = "EUR"
    billing: Annotated[str, Field(pattern="^(prepaid|credit)$")] = "prepaid"
    credit_limit: Amount = "0"
    admin: Slug | None = None


class ChangeOrganisation(Message):
    """``PATCH /v1/organisations/{org}``: how it pays."""

    billing: Annotated[str, Field(pattern="^(prepaid|credit)$")] | None = None
    credit_limit: Amount | None = None


class CloseOrganisation(Message):
    """``POST /v1/organisations/{org}/close``: why, for the trail."""

    why: Words = ""


class OrganisationTold(Answer):
    """An organisation as it stands."""

    org: str
    name: str
    side: str
    currency: str
    billing: str
    credit_limit: str
    closed: bool


class OrganisationMade(Answer):
    """A new organisation, its first project, and its administrator's password, shown this once."""

    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ("password",)

    organisation: OrganisationTold
    project: str
    login: str | None
    password: str | None


class NewProject(Message):
    """``POST /v1/projects``. ``org`` is an id or a name; null: one's own."""

    name: Slug
    org: Name | None = None
    weight: Weight = "1"
    trusted: bool = False


class ChangeProject(Message):
    """``PATCH /v1/projects/{project}``."""

    weight: Weight | None = None
    trusted: bool | None = None
    closed: bool | None = None


class ProjectTold(Answer):
    """A project as it stands."""

    project: str
    org: str
    org_name: str
    name: str
    weight: str
    trusted: bool
    closed: bool


class NewMember(Message):
    """``POST /v1/members``: a role for somebody, who is made known where they are not yet.

    ``login`` is a word; a tenant's members sign in as ``word@tenant``. ``email`` is the address by which the identity provider
    knows them; ``password`` false: they sign in with the provider alone.
    """

    login: Slug
    role: Slug
    org: Name | None = None
    project: Name | None = None
    email: (
        Annotated[str, Field(max_length=254, pattern=r"^[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+$")] | None
    ) = None
    password: bool = True


class MemberTold(Answer):
    """Somebody in an organisation, and the roles they hold there."""

    user: str
    login: str
    org: str
    kind: str
    roles: list[RoleHeld]


class MemberMade(Answer):
    """A member, and the password of a new one, shown this once."""

    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ("password",)

    member: MemberTold
    password: str | None


class NewToken(Message):
    """``POST /v1/tokens``: for oneself; or, with ``machine``, for a program with a role of its own."""

    name: Name
    scopes: Annotated[list[Slug], Field(min_length=1, max_length=8)]
    days: Days = 90
    project: Name | None = None
    machine: Slug | None = None
    role: Slug | None = None
    org: Name | None = None


class TokenTold(Answer):
    """A token without its secret; ``state`` is ``valid``, ``expired`` or ``revoked``."""

    token: str
    name: str
    login: str
    kind: str
    scopes: list[str]
    project: str | None
    created_us: int
    expires_us: int
    used_us: int | None
    state: str


class NewKey(Message):
    """``POST /v1/keys``: a public key as it stands in its file; ``name`` null: its comment."""

    key: Annotated[str, Field(min_length=1, max_length=16_384)]
    name: Name | None = None


class KeyTold(Answer):
    """A public key of one's own; ``line`` as OpenSSH reads it, without a comment."""

    key: str
    name: str
    line: str
    fingerprint: str
    created_us: int


class AuditTold(Answer):
    """A line of the trail."""

    seq: int
    at_us: int
    actor: str
    login: str
    action: str
    target: str | None
    org: str | None
    outcome: str
    detail: str
    address: str | None
