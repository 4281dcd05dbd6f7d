"""Every role at every address that the interface's own description leaves out: streams, and a service's other methods.

Made from the application's routes, so that none is added without saying whom it is for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ouvrage.model.tenancy import TENANT_ROLES
from ouvrage.server.app import routes_app
from tests.platform.samples import World
from tests.platform.work_samples import works
from tests.platform.world import WHO, peopled
from tests.support.server import running

STREAM = "0" * 31 + "1"
TENANTS = frozenset(TENANT_ROLES)
SERVED = {
    ("socket", "/v1/jobs/{job}/inside"): TENANTS,
    ("socket", "/v1/jobs/{job}/ports/{port}"): TENANTS,
    ("socket", "/v1/services/{job}/{path:path}"): TENANTS,
    ("socket", "/v1/runner/tunnel"): frozenset({"node"}),
    ("socket", "/v1/runner/streams/{stream}"): frozenset({"node"}),
    **{
        (method, "/v1/services/{job}/{path:path}"): TENANTS
        for method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")
    },
}
"""Whom each serves; an ended job of acme's project ``vision`` is asked for, and has no service."""


def test_every_address_that_is_left_out_stands_here() -> None:
    found = {
        (method, route.path)
        for route in routes_app().router.routes
        if isinstance(route, (Route, WebSocketRoute)) and route.path.startswith("/v1/")
        and not getattr(route, "include_in_schema", False)
        for method in (getattr(route, "methods", None) or ("socket",))
    }  # fmt: skip
    assert found - {(method, "/v1/openapi.json") for method in ("GET", "HEAD")} == set(SERVED)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("hidden") / "state") as server:
        yield peopled(server)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("address", sorted(SERVED), ids=" ".join)
def test_whoever_may_gets_through_and_nobody_else(
    world: World, who: str, address: tuple[str, str]
) -> None:
    method, path = address
    job = works(world).done()
    values = {"{job}": job, "{port}": "80", "{path:path}": "x", "{stream}": STREAM}
    for name, value in values.items():
        path = path.replace(name, value)
    status, said = _asked(world, who, method, path)
    if who in SERVED[address]:
        # It has ended, is no service, or nobody asked the node for such a stream; the tunnel is simply open.
        assert status == {"tunnel": 101, STREAM: 404}.get(path.rpartition("/")[2], 409), said
        return
    assert status == 401 if who == "nobody" else status in (403, 404), (status, said)
    if who == "rival":
        assert world.orgs["acme"] not in said


def _asked(world: World, who: str, method: str, path: str) -> tuple[int, str]:
    client = world.clients[who]
    if method != "socket":
        answer = client(method, path)
        return answer.status_code, answer.text
    headers = {"Authorization": f"Bearer {client.token}"} if client.token else {}
    address = f"ws{world.server.url.removeprefix('http')}{path}"
    try:
        with connect(address, additional_headers=headers, proxy=None):
            return 101, ""
    except InvalidStatus as refused:
        return refused.response.status_code, (refused.response.body or b"").decode()
