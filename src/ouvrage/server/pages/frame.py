"""Who reads a page, in which language, and how a page becomes an answer.

Decides that pages take the session's cookie alone, that every form carries a word made from that cookie (a page of another site can
make a browser send the cookie, but cannot read it), that each page has a ``.json`` twin under the same rights, and that a refusal is a
page with its status. What a page shows is decided by its own module.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ouvrage.base.errors import OuvrageError
from ouvrage.console.blocks import Cell, ConsolePage, Facts, Reader
from ouvrage.console.console_page import HEADERS, console_html, console_json
from ouvrage.console.translated import LANGUAGES, preferred, translator
from ouvrage.server.access import PlatformDep, address_of
from ouvrage.server.authorise import may
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import Refused, status_of, unreadable
from ouvrage.server.identify import SESSION_COOKIE, actor_by_session
from ouvrage.server.once import Once
from ouvrage.wire.runner import Message

M = TypeVar("M", bound=Message)

VISIT = "ouvrage_visit"
"""The cookie of somebody who has not signed in: the sign-in form is bound to it."""
LANGUAGE = "ouvrage_language"
FORM_FIELDS = 200

PLACES = (
    ("today", "Today", "/", "job.read"),
    ("nodes", "Nodes", "/nodes", "node.read"),
    ("jobs", "Jobs", "/jobs", "job.read"),
    ("offers", "Offers and leases", "/offers", "offer.read"),
    ("tenants", "Tenants and budgets", "/tenants", "member.read"),
    ("money", "Money", "/money", "usage.read"),
    ("books", "Books", "/books", "platform.read"),
    ("quotes", "Quotes", "/quotes", "job.read"),
    ("audit", "Audit", "/audit", "audit.read"),
)
"""The navigation: key, words, address, and the action without which it is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request for a page. ``actor`` None: nobody has signed in. ``cookie`` is what the forms are bound to."""

    platform: Platform
    actor: Actor | None
    language: str
    cookie: str
    request: Request

    @property
    def who(self) -> Actor:
        """Who has signed in; a page that asks has been shown to somebody who has."""
        assert self.actor is not None
        return self.actor

    @property
    def path(self) -> str:
        """The page's address without its twin's ending, with its query."""
        path = self.request.url.path.removesuffix(".json")
        query = self.request.url.query
        return f"{'/' if path == '/today' else path}{'?' + query if query else ''}"

    def once(self, form: dict[str, str]) -> Once:
        """What a form asks as a request that may be sent twice and happens once."""
        key = form.pop("key", "") or self.platform.ids()
        where = f"POST {self.request.url.path}"
        return Once(platform=self.platform, actor=self.who, key=key[:128], where=where)

    def word(self, english: str) -> str:
        """Words of the console in the reader's language."""
        return translator(self.language)(english)

    def given(self, name: str) -> str:
        """A part of the address, or a parameter of it; empty where there is none."""
        return str(self.request.path_params.get(name, self.request.query_params.get(name, "")))


Maker = Callable[[Visit], ConsolePage]
Doer = Callable[[Visit, dict[str, str]], "str | ConsolePage"]
"""Does what a form asks and says where to go then; or shows at once what will not be shown again."""


def csrf_of(cookie: str) -> str:
    """The word that the forms of a browser with this cookie carry."""
    return hmac.new(cookie.encode(), b"ouvrage form", hashlib.sha256).hexdigest()


def visit(request: Request, platform: PlatformDep) -> Visit:
    """Who asks for a page."""
    cookie = request.cookies.get(SESSION_COOKIE, "")
    actor = actor_by_session(platform, cookie, address_of(request)) if cookie else None
    chosen = request.cookies.get(LANGUAGE, "")
    language = chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language"))
    bound = cookie if actor else request.cookies.get(VISIT, "")
    return Visit(platform=platform, actor=actor, language=language, cookie=bound, request=request)


VisitDep = Annotated[Visit, Depends(visit)]


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form; files are none."""
    async with request.form(max_fields=FORM_FIELDS, max_files=0) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


FormDep = Annotated[dict[str, str], Depends(form_of)]


def reader_of(seen: Visit) -> Reader:
    """Who reads, as the page's frame shows it."""
    actor = seen.actor
    places = [
        (key, seen.word(words), href)
        for key, words, href, action in PLACES
        if actor is not None and any(may(actor, action, org=h.org, project=h.project) for h in actor.memberships)
    ]  # fmt: skip
    login, _, org = (actor.login if actor else "").partition("@")
    return Reader(
        login=login or None,
        organisation=org or seen.word("owner"),
        language=seen.language,
        csrf=csrf_of(seen.cookie),
        key=seen.platform.ids(),
        places=tuple(places),
        path=seen.path,
    )


def shown(seen: Visit, page: ConsolePage, status: int = 200) -> Response:
    """A page as an answer: its twin where the address ends in ``.json``."""
    if seen.request.url.path.endswith(".json"):
        return Response(console_json(page), status, HEADERS, "application/json")
    return HTMLResponse(console_html(page, reader_of(seen)), status, HEADERS)


def refused(seen: Visit, error: OuvrageError) -> Response:
    """A refusal as a page."""
    pairs = [(seen.word("Code"), Cell(text=error.code))]
    if error.hint:
        pairs.insert(0, (seen.word("What to do"), Cell(text=error.hint)))
    page = ConsolePage(
        title=seen.word("Refused"),
        headline=error.message,
        lead=(),
        place="",
        blocks=(Facts(heading="", pairs=tuple(pairs)),),
    )
    answer = shown(seen, page, status_of(error))
    if isinstance(error, Refused) and error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def sign_in_first(seen: Visit) -> Response:
    """Where somebody unknown is sent, and back from there."""
    return RedirectResponse(f"/sign-in?next={quote(seen.path, safe='')}", 303, HEADERS)


def local(path: str) -> str:
    """A path of this server to go on to; the first page for anything else."""
    good = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if good else "/"


def page(router: APIRouter, path: str, make: Maker, *, public: bool = False) -> None:
    """Serve a page at a path and its twin beside it."""

    def serve(seen: VisitDep) -> Response:
        if seen.actor is None and not public:
            return sign_in_first(seen)
        try:
            return shown(seen, make(seen))
        except OuvrageError as error:
            return refused(seen, error)

    stem = "/today" if path == "/" else path
    for address in (f"{stem}.json", path):
        router.add_api_route(address, serve, methods=["GET"], include_in_schema=False)


def deed(router: APIRouter, path: str, do: Doer) -> None:
    """Serve what a form at a path does: 303 to where it leads, or the refusal as a page."""

    def serve(seen: VisitDep, form: FormDep) -> Response:
        if seen.actor is None:
            return sign_in_first(seen)
        try:
            check_form(seen, form)
            done = do(seen, form)
            if isinstance(done, ConsolePage):
                return shown(seen, done)
            return RedirectResponse(local(done), 303, HEADERS)
        except OuvrageError as error:
            return refused(seen, error)

    router.add_api_route(path, serve, methods=["POST"], include_in_schema=False)


def check_form(seen: Visit, form: dict[str, str]) -> None:
    """Raise ``Refused`` 403 where a form was not made by a page of ours for this browser."""
    given = form.pop("csrf", "")
    if not seen.cookie or not hmac.compare_digest(given, csrf_of(seen.cookie)):
        raise Refused(
            "form/stale",
            seen.word("this form was made for another session"),
            status=403,
            hint=seen.word("go back, load the page again and send it once more"),
        )


def asked(kind: type[M], **values: Any) -> M:
    """What a form asks as a message of the interface; ``Refused`` 422 names the field that is wrong."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unreadable(
            "form/invalid",
            f"{field}: {first['msg']}",
            hint="change it and send it again",
            field=field,
        ) from error


def put_cookie(answer: Response, seen: Visit, name: str, value: str, seconds: int | None) -> None:
    """Set a cookie that no script reads and no other site sends; empty removes it."""
    options: dict[str, Any] = {
        "httponly": True,
        "samesite": "strict",
        "secure": seen.platform.settings.secure,
        "path": "/",
    }
    if value:
        answer.set_cookie(name, value, max_age=seconds, **options)
    else:
        answer.delete_cookie(name, **options)
