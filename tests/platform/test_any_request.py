"""Requests that nobody thought of: made by schemathesis from the interface, asked with every right, with a tenant's and with none.

Whatever is asked, the answer is one that the interface declares, in the form that it declares, and never a failure of ours.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from ouvrage.adapters.clock import new_id
from ouvrage.server.app import routes_app
from tests.platform.samples import World
from tests.platform.world import peopled
from tests.support.server import running

_EXAMPLES = int(os.environ.get("OUVRAGE_EXAMPLES", "2"))
schema = schemathesis.openapi.from_dict(routes_app().openapi())
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


@schemathesis.serializer("application/gzip")
def packed(_: Any, value: Any) -> bytes:
    """What is drawn as bytes is sent packed, so that more is judged than the wrapping."""
    return gzip.compress(value if isinstance(value, bytes) else str(value).encode())


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("any") / "state") as server:
        yield peopled(server)


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_any_request_is_answered_as_declared(case: Case, asked: World) -> None:
    if (case.method, case.path) == ("POST", "/v1/logout"):
        return  # it would end the token that all others are asked with
    for who in ("owner", "tenant-admin", "tenant-user", "nobody"):
        client = asked.server.owner if who == "owner" else asked.clients[who]
        case.headers.pop("Authorization", None)
        if client.token is not None:
            case.headers["Authorization"] = f"Bearer {client.token}"
        case.headers["Idempotency-Key"] = new_id()
        case.call_and_validate(base_url=asked.server.url, checks=CHECKS)
