"""What every part of the server is given: the platform it serves, and who is asking.

Decides nothing. The clock, ids and chance are functions here, so that tests hand in their own; ``Actor`` carries what was
proved about whoever asks, and ``authorise`` alone judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ouvrage.adapters.posting import Network
from ouvrage.base.time import DAY, HOUR
from ouvrage.server.health_book import HealthBook
from ouvrage.server.silence import Silence
from ouvrage.server.slurm.settings import SlurmSettings
from ouvrage.server.wakes import Wakes
from ouvrage.server.work_limits import WorkLimits
from ouvrage.store.store import Store
from ouvrage.store.transaction import Connection, Transaction, transaction, view


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """The identity provider, by its ``issuer``; ``redirect`` is our /oidc/callback as the provider knows it."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect: str
    scope: str = "openid email profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """What a rented machine costs: a frozen ``plan``, and an hourly ``rate`` as decimal text where the plan names none.

    ``currency`` None: the owner's.
    """

    plan: str
    rate: str | None
    currency: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an owner may set; lengths of time in microseconds, rates per second, sizes in bytes.

    ``password_cost`` is argon2's (memory in KiB, passes, lanes): OWASP's minimum for argon2id. ``public_page`` opens the page of
    offers to everybody; ``secure`` says that browsers reach the server by HTTPS, so that cookies demand it. ``hook_networks`` are where webhooks may lead beside the open Internet. ``asked_…`` bound what one user asks of services. ``slurm``: who gives out places instead of this platform.
    """

    session_idle_us: int = 12 * HOUR
    session_us: int = 7 * DAY
    token_us: int = 90 * DAY
    longest_token_us: int = 366 * DAY
    enrolment_us: int = HOUR
    answers_us: int = 2 * DAY
    password_cost: tuple[int, int, int] = (19_456, 2, 1)
    requests_a_second: float = 50.0
    requests_at_once: float = 200.0
    strangers_a_second: float = 5.0
    strangers_at_once: float = 60.0
    asked_a_second: float = 500.0
    asked_at_once: float = 1000.0
    streams_of_one: int = 128
    body_bytes: int = 1 << 20
    public_page: bool = False
    secure: bool = False
    behind_proxy: bool = False
    hook_networks: tuple[Network, ...] = ()
    oidc: Oidc | None = None
    rented: Rented | None = None
    slurm: SlurmSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A running platform: its store, the source of its facts, its directory, and the world as functions."""

    store: Store
    source: str
    state_dir: Path
    clock: Callable[[], int]
    monotonic: Callable[[], int]
    ids: Callable[[], str]
    chance: Callable[[int], bytes]
    settings: Settings = field(default_factory=Settings)
    limits: WorkLimits = field(default_factory=WorkLimits)
    wakes: Wakes = field(default_factory=Wakes)
    health: HealthBook = field(default_factory=HealthBook)
    silence: Silence = field(default_factory=Silence)
    shared_dir: Path | None = None
    """Where several servers on one database keep the logs and files of jobs; None: in ``state_dir``."""

    @property
    def files_dir(self) -> Path:
        """Where logs and files of jobs lie."""
        return self.shared_dir or self.state_dir

    @contextmanager
    def writing(self) -> Generator[Transaction]:
        """One transaction over facts and tables; everything in it becomes true at its end, or nothing."""
        with transaction(self.store, now_us=self.clock(), own_source=self.source) as opened:
            yield opened

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A connection whose every statement sees the same state."""
        with view(self.store) as connection:
            yield connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A role that somebody holds in an organisation, in one project or (None) in all."""

    org: str
    project: str | None
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks. ``scopes`` None: all that the roles allow. ``credential`` is the id of token, session or key.

    A machine's token acts as a ``user`` of its own. A ``node`` has no memberships; ``server`` is the server itself,
    which may do anything.
    """

    kind: Literal["user", "node", "server"]
    id: str
    login: str
    memberships: tuple[Held, ...] = ()
    scopes: frozenset[str] | None = None
    credential: str | None = None
    address: str | None = None


SERVER = Actor(kind="server", id="server", login="server")
"""What the reconcilers act as."""
