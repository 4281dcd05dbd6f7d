"""What anybody may read of a platform: nothing, or what its owner put up for everybody, and whether there is room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx2

from tests.platform.working import Working, working_on
from tests.support.server import QUICK


def test_there_is_no_public_page_unless_the_owner_wants_one(working: Working):
    assert httpx2.get(f"{working.server.url}/for-sale").status_code == 404
    assert httpx2.get(f"{working.server.url}/for-sale.json").status_code == 404


def test_offers_for_everybody_and_whether_they_can_be_had(tmp_path: Path):
    with working_on(tmp_path / "state", settings=replace(QUICK, public_page=True)) as work:
        work.offer("open", audience="public", cpus=3, rate="0.30", anyway=True, why="a test")
        work.offer("kept", audience="tenants", cpus=1, rate="0.10")
        page = httpx2.get(f"{work.server.url}/for-sale.json").json()
        rows = page["blocks"][0]["rows"]
        assert [row[0]["text"] for row in rows] == ["open"]
        assert rows[0][-1]["text"] == "taken"  # no machine has joined
        work.node("box-1", cpus=4)
        rows = httpx2.get(f"{work.server.url}/for-sale.json").json()["blocks"][0]["rows"]
        assert rows[0][-1]["text"] == "free"
        acme = work.tenant("acme")
        acme.post("/v1/leases", {"offer": "open", "project": "main"})
        said = httpx2.get(f"{work.server.url}/for-sale").text
        assert "taken" in said
        assert "acme" not in said
        assert "box-1" not in said


def test_a_lease_does_not_jump_the_queue(working: Working):
    """What waits in front gets the place that comes free; a lease that nobody waits before is had at once."""
    twin = working.node(cpus=2)
    working.offer("all", cpus=2, rate="0.30")
    ann = working.tenant("acme")
    first = working.submit(ann, "all")
    working.engine.observe()
    twin.ask()
    second = working.submit(ann, "all")
    twin.report([twin.began(twin.starts[0].attempt), twin.ended(twin.starts[0].attempt)])
    refused = ann("POST", "/v1/leases", {"offer": "all", "project": "main"})
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "lease/no-room"
    assert working.engine.observe().started == (second["job"],)
    assert first["job"] != second["job"]
