"""Every role at every page and form of the console, made from the routes: who is served, who is refused and how.

A page and its ``.json`` twin answer alike. A route without an entry here fails, so that none is added without saying whom it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from ouvrage.model.tenancy import OWNER_ROLES, ROLES
from tests.platform.browsing import Browser, page_routes
from tests.platform.money_samples import issued
from tests.platform.samples import World
from tests.platform.work_samples import works
from tests.platform.world import WHO, peopled
from tests.support.server import QUICK, running

ALL = frozenset(ROLES) | {"project-user", "rival"}
OWNERS = frozenset(OWNER_ROLES)
OWNER = frozenset({"owner"})
RUNS = frozenset({"owner", "operator"})
COUNTS = frozenset({"owner", "finance"})
ADMINS = frozenset({"owner", "tenant-admin"})
WORKS = RUNS | {"tenant-admin", "tenant-user"}
Form = dict[str, str]


@dataclass(frozen=True)
class Entry:
    """Whom a route serves, where it leads, and the form that is sent. Others get ``refused``: 403, or 404 for what
    they may not know of. Who has not signed in is sent to do so, unless it is ``public``. ``elsewhere``: it leads to a
    tenant that none of the tenants' people belongs to."""

    serves: frozenset[str]
    path: Callable[[World], str] | None = None
    form: Callable[[World], Form] = lambda _: {}
    public: bool = False
    done: int = 200
    elsewhere: bool = False


def _work(serves: frozenset[str], path: Callable[[World], str], form: Form | None = None) -> Entry:
    return Entry(serves, path, lambda _: form or {}, done=303)


def _offer_form(world: World) -> Form:
    return {
        "name": world.new("offer"), "cpus": "1", "gpus": "0", "memory_mib": "64", "rate": "0.10",
        "plan": "per-second", "audience": "tenants",
    }  # fmt: skip


def _job(world: World) -> str:
    return works(world).new_job(works(world).huge())


ENTRIES: dict[tuple[str, str], Entry] = {
    ("GET", "/sign-in"): Entry(ALL, public=True, done=303),
    ("POST", "/language"): Entry(ALL, form=lambda _: {"language": "en"}, public=True, done=303),
    ("GET", "/static/{name}"): Entry(ALL, lambda _: "/static/console.css", public=True),
    ("GET", "/"): Entry(ALL),
    ("GET", "/nodes"): Entry(RUNS),
    ("GET", "/nodes/{node}"): Entry(RUNS, lambda w: f"/nodes/{works(w).node()}"),
    ("POST", "/nodes/enrolments"): Entry(RUNS),
    ("POST", "/nodes/{node}/fence"): _work(RUNS, lambda w: f"/nodes/{works(w).node()}/fence"),
    ("POST", "/nodes/{node}/listing"): _work(
        RUNS, lambda w: f"/nodes/{works(w).node()}/listing", {"listed": "yes"}
    ),
    ("GET", "/jobs"): Entry(ALL - {"finance"}),
    ("GET", "/jobs/{job}"): Entry(WORKS, lambda w: f"/jobs/{works(w).done()}"),
    ("GET", "/jobs/{job}/log"): Entry(WORKS, lambda w: f"/jobs/{works(w).done()}/log"),
    ("POST", "/jobs"): Entry(
        WORKS,
        form=lambda w: {"project": w.vision, "offer": works(w).huge(), "command": "true"},
        done=303,
    ),
    ("POST", "/jobs/{job}/cancel"): _work(WORKS, lambda w: f"/jobs/{_job(w)}/cancel"),
    ("POST", "/jobs/{job}/retry"): _work(WORKS, lambda w: f"/jobs/{works(w).cancelled()}/retry"),
    ("GET", "/offers"): Entry(ALL),
    ("GET", "/offers/{offer}"): Entry(ALL, lambda w: f"/offers/{works(w).offer()}"),
    ("POST", "/offers"): Entry(frozenset({"owner"}), form=_offer_form, done=303),
    ("POST", "/offers/{offer}/withdraw"): _work(
        frozenset({"owner"}), lambda w: f"/offers/{works(w).offer(w.new('gone'))}/withdraw"
    ),
    ("GET", "/leases/{lease}"): Entry(WORKS | {"finance"}, lambda w: f"/leases/{works(w).lease()}"),
    ("POST", "/leases"): Entry(
        WORKS,
        form=lambda w: {"project": w.vision, "offer": works(w).offer(), "hours": "1"},
        done=303,
    ),
    ("POST", "/leases/{lease}/release"): _work(
        WORKS, lambda w: f"/leases/{works(w).lease()}/release"
    ),
    ("GET", "/tenants"): Entry(ALL),
    ("GET", "/tenants/{org}"): Entry(ALL - {"rival"}, lambda _: "/tenants/acme"),
    ("POST", "/tenants"): Entry(
        frozenset({"owner"}),
        form=lambda w: {"name": w.new("made"), "admin": "boss", "billing": "credit"},
    ),
    ("POST", "/tenants/{org}/members"): Entry(
        ADMINS,
        lambda _: "/tenants/acme/members",
        lambda w: {"login": w.new("m"), "role": "tenant-user"},
    ),
    ("POST", "/tenants/{org}/projects"): Entry(
        ADMINS, lambda _: "/tenants/acme/projects", lambda w: {"name": w.new("p")}, done=303
    ),
    ("POST", "/tenants/{org}/tokens"): Entry(
        ALL, lambda _: "/tenants/acme/tokens", lambda _: {"name": "t", "scope": "read", "days": "1"}
    ),
    ("POST", "/tenants/{org}/close"): Entry(
        OWNER, lambda w: f"/tenants/{w.tenant()}/close", done=303, elsewhere=True
    ),
    ("GET", "/money"): Entry(ALL),
    ("POST", "/money/budgets"): Entry(
        ADMINS,
        form=lambda w: {
            "project": w.vision,
            "amount": "1000000",
            "period": "month",
            "action": "stop",
        },
        done=303,
    ),
    ("POST", "/money/payments"): Entry(
        COUNTS, form=lambda _: {"org": "acme", "amount": "1"}, done=303
    ),
    ("GET", "/books"): Entry(OWNERS),
    ("GET", "/quotes"): Entry(ALL - {"finance"}),
    ("GET", "/audit"): Entry(ADMINS | {"rival"}),
    ("GET", "/for-sale"): Entry(ALL, public=True),
    ("GET", "/oidc/start"): Entry(frozenset()),
    ("GET", "/oidc/callback"): Entry(frozenset()),
    ("POST", "/sign-in"): Entry(frozenset(), public=True),
    ("POST", "/logout"): Entry(ALL, public=True, done=303),
}
ALONE = {
    ("POST", "/sign-in"),
    ("POST", "/logout"),
    ("GET", "/oidc/start"),
    ("GET", "/oidc/callback"),
}
"""About nobody's rights; ``test_hostile`` and ``test_oidc`` look at them."""
TWINLESS = {"/sign-in", "/static/{name}", "/jobs/{job}/log", "/oidc/start", "/oidc/callback"}


def stem(path: str) -> str:
    """A page's own address: of ``/today.json`` that is the first page."""
    path = path.removesuffix(".json")
    return "/" if path == "/today" else path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(
        tmp_path_factory.mktemp("pages") / "state", settings=replace(QUICK, public_page=True)
    ) as server:
        made = peopled(server)
        issued(made)
        yield made


@pytest.fixture(scope="module")
def browsers(world: World) -> Iterator[dict[str, Browser]]:
    made = {who: Browser.at(world.server.url) for who in WHO if who != "node"}
    yield {
        who: browser.signed_in(*world.logins[who]) if who in world.logins else browser
        for who, browser in made.items()
    }
    for browser in made.values():
        browser.http.close()


def test_every_page_and_form_has_an_entry_and_every_page_a_twin() -> None:
    routes = page_routes()
    assert {(method, stem(path)) for method, path in routes} == set(ENTRIES)
    twins = {stem(path) for _, path in routes if path.endswith(".json")}
    assert twins == {path for method, path in ENTRIES if method == "GET"} - TWINLESS


@pytest.mark.parametrize("route", sorted(ENTRIES.keys() - ALONE), ids=" ".join)
@pytest.mark.parametrize("who", [who for who in WHO if who != "node"])
def test_whoever_may_is_served_and_nobody_else(
    world: World, browsers: dict[str, Browser], who: str, route: tuple[str, str]
) -> None:
    entry, browser = ENTRIES[route], browsers[who]
    path = entry.path(world) if entry.path else route[1]
    before = world.server.platform.store.head().seq
    if route[0] == "POST":
        answers = [browser.send(path, entry.form(world))]
    else:
        twin = "/today.json" if path == "/" else f"{path}.json"
        answers = [browser.get(each) for each in [path] + [twin] * (route[1] not in TWINLESS)]
    for answer in answers:
        if who == "nobody" and route == ("GET", "/sign-in"):
            assert answer.status_code == 200
        elif who == "nobody" and not entry.public:
            if route[1].endswith("/log"):
                assert answer.status_code == 401
            else:
                assert answer.status_code == 303
                assert answer.headers["location"].startswith("/sign-in?next=")
        elif who in entry.serves or entry.public:
            assert answer.status_code == entry.done, answer.text
        else:
            stranger = who in ("rival", "project-user") or (entry.elsewhere and who not in OWNERS)
            assert answer.status_code in ((403, 404) if stranger else (403,))
            assert world.orgs["acme"] not in answer.text
    if who not in entry.serves:
        written = world.server.platform.store.records(after=before)
        made_by_us = {entry.fact.kind for entry in written} - {"platform.audit"}
        assert entry.path is not None or not made_by_us


@pytest.mark.parametrize("route", sorted(key for key in ENTRIES if key[0] == "POST"), ids=" ".join)
def test_a_form_of_another_session_does_nothing(
    world: World, browsers: dict[str, Browser], route: tuple[str, str]
) -> None:
    if route == ("POST", "/language"):
        return  # it chooses the words of a page, for this browser
    entry = ENTRIES[route]
    path, form = entry.path(world) if entry.path else route[1], entry.form(world)
    before = world.server.platform.store.head().seq
    for word in ("", "0" * 64):
        answer = browsers["owner"].send(path, form, csrf=word)
        assert answer.status_code == (303 if route[1] == "/logout" else 403)
    assert world.server.platform.store.head().seq == before
    assert browsers["owner"].get("/").status_code == 200  # and nobody was signed out


def test_a_user_sees_no_list_of_the_people_in_their_organisation(
    world: World, browsers: dict[str, Browser]
) -> None:
    other = world.logins["tenant-admin"][0].partition("@")[0]
    assert other in browsers["tenant-admin"].get("/tenants/acme").text
    for who in ("tenant-user", "project-user"):
        for path in ("/tenants/acme", "/tenants/acme.json", "/tenants"):
            assert other not in browsers[who].get(path).text


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/offers", "/money", "/tenants", "/audit", "/quotes"]
)
def test_no_page_tells_a_tenant_of_another(
    world: World, browsers: dict[str, Browser], path: str
) -> None:
    works(world).done()
    for each in (path, "/today.json" if path == "/" else f"{path}.json"):
        text = browsers["rival"].get(each).text
        for secret in (world.orgs["acme"], world.vision, "@acme", "acme/", ">acme<", '"acme"'):
            assert secret not in text, each
