"""``/v1/me`` and ``/v1/login``: who asks, and a token for a password.

A sign-in takes no key against repetition: repeated, it is another sign-in, with a token of its own.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from ouvrage.server.access import (
    OnceDep,
    PlatformDep,
    UserDep,
    acts,
    address_of,
    limits_of,
    stranger,
)
from ouvrage.server.authorise import PUBLIC
from ouvrage.server.services import signing_in, tokens
from ouvrage.wire.api import Done, Login, Me, NewPassword, TokenShown

router = APIRouter(tags=["people"])


@router.post("/v1/login", dependencies=[Depends(stranger)], **acts(PUBLIC, status=201))
def login(request: Request, platform: PlatformDep, asked: Login) -> TokenShown:
    """A token for a login and its password."""
    actor = signing_in.signed_in(platform, asked.login, asked.password, address_of(request))
    return tokens.of_login(platform, actor, asked)


@router.post("/v1/logout", **acts("me.logout"))
def logout(platform: PlatformDep, actor: UserDep) -> Done:
    """Revoke the token with which this is asked."""
    tokens.revoke_own(platform, actor)
    return Done()


@router.get("/v1/me", **acts("me.read"))
def me(platform: PlatformDep, actor: UserDep) -> Me:
    """Who asks, and what they may do."""
    return tokens.about(platform, actor)


def _few_guesses(request: Request, actor: UserDep) -> None:
    """Whoever stole a token must not find out the password with it."""
    limits_of(request).take(f"old password {actor.id}", a_second=1 / 60, at_once=10)


@router.post("/v1/me/password", dependencies=[Depends(_few_guesses)], **acts("me.change"))
def password(once: OnceDep, asked: NewPassword) -> Done:
    """Put a new password in place of one's own; sessions end, tokens stay."""

    def work(tx: tokens.Transaction) -> Done:
        signing_in.change_password(tx, once.platform, once.actor, asked.old, asked.new)
        return Done()

    return once.do(Done, asked, work)
