"""``server.toml``: what an owner sets beyond the options of ``ouvrage up``.

Decides where it is looked for (the state directory, then ``/etc/ouvrage``), and that a name it does not know is refused: a setting
that was misspelt would not be in force. Secrets stand in files of their own, which it names.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ouvrage.adapters.posting import Network
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY, HOUR
from ouvrage.server.context import Oidc, Settings
from ouvrage.server.slurm.settings import SlurmSettings

NAME = "server.toml"
ELSEWHERE = Path("/etc/ouvrage")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class OidcTable(_Table):
    """``[oidc]``: the identity provider; ``redirect`` is this server's /oidc/callback as browsers reach it."""

    issuer: Annotated[str, Field(pattern=r"^https://|^http://(127\.|localhost|\[::1\])")]
    client_id: str
    client_secret_file: str
    redirect: Annotated[str, Field(pattern=r"^https?://[^?#]+/oidc/callback$")]
    scope: str = "openid email profile"


class SessionsTable(_Table):
    """``[sessions]``: how long a browser stays signed in."""

    idle_hours: Annotated[int, Field(ge=1, le=168)] = 12
    days: Annotated[int, Field(ge=1, le=90)] = 7


class LimitsTable(_Table):
    """``[limits]``: how often one user or node may ask, in a second and at once, and how many connections one organisation keeps open."""

    requests_a_second: Annotated[int, Field(ge=1, le=10_000)] = 50
    requests_at_once: Annotated[int, Field(ge=1, le=100_000)] = 200
    streams_of_one: Annotated[int, Field(ge=1, le=10_000)] = 128


class PublicTable(_Table):
    """``[public]``: whether anybody may read what is for sale to everybody, and whether there is room."""

    page: bool = False


class WebhooksTable(_Table):
    """``[webhooks]``: networks to which webhooks may lead beside the open Internet, as ``10.1.0.0/16``."""

    allow: list[str] = []


class SlurmTable(_Table):
    """``[slurm]``: the Slurm that gives out places, instead of this platform itself; see ``SlurmSettings``."""

    rest: Annotated[str, Field(pattern=r"^http://[^/?#@]+/?$")]
    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] = "ouvrage"
    places: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/var/lib/ouvrage-places"
    conf: str | None = None
    partition: str | None = None
    qos: str | None = None
    interruptible_qos: str | None = None
    partitions: dict[str, str] = {}
    accounts: dict[str, str] = {}


class File(_Table):
    """All of ``server.toml``."""

    public: PublicTable = PublicTable()

    oidc: OidcTable | None = None
    sessions: SessionsTable = SessionsTable()
    limits: LimitsTable = LimitsTable()
    webhooks: WebhooksTable = WebhooksTable()
    slurm: SlurmTable | None = None


def configured(state: Path, *, secure: bool, behind_proxy: bool) -> Settings:
    """The settings of a server on this state directory."""
    path = next((d / NAME for d in (state, ELSEWHERE) if (d / NAME).exists()), None)
    if path is None:
        return Settings(secure=secure, behind_proxy=behind_proxy)
    file = _read(path)
    return Settings(
        secure=secure,
        behind_proxy=behind_proxy,
        session_idle_us=file.sessions.idle_hours * HOUR,
        session_us=file.sessions.days * DAY,
        requests_a_second=file.limits.requests_a_second,
        requests_at_once=file.limits.requests_at_once,
        streams_of_one=file.limits.streams_of_one,
        public_page=file.public.page,
        hook_networks=tuple(_network(each, path) for each in file.webhooks.allow),
        oidc=_provider(file.oidc, path) if file.oidc else None,
        slurm=SlurmSettings(**file.slurm.model_dump()) if file.slurm else None,
    )


def _read(path: Path) -> File:
    stated: dict[str, Any] = load_toml(str(path), read_text(path, "server"), "server/file")
    try:
        return File(**stated)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise OuvrageError(
            "server/file",
            f"{place}: {first['msg']}",
            where=(str(path),),
            hint="what it may hold: docs/guides/platform.md",
        ) from error


def _network(text: str, path: Path) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise OuvrageError(
            "server/file", f"webhooks.allow: {error}", where=(str(path),), hint="10.1.0.0/16"
        ) from error


def _provider(table: OidcTable, path: Path) -> Oidc:
    secret = path.parent / table.client_secret_file
    text = read_text(secret, "server").strip()
    if not text:
        raise OuvrageError("server/file", f"{secret} is empty", hint="the provider's client secret")
    return Oidc(
        issuer=table.issuer,
        client_id=table.client_id,
        client_secret=text,
        redirect=table.redirect,
        scope=table.scope,
    )
