"""Every role at every address, made from the table of rights: whoever may gets through, nobody else does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ouvrage.model.tenancy import OWNER_ROLES, ROLES, TENANT_ROLES
from ouvrage.server.app import routes_app
from ouvrage.server.authorise import ACTIONS, NODE, NODES_TOO, PUBLIC, SCOPES, SELF, may
from ouvrage.server.context import Actor, Held
from tests.platform.money_samples import MONEY, MONEY_REFUSED
from tests.platform.samples import REFUSED_ANYWAY, RIGHTS, SAMPLES, Sample, World
from tests.platform.work_samples import WORK, WORK_REFUSED
from tests.platform.world import WHO, peopled
from tests.support.server import running

SAMPLES = {**SAMPLES, **WORK, **MONEY}
REFUSED_ANYWAY = {**REFUSED_ANYWAY, **WORK_REFUSED, **MONEY_REFUSED}
Address = tuple[str, str]


def addresses() -> dict[Address, str]:
    """Every address of the application and the action it says it is."""
    paths = routes_app().openapi()["paths"]
    return {
        (method.upper(), path): operation["x-action"]
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


ALL = addresses()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("rights") / "state") as server:
        yield peopled(server)


def _allowed(who: str, address: Address, sample: Sample) -> bool:
    action = RIGHTS.get(address, ALL[address])
    if action == PUBLIC:
        return True
    if who in ("nobody", "node") or action == NODE:
        return who == "node" and (action == NODE or action in NODES_TOO)
    if action in SELF:
        return True
    role = {"project-user": "tenant-user", "rival": "tenant-admin"}.get(who, who)
    if role not in ACTIONS[action].roles:
        return False
    if sample.of is None or role in OWNER_ROLES:
        return True
    reads_own = action == "organisation.read" and sample.of == "acme"
    return who in TENANT_ROLES or (who == "project-user" and reads_own)


def test_every_address_has_a_sample() -> None:
    assert set(SAMPLES) == set(ALL)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("address", sorted(ALL), ids=lambda address: " ".join(address))
def test_whoever_may_gets_through_and_nobody_else(world: World, who: str, address: Address) -> None:
    sample = SAMPLES[address]
    path = sample.path(world) if sample.path else address[1]
    client = world.clients[who]
    if address == ("POST", "/v1/logout") and client.token and who != "node":
        client = world.server.client(
            client.post("/v1/tokens", {"name": "t", "scopes": ["all"]})["secret"]
        )
    before = world.server.platform.store.head().seq
    answer = client(address[0], path, sample.body(world))
    if _allowed(who, address, sample):
        assert answer.status_code == REFUSED_ANYWAY.get(address, answer.status_code), answer.text
        assert answer.status_code < 300 or address in REFUSED_ANYWAY, answer.text
        return
    assert answer.status_code == (401 if who == "nobody" else answer.status_code)
    assert answer.status_code in (401, 403, 404), answer.text
    assert answer.json()["error"]["code"]
    written = world.server.platform.store.records(after=before)
    assert {entry.fact.kind for entry in written} <= {"platform.audit"}
    if who == "rival":
        assert world.orgs["acme"] not in answer.text


@pytest.mark.parametrize("address", sorted(key for key in ALL if key[0] == "GET"), ids=" ".join)
def test_a_tenant_reads_nothing_of_another(world: World, address: Address) -> None:
    sample = SAMPLES[address]
    path = sample.path(world) if sample.path else address[1]
    for asked in (path, address[1].replace("{org}", world.orgs["acme"])):
        answer = world.clients["rival"]("GET", asked)
        told = answer.text.replace(
            asked.rpartition("/")[2], ""
        )  # a refusal says what was asked for
        for secret in (world.orgs["acme"], world.vision, "@acme"):
            assert secret not in told


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_only_takes_away(scope: str) -> None:
    for name, action in ACTIONS.items():
        for role in ROLES:
            held = (Held(org="o", project=None, role=role),)
            whole = Actor(kind="user", id="u", login="u", memberships=held)
            part = Actor(
                kind="user", id="u", login="u", memberships=held, scopes=frozenset({scope})
            )
            could, can = (may(each, name, org="o") for each in (whole, part))
            covers = scope in ("all", action.area) or action.area is None
            assert can == (could and (covers or (scope == "read" and action.reads)))


def test_a_reading_token_changes_nothing(world: World) -> None:
    admin = world.clients["tenant-admin"]
    made = admin.post("/v1/tokens", {"name": "look", "scopes": ["read"]})
    reader = world.server.client(made["secret"])
    assert reader.get("/v1/projects")["items"]
    for address, action in ALL.items():
        if action in ACTIONS and not ACTIONS[action].reads:
            sample = SAMPLES[address]
            path = sample.path(world) if sample.path else address[1]
            assert reader(address[0], path, sample.body(world)).status_code in (403, 404), address
    assert reader("POST", "/v1/tokens", {"name": "more", "scopes": ["read"]}).status_code == 403
