"""The application: routes, what stands around them, and how anything that goes wrong is told.

Decides that every error has one shape, whoever raised it, and that nothing unexpected reaches a client but the number under
which it stands in the server's log. Routes are in ``routes/``; each says which action it is.
"""

from __future__ import annotations

import errno
import importlib
from collections.abc import Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ouvrage import __version__
from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Platform, Settings
from ouvrage.server.engine import Embedded, Engine
from ouvrage.server.errors import Refused, bad_request, status_of, unreadable
from ouvrage.server.gate import Gate
from ouvrage.server.given import Given
from ouvrage.server.intake import Intake, free_of
from ouvrage.server.limits import Limits, Open
from ouvrage.server.loops import at_work
from ouvrage.server.middleware import Guard, refusal
from ouvrage.server.services.audit import note_refusal
from ouvrage.server.services.dialled import elsewhere
from ouvrage.server.services.uses import Uses
from ouvrage.server.through import Services
from ouvrage.server.tunnels import Tunnels
from ouvrage.store.telemetry import SampleLog

_log = structlog.get_logger("ouvrage.server")

ROUTES = (
    "samples",
    "runner",
    "health",
    "me",
    "today",
    "organisations",
    "projects",
    "members",
    "tokens",
    "keys",
    "audit",
    "nodes",
    "offers",
    "leases",
    "jobs",
    "job_output",
    "tunnel",
    "services",
    "inside",
    "facts",
    "money",
    "invoices",
    "hooks",
)
"""The modules below ``routes/`` whose ``router`` is served; addresses are looked for in this order, what nodes ask all the time first."""

PAGES = (
    "entrance",
    "oidc",
    "today",
    "nodes",
    "jobs",
    "offers",
    "tenants",
    "money",
    "books",
    "quotes",
    "audit",
    "public",
)
"""The modules below ``pages/``: the console."""

_WORDS = {
    404: ("address/unknown", "there is nothing at this address", "the interface: /v1/openapi.json"),
    405: (
        "method/unknown",
        "this address does not take that method",
        "the interface: /v1/openapi.json",
    ),
    413: ("request/too-large", "the body is larger than this address takes", "send less at once"),
    400: ("request/unreadable", "the request could not be read", "send JSON in UTF-8"),
}


def make_app(platform: Platform) -> FastAPI:
    """The application that serves a platform."""
    # Alone on its state, a server takes over at once what one before it had claimed and was killed with.
    token = platform.ids() if platform.limits.several else "alone"
    engine = engine_of(platform, token)
    intake, uses = intake_for(platform), Uses(platform)
    app = routes_app(platform.settings, lambda _: at_work(platform, engine, intake, uses))
    app.state.platform = platform
    app.state.engine = engine
    app.state.given = Given(platform.limits.repeat_us)
    app.state.gate = Gate()
    app.state.intake = intake
    app.state.limits = Limits(platform.monotonic)
    app.state.open = Open()
    app.state.provider = _provider(platform)
    app.state.uses = uses
    app.state.tunnels = Tunnels(platform.ids, lambda node: elsewhere(platform, node, token))
    app.state.services = Services(app.state.tunnels, platform.monotonic)
    return app


def engine_of(platform: Platform, token: str) -> Engine:
    """Who gives out places: this platform itself, or the Slurm that its owner named. What speaks to that is loaded only then."""
    if platform.settings.slurm is None:
        return Embedded(platform=platform, token=token)
    from ouvrage.server.slurm.engine import on_slurm

    return on_slurm(platform, token, platform.settings.slurm)


def intake_for(platform: Platform) -> Intake:
    """Where a platform's telemetry goes: files in its own directory."""
    log = SampleLog(
        platform.store,
        platform.state_dir,
        platform.source,
        platform.ids,
        most_bytes=platform.limits.telemetry_file_bytes,
        most_us=platform.limits.telemetry_file_us,
    )
    return Intake(log, platform.clock, free_of(platform.state_dir))


def _provider(platform: Platform) -> Any:
    """The identity provider; what speaks to it is loaded only where there is one."""
    if platform.settings.oidc is None:
        return None
    from ouvrage.server.oidc import Provider

    return Provider(platform.settings.oidc, platform)


def routes_app(settings: Settings | None = None, lifespan: Any = None) -> FastAPI:
    """The application without a platform: what its reference is made from."""
    app = FastAPI(
        title="Ouvrage",
        version=__version__,
        summary="Runs GPU machines as a service and keeps the account of them.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
    )
    # Flat: a router within the application is asked again about each of its routes, at every request.
    for name in (*(f"routes.{each}" for each in ROUTES), *(f"pages.{each}" for each in PAGES)):
        app.router.routes.extend(importlib.import_module(f"ouvrage.server.{name}").router.routes)
    app.add_exception_handler(OuvrageError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(OSError, _no_room)
    app.add_middleware(Guard, settings=settings or Settings())
    return app


def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, OuvrageError)
    if error.code.startswith("store/"):
        return refusal(_store_trouble(error))
    actor = getattr(request.state, "actor", None)
    if isinstance(error, Refused) and error.code == "right/missing" and actor is not None:
        route = request.scope.get("route")
        action = (getattr(route, "openapi_extra", None) or {}).get("x-action", "unknown")
        where = f"{request.method} {request.url.path}"
        note_refusal(request.app.state.platform, actor, action, where, error)
    return refusal(error)


def _store_trouble(error: OuvrageError) -> OuvrageError:
    """What is said of the store's trouble: where it stands and what it said is for the log alone."""
    _log.error("store.failed", code=error.code, message=error.message)
    return Refused(
        error.code,
        "the server's store could not be used",
        status=status_of(error),
        hint="try again in a moment; whoever runs this server finds more in its log",
        retry_after=5 if status_of(error) == 503 else None,
    )


def _no_room(_request: Request, error: Exception) -> JSONResponse:
    """A full disk is no failure of ours, and passes; whatever else the system says is one."""
    assert isinstance(error, OSError)
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return refusal(_store_trouble(OuvrageError("store/disk-full", str(error))))


def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, message, hint = _WORDS.get(
        error.status_code, ("request/refused", str(error.detail), "see /v1/openapi.json")
    )
    told = refusal(Refused(code, message, status=error.status_code, hint=hint))
    told.headers.update(error.headers or {})
    return told


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return refusal(invalid(error.errors()))


def invalid(errors: Sequence[Any]) -> OuvrageError:
    """The first thing that is wrong with the form of a request."""
    first = errors[0]
    place = [str(part) for part in first["loc"]]
    field = ".".join(place[1:]) or place[0]
    if first["type"] == "json_invalid":
        return bad_request("request/no-json", "the body is no JSON", hint="send JSON in UTF-8")
    if [part.lower() for part in place] == ["header", "idempotency-key"]:
        return bad_request(
            "idempotency/key",
            "a request that changes something names itself in Idempotency-Key",
            hint="8 to 128 letters, digits or - _ . : such as a new UUID; repeat it when you repeat the request",
            field="Idempotency-Key",
        )
    return unreadable(
        "request/invalid",
        f"{field}: {first['msg']}",
        hint="the form of each request stands in /v1/openapi.json",
        field=field,
    )
