"""Signing in and out, the language, and the files that pages load.

Decides that a session's id is new at every sign-in and that a browser that has not signed in carries a cookie of its own, so that the
sign-in form too is bound to it.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ouvrage.base.errors import OuvrageError
from ouvrage.console.blocks import ConsolePage, Field, Form, Notice
from ouvrage.console.console_page import HEADERS, STATIC, static_file
from ouvrage.console.translated import LANGUAGES
from ouvrage.server.access import address_of, stranger
from ouvrage.server.errors import Refused, status_of
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.pages.frame import (
    LANGUAGE,
    VISIT,
    FormDep,
    Visit,
    VisitDep,
    check_form,
    local,
    put_cookie,
    shown,
)
from ouvrage.server.services.signing_in import new_session, sign_out, signed_in

router = APIRouter()
YEAR_S = 365 * 24 * 3600
DAY_S = 24 * 3600


@router.get("/sign-in", include_in_schema=False)
def sign_in_page(seen: VisitDep, next: str = "/") -> Response:
    """The sign-in form."""
    if seen.actor is not None:
        return RedirectResponse(local(next), 303, HEADERS)
    return _form(seen, next, "", "")


@router.post("/sign-in", include_in_schema=False)
def sign_in(seen: VisitDep, form: FormDep) -> Response:
    """A session for a login and its password."""
    login, following = form.get("login", "").strip(), local(form.get("next", "/"))
    try:
        check_form(seen, form)
        stranger(seen.request, seen.platform)
        actor = signed_in(seen.platform, login, form.get("password", ""), address_of(seen.request))
    except OuvrageError as error:
        return _form(seen, following, login, error.message, error)
    answer = RedirectResponse(following, 303, HEADERS)
    kept_s = seen.platform.settings.session_us // 1_000_000
    put_cookie(answer, seen, SESSION_COOKIE, new_session(seen.platform, actor), kept_s)
    put_cookie(answer, seen, VISIT, "", None)
    return answer


@router.post("/logout", include_in_schema=False)
def logout(seen: VisitDep, form: FormDep) -> Response:
    """End the session."""
    answer = RedirectResponse("/sign-in", 303, HEADERS)
    if seen.actor is not None:
        try:
            check_form(seen, form)
        except Refused:
            return answer
        sign_out(seen.platform, seen.actor)
        put_cookie(answer, seen, SESSION_COOKIE, "", None)
    return answer


@router.post("/language", include_in_schema=False)
def language(seen: VisitDep, form: FormDep) -> Response:
    """Keep the language that somebody chose."""
    answer = RedirectResponse(local(form.get("back", "/")), 303, HEADERS)
    chosen = form.get("language", "")
    if chosen in LANGUAGES:
        put_cookie(answer, seen, LANGUAGE, chosen, YEAR_S)
    return answer


@router.get("/static/{name}", include_in_schema=False)
def static(name: str) -> Response:
    """A file that pages load."""
    if name not in STATIC:
        raise Refused("address/unknown", "there is no such file", status=404, hint="see /")
    kept = HEADERS | {"Cache-Control": "public, max-age=300"}
    return Response(static_file(name), headers=kept, media_type=STATIC[name])


def _provider(seen: Visit, following: str) -> tuple[Notice, ...]:
    """The way by the platform's identity provider, where it has one."""
    oidc = seen.platform.settings.oidc
    if oidc is None:
        return ()
    name = urlsplit(oidc.issuer).hostname or oidc.issuer
    return (
        Notice(
            text=seen.word("Or without a password of this platform's:"),
            href=f"/oidc/start?next={quote(local(following), safe='')}",
            action=f"{seen.word('Sign in with')} {name}",
            tone="plain",
        ),
    )


def _form(
    seen: Visit, following: str, login: str, fault: str, error: OuvrageError | None = None
) -> Response:
    cookie = seen.cookie or seen.platform.chance(24).hex()
    bound = Visit(
        platform=seen.platform, actor=None, language=seen.language, cookie=cookie, request=seen.request
    )  # fmt: skip
    _ = seen.word
    page = ConsolePage(
        title=_("Sign in"),
        headline=_("Sign in to this platform"),
        lead=(_("Use the login that an administrator gave you; a tenant's members sign in as name@tenant."),),
        place="",
        blocks=(
            Form(
                heading="",
                action="/sign-in",
                submit=_("Sign in"),
                twin="ouvrage login",
                fields=(
                    Field(name="next", label="", kind="hidden", value=local(following)),
                    Field(name="login", label=_("Login"), value=login, autocomplete="username"),
                    Field(
                        name="password",
                        label=_("Password"),
                        kind="password",
                        autocomplete="current-password",
                        error=fault,
                    ),
                ),
            ),
            *_provider(seen, following),
        ),
    )  # fmt: skip
    answer = shown(bound, page, status_of(error) if error else 200)
    if isinstance(error, Refused) and error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    if cookie != seen.request.cookies.get(VISIT):
        put_cookie(answer, seen, VISIT, cookie, DAY_S)
    return answer
