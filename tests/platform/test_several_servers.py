"""Two servers on one PostgreSQL: the one that a runner did not dial says so, and says it for as long as it is true."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from websockets.sync.client import connect

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.server_client import Server
from ouvrage.adapters.stream_client import dial
from ouvrage.base.errors import OuvrageError
from ouvrage.wire.tunnel import CONTROL
from tests.support.meter import until
from tests.support.postgres import Cluster
from tests.support.runner_twin import Twin, inventory
from tests.support.server import Running


def told(server: Running, token: str | None, job: str) -> str:
    with pytest.raises(OuvrageError) as refused:
        dial(Server(url=server.url, token=token), f"/v1/jobs/{job}/inside")
    assert refused.value.hint
    return refused.value.code


def test_a_server_that_was_not_dialled_says_so(
    cluster: Cluster, migrated: str, platform_servers: Callable[..., Running]
) -> None:
    store = cluster.like(migrated)
    first, second = (platform_servers(name, store=store) for name in ("one", "two"))
    secret = first.owner.post("/v1/nodes/enrolments", {})["secret"]
    twin = Twin.enrolled(first.url, secret, now_us, inventory("box-1"))
    first.owner.post("/v1/offers", {"name": "small", "cpus": 1, "memory_mib": 64, "rate": "0.10"})
    ann = first.tenant("acme")
    asked = {"project": "main", "offer": "small", "spec": {"command": ["sleep", "600"]}}
    job = ann.post("/v1/jobs", asked)["job"]
    until(lambda: twin.ask() or twin.starts, "its order")
    twin.report([twin.began(twin.starts[0].attempt)])
    assert {told(each, ann.token, job) for each in (first, second)} == {"node/not-connected"}

    headers = {"Authorization": f"Bearer {twin.key}"}
    address = f"ws{first.url.removeprefix('http')}{CONTROL}"
    with connect(address, additional_headers=headers, proxy=None):
        until(lambda: told(second, ann.token, job) == "node/other-server", "the second says so")
    until(lambda: told(second, ann.token, job) == "node/not-connected", "it is gone")
    twin.close()
