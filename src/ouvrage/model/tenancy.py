"""Who there is on a platform: organisations, their projects, the people in them and what they may do.

An organisation is the owner of the machines (there is one) or a tenant. Passwords, tokens and sessions are
not here: they are credentials, kept hashed beside the ledger and never in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

OWNER_ROLES = ("owner", "operator", "finance")
"""Roles in the owner's organisation: all of it; machines and work without money; money without machines."""
TENANT_ROLES = ("tenant-admin", "tenant-user")
"""Roles in a tenant's organisation: its members, budgets and money; its own projects' work."""
ROLES = (*OWNER_ROLES, *TENANT_ROLES)
BILLING = ("prepaid", "credit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    """An organisation as last stated. ``org`` is its id, ``name`` the word it goes by (a slug).

    ``side`` is ``owner`` or ``tenant``. ``billing`` says whether work stops at a balance of zero
    (``prepaid``) or at ``credit_limit`` below it (decimal text in ``currency``). ``closed`` ends it.
    """

    KIND: ClassVar[str] = "platform.organisation"
    VERSION: ClassVar[int] = 1

    org: str
    name: str
    side: str
    currency: str
    billing: str
    credit_limit: str
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project of an organisation; ``trusted`` allows ``isolation: none``, for the owner's own alone.

    ``weight`` (decimal text) is its share where several wait.
    """

    KIND: ClassVar[str] = "platform.project"
    VERSION: ClassVar[int] = 1

    project: str
    org: str
    name: str
    weight: str
    trusted: bool
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """``user`` has ``role`` in ``org``, in one ``project`` or (None) in all; ``role`` None ends it."""

    KIND: ClassVar[str] = "platform.membership"
    VERSION: ClassVar[int] = 1

    user: str
    login: str
    org: str
    project: str | None
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Somebody did something, or was refused. Append-only, like every fact.

    ``actor`` is a user's, node's or server's id and ``login`` its name; ``action`` a word such as
    ``offer.create``; ``target`` the id it was done to; ``org`` the organisation whose trail this belongs to
    (None: the owner's alone); ``outcome`` ``done`` or the code of the refusal. ``address`` is the peer's.
    """

    KIND: ClassVar[str] = "platform.audit"
    VERSION: ClassVar[int] = 1

    actor: str
    login: str
    action: str
    target: str | None
    org: str | None
    outcome: str
    detail: str
    address: str | None
