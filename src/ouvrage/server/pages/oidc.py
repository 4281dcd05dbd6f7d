"""``/oidc/start`` and ``/oidc/callback``: to the identity provider and back, for browsers.

Decides which cookie survives the way: one that lasts ten minutes and may come along from the provider's site. The session's own may
not, so that the way ends with a page, from which the browser goes on by itself. A refusal is a page like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from markupsafe import escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ouvrage.base.errors import OuvrageError
from ouvrage.server.access import address_of, stranger
from ouvrage.server.errors import Refused
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.pages.frame import Visit, VisitDep, local, put_cookie, refused
from ouvrage.server.services.signing_in import new_session

router = APIRouter(include_in_schema=False)
WAY = "ouvrage_oidc"
_TEN_MINUTES = 600
_LONGEST_NEXT, _LONGEST_NAME = 500, 63


@router.get("/oidc/start")
def start(seen: VisitDep) -> Response:
    """Send the browser to the provider."""
    return _told(seen, _begin)


@router.get("/oidc/callback")
def callback(seen: VisitDep) -> Response:
    """Take the browser back, with a session."""
    return _told(seen, _finish)


def _told(seen: Visit, step: Callable[[Visit, Any], Response]) -> Response:
    try:
        stranger(seen.request, seen.platform)
        return step(seen, _provider(seen))
    except OuvrageError as error:
        return refused(seen, error)


def _provider(seen: Visit) -> Any:
    """The platform's identity provider (``oidc.Provider``, loaded only where there is one); 404 where it has none."""
    provider = seen.request.app.state.provider
    if provider is None:
        raise Refused(
            "login/no-oidc",
            "this platform has no identity provider",
            status=404,
            hint="sign in with a password at /sign-in",
        )
    return provider


def _begin(seen: Visit, provider: Any) -> Response:
    org, following = seen.given("org")[:_LONGEST_NAME], seen.given("next")[:_LONGEST_NEXT]
    begun = provider.begin(org or None, local(following))
    answer = RedirectResponse(begun.address, 303)
    answer.set_cookie(
        WAY, begun.kept, max_age=_TEN_MINUTES, path="/oidc", httponly=True, samesite="lax",
        secure=seen.platform.settings.secure,
    )  # fmt: skip
    return answer


def _finish(seen: Visit, provider: Any) -> Response:
    request = seen.request
    kept = request.cookies.get(WAY, "")
    actor, following = provider.finish(kept, request.query_params, address_of(request))
    to = escape(local(following))
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">…</a>'
    answer = HTMLResponse(page)
    answer.delete_cookie(WAY, path="/oidc")
    kept_s = seen.platform.settings.session_us // 1_000_000
    put_cookie(answer, seen, SESSION_COOKIE, new_session(seen.platform, actor), kept_s)
    return answer
