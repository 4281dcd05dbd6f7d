"""``/v1/keys``: one's own public keys, with which OpenSSH's clients enter one's jobs.

Nobody sees or changes another's; a key that is removed enters nothing from the next connection on.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import keys as services
from ouvrage.store.transaction import Transaction
from ouvrage.wire.api import Done, KeyTold, Listed, NewKey

router = APIRouter(prefix="/v1/keys", tags=["people"])


@router.get("", **acts("me.key"))
def listed(platform: PlatformDep, actor: UserDep, page: PageDep) -> Listed[KeyTold]:
    """One's own keys, newest first."""
    rows = services.listed(platform, actor, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.key)
    return Listed(items=list(items), next=after)


@router.post("", **acts("me.key", status=201))
def add(once: OnceDep, asked: NewKey) -> KeyTold:
    """Make a public key known."""
    return once.do(KeyTold, asked, lambda tx: services.add(tx, once.platform, once.actor, asked))


@router.delete("/{ssh_key}", **acts("me.key"))
def remove(
    once: OnceDep,
    ssh_key: Annotated[str, Path(min_length=1, max_length=200, description="Its id or name.")],
) -> Done:
    """Forget one of one's own."""

    def work(tx: Transaction) -> Done:
        services.remove(tx, once.platform, once.actor, ssh_key)
        return Done()

    return once.do(Done, None, work)
