"""``/oidc/start`` and ``/oidc/callback``: to the identity provider and back, for browsers.

Decides which cookie survives the way: one that lasts ten minutes and may come along from the provider's site. The session's own may
not, so that the way ends with a page, from which the browser goes on by itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from markupsafe import escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ouvrage.server.access import PlatformDep, address_of, stranger
from ouvrage.server.errors import Refused
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.services.signing_in import new_session

router = APIRouter(include_in_schema=False)
WAY = "ouvrage_oidc"
_TEN_MINUTES = 600


def provider_of(request: Request) -> Any:
    """The platform's identity provider (``oidc.Provider``, loaded only where there is one); 404 where it has none."""
    provider = request.app.state.provider
    if provider is None:
        raise Refused(
            "login/no-oidc",
            "this platform has no identity provider",
            status=404,
            hint="sign in with a password at /sign-in",
        )
    return provider


ProviderDep = Annotated[Any, Depends(provider_of)]


@router.get("/oidc/start", dependencies=[Depends(stranger)])
def start(
    platform: PlatformDep,
    provider: ProviderDep,
    org: Annotated[str | None, Query(max_length=63)] = None,
    next: Annotated[str, Query(max_length=500)] = "/",
) -> Response:
    """Send the browser to the provider."""
    begun = provider.begin(org, next)
    answer = RedirectResponse(begun.address, 303)
    answer.set_cookie(
        WAY, begun.kept, max_age=_TEN_MINUTES, path="/oidc", httponly=True, samesite="lax",
        secure=platform.settings.secure,
    )  # fmt: skip
    return answer


@router.get("/oidc/callback", dependencies=[Depends(stranger)])
def callback(request: Request, platform: PlatformDep, provider: ProviderDep) -> Response:
    """Take the browser back, with a session."""
    kept = request.cookies.get(WAY, "")
    actor, following = provider.finish(kept, request.query_params, address_of(request))
    to = escape(local(following))
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">…</a>'
    answer = HTMLResponse(page)
    answer.delete_cookie(WAY, path="/oidc")
    answer.set_cookie(
        SESSION_COOKIE, new_session(platform, actor),
        max_age=platform.settings.session_us // 1_000_000, path="/", httponly=True,
        samesite="strict", secure=platform.settings.secure,
    )  # fmt: skip
    return answer


def local(address: str) -> str:
    """An address on this server: whatever else was asked for leads to the first page."""
    bad = not address.startswith("/") or address.startswith("//") or "\\" in address
    return "/" if bad or not address.isprintable() else address
